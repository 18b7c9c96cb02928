//! Mailboxes, publication and flag together, in the order in which the server uses them.

use std::sync::Arc;

use loom_tests::{Nobody, Word, join, model, model_bounded, receive_one, spawn, thread};
use waypost::{
    sync::{Flag, Full, Parker, Receiver, Stamp, Unparker, Wake, mailbox, parker, publication},
    time::Timestamp,
};

/// L5. The third worker learns of the registration from its sender alone.
#[test]
fn a_replied_registration_is_visible_to_its_sender_and_to_whom_the_sender_tells() {
    model_bounded(3, || {
        let (writer_parker, writer_unparker) = parker();
        let (worker_parker, worker_unparker) = parker();
        let (commands, mut command_inbox) = mailbox(1, writer_unparker);
        let (replies, mut reply_inbox) = mailbox(1, worker_unparker);
        let (news, mut news_inbox) = mailbox(1, Nobody);
        let (mut publisher, source) = publication(Arc::new(Word::new(0)));
        let mut sees = source.subscribe();
        let mut third_sees = source.subscribe();

        let writer = spawn(move || {
            let registered: usize = receive_one(&mut command_inbox, &writer_parker);
            publisher.publish(Arc::new(Word::new(registered)));
            replies.send(()).expect("a reply has room");
        });
        let worker = spawn(move || {
            commands.send(7).expect("there is room");
            receive_one(&mut reply_inbox, &worker_parker);
            assert_eq!(sees.load().get(), 7, "replied and not visible");
            news.send(()).expect("there is room");
        });
        while news_inbox.drain(1, |()| ()).count == 0 {
            thread::yield_now();
        }
        assert_eq!(third_sees.load().get(), 7, "told and not visible");

        join(worker);
        join(writer);
    });
}

/// The writer's loop as far as stopping is concerned; returns how many commands it has answered.
fn answer_until_stopped(
    mut commands: Receiver<usize, Unparker>,
    parker: &Parker,
    stop: &Flag,
) -> usize {
    let mut answered = 0;
    loop {
        // Before the drain: whoever raises it has seen to it that nothing is sent afterwards.
        let stopping = stop.is_raised();
        answered += commands.drain(2, |_| ()).count;
        if stopping {
            return answered;
        }
        parker.park(None);
    }
}

/// L6. Accepted commands are answered, refused ones come back to the worker; the writer ends.
#[test]
fn at_shutdown_each_command_is_answered_or_handed_back() {
    model_bounded(3, || {
        let (parker, unparker) = parker();
        let (commands, inbox) = mailbox(1, unparker.clone());
        let stop = Flag::new();

        let writer = spawn({
            let stop = stop.clone();
            move || answer_until_stopped(inbox, &parker, &stop)
        });
        let worker = spawn(move || {
            let sent = [1, 2].map(|command| commands.send(command));
            sent.iter()
                .zip([1, 2])
                .filter(|(outcome, command)| match outcome {
                    Ok(()) => true,
                    Err(Full(handed_back)) => {
                        assert_eq!(handed_back, command);
                        false
                    }
                })
                .count()
        });
        let accepted = join(worker);
        stop.raise();
        unparker.wake();

        assert_eq!(join(writer), accepted);
    });
}

/// L6 for a value whose sender leaves the waking to whoever stops the writer: only the flag orders the two.
#[test]
fn the_last_drain_finds_what_was_pushed_before_the_flag_rose() {
    model(|| {
        let (parker, unparker) = parker();
        let (commands, inbox) = mailbox(1, unparker);
        let stop = Flag::new();

        let writer = spawn({
            let stop = stop.clone();
            move || answer_until_stopped(inbox, &parker, &stop)
        });
        commands.push(1).expect("there is room");
        stop.raise();
        commands.wake();

        assert_eq!(join(writer), 1);
    });
}

/// L7. The reply mailbox holds as many as the worker may have out, so the writer never has a reply left over.
#[test]
fn with_in_flight_credits_a_reply_is_never_refused() {
    const REPLIES_MAX: usize = 2;
    const IN_FLIGHT_MAX: usize = 2;
    const COMMANDS: usize = 3;
    model_bounded(3, || {
        let (writer_parker, writer_unparker) = parker();
        let (worker_parker, worker_unparker) = parker();
        let (commands, mut command_inbox) = mailbox(COMMANDS, writer_unparker);
        let (replies, mut reply_inbox) = mailbox(REPLIES_MAX, worker_unparker);

        let writer = spawn(move || {
            for _ in 0..COMMANDS {
                let command: usize = receive_one(&mut command_inbox, &writer_parker);
                replies.send(command).expect("a credit is room for a reply");
            }
        });
        let worker = spawn(move || {
            for command in 0..COMMANDS {
                if command >= IN_FLIGHT_MAX {
                    receive_one(&mut reply_inbox, &worker_parker);
                }
                commands.send(command).expect("there is room");
            }
        });

        join(worker);
        join(writer);
    });
}

/// Two workers with clocks read at different moments, and somebody who reads the stamp meanwhile.
#[test]
fn a_stamp_never_goes_back() {
    model(|| {
        let stamp = Arc::new(Stamp::new(Timestamp::from_millis(1)));

        let late = spawn({
            let stamp = Arc::clone(&stamp);
            move || stamp.refresh(Timestamp::from_millis(2))
        });
        let reader = spawn({
            let stamp = Arc::clone(&stamp);
            move || {
                let first = stamp.get();
                assert!(first <= stamp.get());
            }
        });
        stamp.refresh(Timestamp::from_millis(3));

        join(late);
        join(reader);
        assert_eq!(stamp.get(), Timestamp::from_millis(3));
    });
}
