//! The null server: counts frames by their length prefix and answers each with the same bytes. Nothing else.
//!
//! It is what this machine's kernel and this generator can do at most; a server is as good as its distance from it. Replies carry
//! opaque 0, since writing each request's opaque would mean to read and copy: the generator then takes them in order. All replies have
//! one length, whatever was asked.
//!
//! Answers leave as soon as a connection has been read, or wait until so many connections have some: a peer that is woken by a write
//! finds more of them then.

use std::{
    io::{self, ErrorKind, Read, Write},
    net::SocketAddr,
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
const LISTENER: Token = Token(usize::MAX);
const READ_LEN: usize = 64 * 1024;
/// About what is written at once; more replies than that are written in turns.
const BLOCK_LEN: usize = 256 * 1024;
const CONNECTIONS_MAX: usize = 65_536;

/// A null server that listens.
#[derive(Debug)]
pub struct NullServer {
    poll: Poll,
    listener: TcpListener,
    connections: Vec<Option<Peer>>,
    reply_len: usize,
    /// Connections whose replies are written together.
    write_together: usize,
    /// Those that wait for it.
    unwritten: Vec<usize>,
    block: Vec<u8>,
    scratch: Vec<u8>,
}

#[derive(Debug)]
struct Peer {
    stream: TcpStream,
    splitter: Splitter,
    owed: usize,
    is_closed: bool,
}

impl NullServer {
    /// Listens; port 0 is any free port. The replies of `write_together` connections leave together, or those of fewer when no others
    /// have something to read.
    ///
    /// # Errors
    /// When the address cannot be had, or the replies would be too short or too long.
    pub fn bind(address: SocketAddr, reply_len: usize, write_together: usize) -> Result<Self> {
        if !(REPLY_LEN_MIN..=REPLY_LEN_MAX).contains(&reply_len) {
            let text = format!(
                "replies of {reply_len} bytes; allowed are {REPLY_LEN_MIN} to {REPLY_LEN_MAX}"
            );
            return Err(Error::new(text));
        }
        let listen = || {
            let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
            socket.set_reuse_address(true)?;
            socket.set_nonblocking(true)?;
            socket.bind(&address.into())?;
            socket.listen(BACKLOG)?;
            let mut listener = TcpListener::from_std(socket.into());
            let poll = Poll::new()?;
            poll.registry()
                .register(&mut listener, LISTENER, Interest::READABLE)?;
            io::Result::Ok((poll, listener))
        };
        let (poll, listener) =
            listen().map_err(Error::while_doing(format_args!("listen on {address}")))?;
        let reply = reply(reply_len);
        Ok(Self {
            poll,
            listener,
            connections: Vec::new(),
            reply_len,
            write_together,
            unwritten: Vec::new(),
            block: reply.repeat(BLOCK_LEN.div_ceil(reply_len)),
            scratch: vec![0; READ_LEN],
        })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// Those of the system.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
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
            match self
                .poll
                .poll(&mut events, Some(left.min(Duration::from_secs(1))))
            {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                outcome => outcome?,
            }
            for event in &events {
                if event.token() == LISTENER {
                    self.accept()?;
                    continue;
                }
                let slot = event.token().0;
                let Some(peer) = &mut self.connections[slot] else {
                    continue;
                };
                peer.read(&mut self.scratch, self.reply_len, event.is_read_closed());
                if peer.owed > 0 || peer.is_closed {
                    self.unwritten.push(slot);
                }
                if self.unwritten.len() >= self.write_together {
                    self.write();
                }
            }
            self.write();
        }
    }

    /// Writes what is owed to those that wait for it, and lets go of those that have closed.
    fn write(&mut self) {
        for slot in self.unwritten.drain(..) {
            // A connection can wait twice, for what it sent and for room to write; the second time nothing is left to do.
            let Some(peer) = &mut self.connections[slot] else {
                continue;
            };
            let written = peer.write(&self.block, self.reply_len);
            if written.is_err() || peer.is_closed {
                self.connections[slot] = None;
            }
        }
    }

    fn accept(&mut self) -> io::Result<()> {
        loop {
            let mut stream = match self.listener.accept() {
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
                owed: 0,
                is_closed: false,
            });
        }
    }
}

impl Peer {
    /// Reads what is there and counts the replies to it.
    fn read(&mut self, scratch: &mut [u8], reply_len: usize, to_the_end: bool) {
        loop {
            let count = match self.stream.read(scratch) {
                Ok(count @ 1..) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Ok(0) | Err(_) => {
                    self.is_closed = true;
                    return;
                }
            };
            self.owed += self.splitter.frames(&scratch[..count]) * reply_len;
            // A short read empties the socket, but only a read of 0 tells that the peer has closed.
            if count < scratch.len() && !to_the_end {
                return;
            }
        }
    }

    fn write(&mut self, block: &[u8], reply_len: usize) -> io::Result<()> {
        while self.owed > 0 {
            // The bytes owed end with a reply's end, so their number tells where in a reply they begin.
            let start = (reply_len - self.owed % reply_len) % reply_len;
            let end = block.len().min(start + self.owed);
            match self.stream.write(&block[start..end]) {
                Ok(count) => self.owed -= count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
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
