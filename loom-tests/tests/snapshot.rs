//! Publication: readers see whole versions, in order, and free none.

use std::sync::Arc;

use loom_tests::{Tally, Word, join, model, model_bounded, spawn, thread};
use waypost::sync::{Subscriber, publication, snapshot::RETIRED_MAX};

/// Both halves hold its number.
struct Version {
    left: Word,
    right: Word,
}

impl Version {
    fn numbered(number: usize) -> Arc<Self> {
        Arc::new(Self {
            left: Word::new(number),
            right: Word::new(number),
        })
    }
}

/// Two loads that must be whole and in order.
fn look_twice(mut subscriber: Subscriber<Version>) {
    let mut newest = 0;
    for _ in 0..2 {
        let version = subscriber.load();
        let number = version.left.get();
        assert_eq!(version.right.get(), number, "half a version");
        assert!(number >= newest, "back from {newest} to {number}");
        newest = number;
    }
}

/// L4.
#[test]
fn a_reader_sees_whole_versions_and_never_an_older_one() {
    model_bounded(3, || {
        let (mut publisher, source) = publication(Version::numbered(0));

        let readers: [_; 2] = std::array::from_fn(|_| {
            let subscriber = source.subscribe();
            spawn(move || look_twice(subscriber))
        });
        publisher.publish(Version::numbered(1));
        publisher.publish(Version::numbered(2));

        for reader in readers {
            join(reader);
        }
    });
}

/// Counts the times it was freed on a thread other than its publisher's.
struct Tracked {
    number: usize,
    publisher: thread::ThreadId,
    freed_elsewhere: Arc<Tally>,
}

impl Drop for Tracked {
    fn drop(&mut self) {
        if thread::current().id() != self.publisher {
            self.freed_elsewhere.count();
        }
    }
}

/// The reader holds each version for a while, in its cache, while the publisher replaces and reclaims.
#[test]
fn a_version_is_freed_by_its_publisher_and_by_nobody_else() {
    model(|| {
        let freed_elsewhere = Arc::new(Tally::new());
        let publisher_thread = thread::current().id();
        let version = |number| {
            Arc::new(Tracked {
                number,
                publisher: publisher_thread,
                freed_elsewhere: Arc::clone(&freed_elsewhere),
            })
        };
        let (mut publisher, source) = publication(version(0));

        let mut subscriber = source.subscribe();
        let reader = spawn(move || {
            let first = subscriber.load().number;
            let second = subscriber.load().number;
            assert!(first <= second);
        });
        for number in 1..=2 {
            publisher.publish(version(number));
            assert!(
                publisher.retired_count() <= RETIRED_MAX,
                "the list is bounded"
            );
            publisher.reclaim();
        }

        join(reader);
        publisher.reclaim();
        assert_eq!(publisher.retired_count(), 0, "nobody reads any more");
        assert_eq!(freed_elsewhere.read(), 0, "a reader has freed a version");
    });
}
