//! The mailbox: what is accepted is received, by a receiver that sleeps on exact wake-ups.

use loom_tests::{Word, join, model, model_bounded, spawn, thread};
use waypost::sync::{Full, Parker, Receiver, Unparker, mailbox, parker};

/// What one drain takes at most where the bound is not the point. Small: each further look is a state more.
const DRAIN_MAX: usize = 2;

/// Receives until `expected` values have come and returns their sum, parking whenever a drain is done.
fn receive(
    mut receiver: Receiver<Word, Unparker>,
    parker: &Parker,
    expected: usize,
    drain_max: usize,
) -> usize {
    let (mut count, mut sum) = (0, 0);
    loop {
        count += receiver.drain(drain_max, |value| sum += value.get()).count;
        if count == expected {
            return sum;
        }
        parker.park(None);
    }
}

/// L1. Two senders, since the second one may rely on the first one's wake.
#[test]
fn no_accepted_value_stays_behind_a_silent_waker() {
    model_bounded(3, || {
        let (parker, unparker) = parker();
        let (sender, receiver) = mailbox(2, unparker);
        let other = sender.clone();

        let receiver = spawn(move || receive(receiver, &parker, 2, DRAIN_MAX));
        let other = spawn(move || other.send(Word::new(1)).expect("there is room"));
        sender.send(Word::new(2)).expect("there is room");

        join(other);
        assert_eq!(join(receiver), 3);
    });
}

/// L1 for a sender that pushes in one place and wakes in another.
#[test]
fn one_wake_covers_the_pushes_before_it() {
    model(|| {
        let (parker, unparker) = parker();
        let (sender, receiver) = mailbox(2, unparker);

        let receiver = spawn(move || receive(receiver, &parker, 2, DRAIN_MAX));
        sender.push(Word::new(1)).expect("there is room");
        sender.push(Word::new(2)).expect("there is room");
        sender.wake();

        assert_eq!(join(receiver), 3);
    });
}

/// L2. The sender insists; whatever happens to the first attempts, the value that is accepted in the end wakes.
#[test]
fn a_full_mailbox_hands_back_the_value_and_later_ones_still_wake() {
    model(|| {
        let (parker, unparker) = parker();
        let (sender, receiver) = mailbox(1, unparker);

        let receiver = spawn(move || receive(receiver, &parker, 2, DRAIN_MAX));
        sender.send(Word::new(1)).expect("there is room");
        let mut value = Word::new(2);
        while let Err(Full(refused)) = sender.send(value) {
            assert_eq!(refused.get(), 2);
            value = refused;
            thread::yield_now();
        }

        assert_eq!(join(receiver), 3);
    });
}

/// L3. One wake, two values, and drains that take one.
#[test]
fn a_drain_that_stops_at_its_bound_wakes_itself() {
    model(|| {
        let (parker, unparker) = parker();
        let (sender, receiver) = mailbox(2, unparker);

        let receiver = spawn(move || receive(receiver, &parker, 2, 1));
        sender.push(Word::new(1)).expect("there is room");
        sender.push(Word::new(2)).expect("there is room");
        sender.wake();

        assert_eq!(join(receiver), 3);
    });
}

/// L3 where a second sender's wake meets the drain's own.
#[test]
fn a_drain_at_its_bound_and_a_sender_wake_for_each_other() {
    model_bounded(3, || {
        let (parker, unparker) = parker();
        let (sender, receiver) = mailbox(2, unparker);
        let other = sender.clone();

        let receiver = spawn(move || receive(receiver, &parker, 2, 1));
        let other = spawn(move || other.send(Word::new(1)).expect("there is room"));
        sender.send(Word::new(2)).expect("there is room");

        join(other);
        assert_eq!(join(receiver), 3);
    });
}
