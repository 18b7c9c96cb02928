//! The parker: no wake is lost, and a wake shows what was written before it.

use std::{sync::Arc, time::Duration};

use loom_tests::{Word, join, model, spawn};
use waypost::sync::{Wake, parker};

/// Two wakers, so that a second wake can land wherever the first one's token is being handled.
#[test]
fn a_parker_sees_what_each_of_two_wakers_wrote() {
    model(|| {
        let (parker, unparker) = parker();
        let written = Arc::new([Word::new(0), Word::new(0)]);

        let sleeper = spawn({
            let written = Arc::clone(&written);
            move || {
                while written.iter().any(|word| word.get() == 0) {
                    parker.park(None);
                }
            }
        });
        let other = spawn({
            let written = Arc::clone(&written);
            let unparker = unparker.clone();
            move || {
                written[1].set(1);
                unparker.wake();
            }
        });
        written[0].set(1);
        unparker.wake();

        join(other);
        join(sleeper);
    });
}

/// The deadline passes before, in the middle of, or after the wake.
#[test]
fn a_deadline_that_passes_loses_no_wake() {
    model(|| {
        let (parker, unparker) = parker();
        let written = Arc::new(Word::new(0));

        let sleeper = spawn({
            let written = Arc::clone(&written);
            move || {
                parker.park(Some(Duration::from_micros(20)));
                while written.get() == 0 {
                    parker.park(None);
                }
            }
        });
        written.set(1);
        unparker.wake();

        join(sleeper);
    });
}
