//! What a mailbox costs: a burst through it, a wake-up that is merged with an earlier one, and a round trip to a thread that
//! sleeps.
//!
//! Expected: a push, a pop and a merged wake are a few atomic operations on lines that are in the cache, tens of nanoseconds at most. A
//! round trip is two wake-ups of a sleeping thread and hardly the mailbox at all: a thousand times as much, and less where the two threads
//! share a core than between cores. docs/performance has the figures of a machine that is named.

#![expect(
    clippy::disallowed_methods,
    reason = "the far end of the ping is a thread of the bench"
)]

use std::{hint::black_box, thread};

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use waypost::sync::{Flag, Parker, Receiver, Unparker, Wake, mailbox, parker};

/// The size of a command that carries its payload in a box: ids, a reply address, a pointer.
type Message = [u64; 6];

const MESSAGE: Message = [7; 6];

/// A waker whose receiver looks by itself, so that only the mailbox is measured.
struct Nobody;

impl Wake for Nobody {
    fn wake(&self) {}
}

/// Values pushed by one thread, each with its wake, then drained by the same thread: no contention, all in cache.
fn burst(c: &mut Criterion) {
    let mut group = c.benchmark_group("mailbox/burst");
    for len in [1_u32, 64, 1024] {
        let capacity = 1024;
        group.throughput(Throughput::Elements(u64::from(len)));
        group.bench_function(format!("send_and_drain/{len}"), |b| {
            let (sender, mut receiver) = mailbox::<Message, _>(capacity, Nobody);
            b.iter(|| {
                for _ in 0..len {
                    sender.send(black_box(MESSAGE)).expect("a burst fits");
                }
                receiver.drain(capacity, |message| {
                    black_box(message);
                })
            });
        });
        group.bench_function(format!("push_wake_once_and_drain/{len}"), |b| {
            let (sender, mut receiver) = mailbox::<Message, _>(capacity, Nobody);
            b.iter(|| {
                for _ in 0..len {
                    sender.push(black_box(MESSAGE)).expect("a burst fits");
                }
                sender.wake();
                receiver.drain(capacity, |message| {
                    black_box(message);
                })
            });
        });
    }
    group.finish();
}

/// A wake that finds another one on its way, against a wake of a thread that is awake.
fn wake(c: &mut Criterion) {
    let mut group = c.benchmark_group("mailbox/wake");
    group.bench_function("merged", |b| {
        let (_parker, unparker) = parker();
        let (sender, _receiver) = mailbox::<Message, _>(1, unparker);
        sender.wake();
        b.iter(|| sender.wake());
    });
    group.bench_function("of_a_thread_that_is_awake", |b| {
        let (_parker, unparker) = parker();
        b.iter(|| unparker.wake());
    });
    group.bench_function("refused_by_a_full_mailbox", |b| {
        let (sender, _receiver) = mailbox::<Message, _>(1, Nobody);
        sender.push(MESSAGE).expect("the first one fits");
        b.iter_batched(
            || MESSAGE,
            |message| sender.send(message),
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

/// Waits for one message.
fn receive(receiver: &mut Receiver<Message, Unparker>, parker: &Parker) {
    while receiver.drain(1, |_| ()).count == 0 {
        parker.park(None);
    }
}

/// One message to a thread that sleeps, and its answer to this one, which sleeps meanwhile.
fn ping(c: &mut Criterion) {
    let (far_parker, far_unparker) = parker();
    let (near_parker, near_unparker) = parker();
    let (to_far, mut far_inbox) = mailbox::<Message, _>(1, far_unparker);
    let (to_near, mut near_inbox) = mailbox::<Message, _>(1, near_unparker);
    let stop = Flag::new();
    let stopped = stop.clone();
    let far = thread::spawn(move || {
        while !stopped.is_raised() {
            receive(&mut far_inbox, &far_parker);
            to_near.send(MESSAGE).expect("one answer is out at a time");
        }
    });

    c.bench_function("mailbox/ping_through_a_parked_thread", |b| {
        b.iter(|| {
            to_far.send(MESSAGE).expect("one question is out at a time");
            receive(&mut near_inbox, &near_parker);
        });
    });

    stop.raise();
    to_far.send(MESSAGE).expect("one question is out at a time");
    far.join().expect("the far thread ends by the flag");
}

criterion_group!(benches, burst, wake, ping);
criterion_main!(benches);
