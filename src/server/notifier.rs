//! Sends one-way requests to brokers over connections of its own (spec 2.16, Q24).
//!
//! Connecting and writing never wait, so a broker that does not answer delays nobody; only the look-up of a host name does, and
//! it delays notices alone. What cannot be sent is dropped: brokers poll for the same news every second (spec 3.7).

use std::{
    collections::{BTreeMap, VecDeque},
    io::{self, ErrorKind, Read, Write},
    net::{SocketAddr, ToSocketAddrs},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use mio::{Events, Interest, Poll, Token, event::Event, net::TcpStream};

use super::{
    clock::Clock,
    message::{Notice, PollWaker},
};
use crate::{
    connection::deadlines::Deadlines,
    limits::{
        CONNECT_TIMEOUT, NOTICE_ANSWER_LEN_MAX, NOTICES_MAX, NOTICES_PER_BROKER_MAX,
        NOTIFIER_IDLE_TIMEOUT, NOTIFIER_LINKS_MAX,
    },
    sync::{Flag, Receiver},
    time::Timestamp,
};

/// The mailbox's token; sockets have those of their slots.
pub(super) const WAKER: Token = Token(usize::MAX);

/// The thread that talks to brokers.
#[derive(Debug)]
pub(super) struct Notifier {
    registry: mio::Registry,
    links: Vec<Option<Link>>,
    /// Slots of `links` by broker address.
    slots: BTreeMap<Arc<str>, u32>,
    free: Vec<u32>,
    deadlines: Deadlines,
    now: Timestamp,
}

/// One connection to a broker.
#[derive(Debug)]
struct Link {
    broker: Arc<str>,
    socket: TcpStream,
    connected: bool,
    frames: VecDeque<Bytes>,
    /// Bytes of the first frame that are sent.
    sent: usize,
    /// Bytes that came since the last notice.
    discarded: usize,
    /// When it is given up: not connected by then, or not used since.
    ends_at: Timestamp,
}

impl Notifier {
    pub(super) fn new(registry: mio::Registry) -> Self {
        Self {
            registry,
            links: Vec::new(),
            slots: BTreeMap::new(),
            free: Vec::new(),
            deadlines: Deadlines::default(),
            now: Timestamp::default(),
        }
    }

    /// Runs until `stop` is raised and the waker woken.
    pub(super) fn run(
        mut self,
        mut poll: Poll,
        mut notices: Receiver<Notice, PollWaker>,
        clock: Clock,
        stop: &Flag,
    ) {
        let mut events = Events::with_capacity(256);
        while !stop.is_raised() {
            match poll.poll(&mut events, self.timeout(clock)) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => {
                    unreachable!("a poll of our own fails only when interrupted: {error}")
                }
            }
            self.now = clock.now();
            for event in &events {
                if event.token() == WAKER {
                    // Looking up a name may take long: a stop does not wait for all of them.
                    notices.drain(NOTICES_MAX, |notice| {
                        if !stop.is_raised() {
                            self.send(&notice);
                        }
                    });
                } else if let Ok(slot) = u32::try_from(event.token().0) {
                    self.handle_event(slot, event);
                }
            }
            self.end_due();
        }
    }

    fn timeout(&self, clock: Clock) -> Option<Duration> {
        if self.slots.is_empty() {
            return None;
        }
        clock.until(self.deadlines.poll_timeout())
    }

    fn send(&mut self, notice: &Notice) {
        for broker in &notice.to {
            match self.slot_of(broker) {
                Ok(slot) => {
                    let link = self.links[slot as usize]
                        .as_mut()
                        .expect("a slot in use has a link");
                    link.enqueue(notice.frame.clone());
                    self.advance(slot);
                }
                Err(error) => tracing::debug!("cannot notify broker {broker}: {error}"),
            }
        }
    }

    /// The link to a broker, connecting if there is none.
    fn slot_of(&mut self, broker: &Arc<str>) -> io::Result<u32> {
        if let Some(slot) = self.slots.get(broker).copied() {
            // A broker may have closed the connection meanwhile; what is written to it then is lost without an error.
            let link = self.links[slot as usize].as_mut();
            match link.map_or(Ok(()), Link::discard_input) {
                Ok(()) => return Ok(slot),
                Err(error) => self.drop_link(slot, &error),
            }
        }
        if self.slots.len() == NOTIFIER_LINKS_MAX {
            return Err(io::Error::other(format!(
                "already connected to {NOTIFIER_LINKS_MAX} brokers"
            )));
        }
        let mut socket = TcpStream::connect(resolve(broker)?)?;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.links.push(None);
            u32::try_from(self.links.len() - 1).expect("links are bounded")
        });
        let interest = Interest::READABLE | Interest::WRITABLE;
        if let Err(error) = self
            .registry
            .register(&mut socket, Token(slot as usize), interest)
        {
            self.free.push(slot);
            return Err(error);
        }
        let ends_at = self.now.after(CONNECT_TIMEOUT);
        self.links[slot as usize] = Some(Link {
            broker: Arc::clone(broker),
            socket,
            connected: false,
            frames: VecDeque::new(),
            sent: 0,
            discarded: 0,
            ends_at,
        });
        self.slots.insert(Arc::clone(broker), slot);
        self.deadlines.arm(slot, ends_at);
        Ok(slot)
    }

    fn handle_event(&mut self, slot: u32, event: &Event) {
        let Some(Some(link)) = self.links.get_mut(slot as usize) else {
            return;
        };
        if event.is_readable() || event.is_read_closed() {
            let still_open = link.discard_input();
            if let Err(error) = still_open {
                self.drop_link(slot, &error);
                return;
            }
        }
        self.advance(slot);
    }

    /// Connects and writes as far as it goes.
    fn advance(&mut self, slot: u32) {
        let Some(link) = self.links[slot as usize].as_mut() else {
            return;
        };
        let advanced = link.advance(self.now);
        let ends_at = link.ends_at;
        match advanced {
            Ok(()) => self.deadlines.arm(slot, ends_at),
            Err(error) => self.drop_link(slot, &error),
        }
    }

    /// Gives up what could not connect in time or was not used for long.
    fn end_due(&mut self) {
        while let Some(slot) = self.deadlines.pop_due(self.now) {
            let Some(link) = self.links[slot as usize].as_ref() else {
                continue;
            };
            if link.ends_at > self.now {
                self.deadlines.arm(slot, link.ends_at);
            } else {
                self.drop_link(slot, &ErrorKind::TimedOut.into());
            }
        }
    }

    fn drop_link(&mut self, slot: u32, reason: &io::Error) {
        if let Some(link) = self.links[slot as usize].take() {
            self.slots.remove(&link.broker);
            self.free.push(slot);
            let unsent = link.frames.len();
            tracing::debug!(
                "connection to broker {} ended, {unsent} notices unsent: {reason}",
                link.broker
            );
        }
    }
}

impl Link {
    /// Adds a frame; of too many the oldest that is not half sent goes.
    fn enqueue(&mut self, frame: Bytes) {
        if self.frames.len() == NOTICES_PER_BROKER_MAX {
            self.frames.remove(1);
        }
        self.frames.push_back(frame);
        self.discarded = 0;
    }

    /// Answers are not asked for; whatever comes is thrown away. Fails at the end of the connection, and if more comes than any
    /// answer would be: who never stops sending would keep this thread from the others, and from a stop.
    fn discard_input(&mut self) -> io::Result<()> {
        let mut scratch = [0; 1024];
        while self.discarded < NOTICE_ANSWER_LEN_MAX {
            match self.socket.read(&mut scratch) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.discarded += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::WouldBlock | ErrorKind::NotConnected
                    ) =>
                {
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other("it sends, though nothing is asked of it"))
    }

    fn advance(&mut self, now: Timestamp) -> io::Result<()> {
        if !self.connected {
            if let Some(error) = self.socket.take_error()? {
                return Err(error);
            }
            match self.socket.peer_addr() {
                Ok(_) => self.connected = true,
                Err(error) if error.kind() == ErrorKind::NotConnected => return Ok(()),
                Err(error) => return Err(error),
            }
            self.socket.set_nodelay(true)?;
            self.ends_at = now.after(NOTIFIER_IDLE_TIMEOUT);
        }
        while let Some(frame) = self.frames.front() {
            match self.socket.write(&frame[self.sent..]) {
                Ok(count) => {
                    self.sent += count;
                    self.ends_at = now.after(NOTIFIER_IDLE_TIMEOUT);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if self.sent == frame.len() {
                self.frames.pop_front();
                self.sent = 0;
            }
        }
        Ok(())
    }
}

/// Where a registered address leads.
fn resolve(broker: &str) -> io::Result<SocketAddr> {
    if let Ok(address) = broker.parse() {
        return Ok(address);
    }
    let nowhere = || io::Error::new(ErrorKind::NotFound, "the name has no address");
    broker.to_socket_addrs()?.next().ok_or_else(nowhere)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    #[test]
    fn of_too_many_frames_for_one_broker_the_oldest_goes_that_is_not_half_sent() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut link = Link {
            broker: Arc::from("b"),
            socket: TcpStream::connect(listener.local_addr().unwrap()).unwrap(),
            connected: false,
            frames: VecDeque::new(),
            sent: 1,
            discarded: 0,
            ends_at: Timestamp::default(),
        };
        let frame = |number: usize| Bytes::from(number.to_string());
        for number in 0..NOTICES_PER_BROKER_MAX + 2 {
            link.enqueue(frame(number));
        }
        let expected = [0].into_iter().chain(3..NOTICES_PER_BROKER_MAX + 2);
        let expected: Vec<_> = expected.map(frame).collect();
        assert_eq!(Vec::from(link.frames), expected);
    }
}
