//! The null server: counts frames by their length prefix and answers each with the same bytes. Nothing else.
//!
//! It is what this machine's kernel and this generator can do at most; a server is as good as its distance from it. Replies carry
//! opaque 0, since writing each request's opaque would mean to read and copy: the generator then takes them in order. All replies have
//! one length, whatever was asked; who asks for lists of everything connects to a second port, where the replies have other lengths.
//!
//! Answers leave as soon as a connection has been read, or wait until so many connections have some: a peer that is woken by a write
//! finds more of them then.

use std::{
    io::{self, ErrorKind, Read, Write},
    mem,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use mio::{
    Events, Interest, Poll, Token,
    net::{TcpListener, TcpStream},
};
use socket2::{Domain, Socket, Type};

use crate::{
    error::{Error, Result},
    reply::REPLY_LEN_MAX,
};

const HEADER: &[u8] = br#"{"code":0,"flag":1,"language":"JAVA","opaque":0,"serializeTypeCurrentRPC":"JSON","version":479}"#;

/// Length of the shortest reply: a header and one byte of body.
pub const REPLY_LEN_MIN: usize = 8 + HEADER.len() + 1;

/// Connections that may wait to be accepted; one that finds no place tries again a second later.
const BACKLOG: i32 = 4_096;
const READ_LEN: usize = 64 * 1024;
/// What one connection is written before the others have their turn.
const WRITTEN_PER_TURN: usize = 128 * 1024;
const CONNECTIONS_MAX: usize = 65_536;
/// Tokens from here on are those of listeners.
const LISTENERS: usize = CONNECTIONS_MAX;

/// Longest of the long replies.
pub const LONG_REPLY_LEN_MAX: usize = 16 * 1024 * 1024;

/// A null server that listens.
#[derive(Debug)]
pub struct NullServer {
    poll: Poll,
    address: SocketAddr,
    listeners: Vec<Listener>,
    connections: Vec<Option<Peer>>,
    /// Connections whose replies are written together.
    write_together: usize,
    /// Those that wait for it.
    unwritten: Vec<usize>,
    /// Those that are owed more than a turn's share, and have the next one behind all that can be read by then.
    unfinished: Vec<usize>,
    scratch: Vec<u8>,
}

#[derive(Debug)]
struct Listener {
    socket: TcpListener,
    replies: Arc<Replies>,
}

/// What the connections of a listener are answered, over and over again.
#[derive(Debug)]
struct Replies {
    lens: Vec<usize>,
    /// All of them once.
    period: usize,
    /// As often as fills a turn.
    block: Vec<u8>,
}

#[derive(Debug)]
struct Peer {
    stream: TcpStream,
    splitter: Splitter,
    replies: Arc<Replies>,
    /// Which reply is owed next.
    next: usize,
    /// How much of a period is written.
    sent: usize,
    owed: usize,
    is_writable: bool,
    is_closed: bool,
    /// It is in one of the lists of those that are owed something.
    is_listed: bool,
}

impl NullServer {
    /// Listens; port 0 is any free port. The replies of `write_together` connections leave together, or those of fewer when no others
    /// have something to read.
    ///
    /// # Errors
    /// When the address cannot be had, or the replies would be too short or too long.
    pub fn bind(address: SocketAddr, reply_len: usize, write_together: usize) -> Result<Self> {
        let replies = Replies::new(vec![reply_len], REPLY_LEN_MAX)?;
        let poll = Poll::new().map_err(Error::while_doing("make a poll"))?;
        let mut server = Self {
            poll,
            address,
            listeners: Vec::new(),
            connections: Vec::new(),
            write_together,
            unwritten: Vec::new(),
            unfinished: Vec::new(),
            scratch: vec![0; READ_LEN],
        };
        server.address = server.listen(address, replies)?;
        Ok(server)
    }

    /// Listens at another free port too, where replies have these lengths in turns; says where.
    ///
    /// # Errors
    /// As for [`Self::bind`].
    pub fn listen_for_long(&mut self, lens: Vec<usize>) -> Result<SocketAddr> {
        let replies = Replies::new(lens, LONG_REPLY_LEN_MAX)?;
        let address = SocketAddr::new(self.address.ip(), 0);
        self.listen(address, replies)
    }

    fn listen(&mut self, address: SocketAddr, replies: Replies) -> Result<SocketAddr> {
        let listen = || {
            let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
            socket.set_reuse_address(true)?;
            socket.set_nonblocking(true)?;
            socket.bind(&address.into())?;
            socket.listen(BACKLOG)?;
            let mut socket = TcpListener::from_std(socket.into());
            let token = Token(LISTENERS + self.listeners.len());
            self.poll
                .registry()
                .register(&mut socket, token, Interest::READABLE)?;
            io::Result::Ok((socket.local_addr()?, socket))
        };
        let (address, socket) =
            listen().map_err(Error::while_doing(format_args!("listen on {address}")))?;
        let replies = Arc::new(replies);
        self.listeners.push(Listener { socket, replies });
        Ok(address)
    }

    /// Where it listens.
    #[must_use]
    pub fn local_address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `deadline`.
    ///
    /// # Errors
    /// Those of the poll and the listener; a connection's end only that connection.
    pub fn run(&mut self, deadline: Instant) -> io::Result<()> {
        let mut events = Events::with_capacity(1024);
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            self.turn(&mut events, left.min(Duration::from_secs(1)))?;
        }
    }

    /// Waits for events, serves those that have something to read, and then those that have waited for their next turn.
    fn turn(&mut self, events: &mut Events, timeout: Duration) -> io::Result<()> {
        let unfinished = mem::take(&mut self.unfinished);
        let timeout = if unfinished.is_empty() {
            timeout
        } else {
            Duration::ZERO
        };
        match self.poll.poll(events, Some(timeout)) {
            Err(error) if error.kind() == ErrorKind::Interrupted => events.clear(),
            outcome => outcome?,
        }
        for event in &*events {
            let slot = event.token().0;
            if slot >= LISTENERS {
                self.accept(slot - LISTENERS)?;
                continue;
            }
            let Some(peer) = &mut self.connections[slot] else {
                continue;
            };
            peer.read(&mut self.scratch, event.is_read_closed());
            if (peer.owed > 0 || peer.is_closed) && !peer.is_listed {
                peer.is_listed = true;
                self.unwritten.push(slot);
            }
            if self.unwritten.len() >= self.write_together {
                self.write();
            }
        }
        self.unwritten.extend(unfinished);
        self.write();
        Ok(())
    }

    /// Writes a turn of what is owed to those that wait for it, and lets go of those that have closed.
    fn write(&mut self) {
        for slot in self.unwritten.drain(..) {
            let Some(peer) = &mut self.connections[slot] else {
                continue;
            };
            let is_written = peer.write().is_ok();
            peer.is_listed = is_written && peer.owed > 0 && peer.is_writable;
            if peer.is_listed {
                self.unfinished.push(slot);
            } else if !is_written || (peer.is_closed && peer.owed == 0) {
                self.connections[slot] = None;
            }
        }
    }

    fn accept(&mut self, listener: usize) -> io::Result<()> {
        let Listener { socket, replies } = &self.listeners[listener];
        loop {
            let mut stream = match socket.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            };
            stream.set_nodelay(true)?;
            let free = self.connections.iter().position(Option::is_none);
            let slot = free.unwrap_or(self.connections.len());
            if slot == CONNECTIONS_MAX {
                continue;
            }
            if slot == self.connections.len() {
                self.connections.push(None);
            }
            let interest = Interest::READABLE | Interest::WRITABLE;
            self.poll
                .registry()
                .register(&mut stream, Token(slot), interest)?;
            self.connections[slot] = Some(Peer {
                stream,
                splitter: Splitter::default(),
                replies: Arc::clone(replies),
                next: 0,
                sent: 0,
                owed: 0,
                is_writable: true,
                is_closed: false,
                is_listed: false,
            });
        }
    }
}

impl Replies {
    fn new(lens: Vec<usize>, len_max: usize) -> Result<Self> {
        for len in &lens {
            if !(REPLY_LEN_MIN..=len_max).contains(len) {
                let text =
                    format!("replies of {len} bytes; allowed are {REPLY_LEN_MIN} to {len_max}");
                return Err(Error::new(text));
            }
        }
        let once: Vec<u8> = lens.iter().flat_map(|len| reply(*len)).collect();
        Ok(Self {
            period: once.len(),
            block: once.repeat(WRITTEN_PER_TURN.div_ceil(once.len())),
            lens,
        })
    }
}

impl Peer {
    /// Reads what is there and counts the replies to it.
    fn read(&mut self, scratch: &mut [u8], to_the_end: bool) {
        loop {
            let count = match self.stream.read(scratch) {
                Ok(count @ 1..) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Ok(0) | Err(_) => {
                    self.is_closed = true;
                    return;
                }
            };
            for _ in 0..self.splitter.frames(&scratch[..count]) {
                self.owed += self.replies.lens[self.next];
                self.next = (self.next + 1) % self.replies.lens.len();
            }
            // A short read empties the socket, but only a read of 0 tells that the peer has closed.
            if count < scratch.len() && !to_the_end {
                return;
            }
        }
    }

    /// Writes a turn's share of what is owed.
    fn write(&mut self) -> io::Result<()> {
        let Replies { period, block, .. } = &*self.replies;
        let mut room = WRITTEN_PER_TURN;
        self.is_writable = true;
        while self.owed > 0 && room > 0 {
            let end = block.len().min(self.sent + self.owed.min(room));
            match self.stream.write(&block[self.sent..end]) {
                Ok(count) => {
                    self.owed -= count;
                    self.sent = (self.sent + count) % period;
                    room -= count;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.is_writable = false;
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn reply(len: usize) -> Vec<u8> {
    let int = |value: usize| {
        u32::try_from(value)
            .expect("replies are bounded")
            .to_be_bytes()
    };
    let mut reply = int(len - 4).to_vec();
    reply.extend_from_slice(&int(HEADER.len()));
    reply.extend_from_slice(HEADER);
    reply.resize(len, b' ');
    reply
}

/// Counts the frames of a byte stream that comes in pieces.
#[derive(Debug, Default)]
struct Splitter {
    prefix: [u8; 4],
    prefix_len: usize,
    missing: usize,
}

impl Splitter {
    /// How many frames end in these bytes.
    fn frames(&mut self, mut bytes: &[u8]) -> usize {
        let mut frames = 0;
        loop {
            let skipped = self.missing.min(bytes.len());
            bytes = &bytes[skipped..];
            self.missing -= skipped;
            if self.missing == 0 && self.prefix_len == 4 {
                frames += 1;
                self.prefix_len = 0;
            }
            if bytes.is_empty() {
                return frames;
            }
            let taken = bytes.len().min(4 - self.prefix_len);
            self.prefix[self.prefix_len..self.prefix_len + taken].copy_from_slice(&bytes[..taken]);
            self.prefix_len += taken;
            bytes = &bytes[taken..];
            if self.prefix_len < 4 {
                return frames;
            }
            self.missing = usize::try_from(u32::from_be_bytes(self.prefix))
                .expect("a usize has 32 bits at least");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{net::Shutdown, thread};

    use super::*;
    use crate::reply::{Hints, Reply, frame_len, inspect};

    #[test]
    fn frames_are_counted_however_they_are_cut() {
        let mut bytes = Vec::new();
        for len in [0_u32, 1, 200, 3, 70_000, 0] {
            bytes.extend_from_slice(&len.to_be_bytes());
            bytes.resize(bytes.len() + usize::try_from(len).unwrap(), 1);
        }
        for piece in [1, 2, 3, 5, 199, 4_096, bytes.len()] {
            let mut splitter = Splitter::default();
            let counted: usize = bytes
                .chunks(piece)
                .map(|piece| splitter.frames(piece))
                .sum();
            assert_eq!(counted, 6, "in pieces of {piece}");
        }
    }

    #[test]
    fn however_much_is_owed_a_connection_is_written_one_share_a_turn() {
        let lens = vec![3_000_000, 500_000];
        let total = 2 * lens.iter().sum::<usize>();
        let mut server = NullServer::bind(([127, 0, 0, 1], 0).into(), 1_024, 1).unwrap();
        let long = server.listen_for_long(lens).unwrap();
        let mut sender = std::net::TcpStream::connect(long).unwrap();
        let mut reader = sender.try_clone().unwrap();
        let reading = thread::spawn(move || {
            let mut scratch = vec![0; READ_LEN];
            let mut left = total;
            while left > 0 {
                left -= reader.read(&mut scratch).unwrap();
            }
        });
        let request = [0, 0, 0, 1, b' '];
        let mut events = Events::with_capacity(16);
        // Four requests, one of them late, and the peer's end: each comes with an event of its own.
        sender.write_all(&request.repeat(3)).unwrap();
        let (mut owed, mut turns) = (6_500_000, 0);
        while !reading.is_finished() {
            server.turn(&mut events, Duration::from_millis(1)).unwrap();
            let peer = server.connections.first().and_then(Option::as_ref);
            let Some(peer) = peer.filter(|peer| turns > 0 || peer.owed > 0) else {
                continue;
            };
            assert!(peer.owed + WRITTEN_PER_TURN >= owed, "{} {owed}", peer.owed);
            owed = peer.owed;
            turns += 1;
            if turns == 3 {
                sender.write_all(&request).unwrap();
                sender.shutdown(Shutdown::Write).unwrap();
            }
        }
        reading.join().unwrap();
        assert!(turns >= total / WRITTEN_PER_TURN, "{turns}");
    }

    #[test]
    fn the_constant_reply_is_a_success_of_the_asked_length() {
        let reply = reply(1_024);
        assert_eq!(frame_len(&reply), Ok(Some(1_024)));
        let expected = Reply {
            code: 0,
            opaque: 0,
            is_response: true,
            body_len: 1_024 - 8 - HEADER.len(),
        };
        assert_eq!(inspect(&reply, &mut Hints::default()), Ok(expected));
    }
}
