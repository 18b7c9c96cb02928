//! The thread that runs a worker: its poll, its clock and its sockets.

use std::{
    io::{self, ErrorKind},
    net::Shutdown,
    time::Duration,
};

use mio::{Events, Interest, Poll, Token, net::TcpStream};

use super::{clock::Clock, message::PollWaker};
use crate::{
    limits::EVENTS_MAX,
    worker::{Edge, Event, Inlets, Next, Polled, Readiness, Worker},
};

/// The mailboxes' token; sockets have those of their slots.
pub(super) const WAKER: Token = Token(usize::MAX);

/// The system's sockets, and the poll that tells of them.
#[derive(Debug)]
pub(super) struct Sockets(pub(super) mio::Registry);

impl Edge for Sockets {
    type Socket = TcpStream;

    fn register(&mut self, socket: &mut TcpStream, slot: u32) -> io::Result<()> {
        let token = Token(slot as usize);
        let both = Interest::READABLE | Interest::WRITABLE;
        self.0.register(socket, token, both)
    }

    fn shut(socket: &mut TcpStream) -> io::Result<()> {
        socket.shutdown(Shutdown::Write)
    }
}

/// Runs a worker until it is told to stop.
pub(super) fn run(
    mut worker: Worker<Sockets>,
    mut poll: Poll,
    mut inlets: Inlets<TcpStream, PollWaker>,
    clock: Clock,
) {
    let mut events = Events::with_capacity(EVENTS_MAX);
    let mut next = Next::Wait(None);
    loop {
        let timeout = match next {
            Next::Turn => Some(Duration::ZERO),
            Next::Wait(deadline) => clock.until(deadline),
            Next::End => break,
        };
        let asked_at = clock.now();
        match poll.poll(&mut events, timeout) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => {
                unreachable!("a poll of our own fails only when interrupted: {error}")
            }
        }
        let polled = Polled {
            asked_at,
            now: clock.now(),
            events: events.iter().map(event),
        };
        next = worker.turn(&mut inlets, polled);
    }
    worker.close_all();
}

fn event(event: &mio::event::Event) -> Event {
    if event.token() == WAKER {
        return Event::Mail;
    }
    let slot = u32::try_from(event.token().0).expect("a socket has the token of its slot");
    Event::Socket(
        slot,
        Readiness {
            readable: event.is_readable(),
            read_closed: event.is_read_closed(),
            writable: event.is_writable(),
            write_closed: event.is_write_closed(),
            error: event.is_error(),
        },
    )
}
