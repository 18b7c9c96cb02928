//! One connection to the server: its socket, its unwritten bytes, the beginning of an unfinished reply, its window.
//!
//! All requests of a turn leave in one contiguous write, and reading stops after a short read: a write for each request would cost
//! several times as much, on both sides.

use std::io::{self, ErrorKind, Read, Write};

use mio::{Interest, Registry, Token, net::TcpStream};

use crate::{
    frame::OPAQUE_BASE,
    reply::{Hints, REPLY_LEN_MAX},
    source::Broker,
    window::{Sent, Window},
};

/// Length of a thread's read buffer: the longest reply and a pipeline behind it.
pub const SCRATCH_LEN: usize = REPLY_LEN_MAX + 256 * 1024;

/// Unwritten bytes beyond which a connection takes no more requests.
const UNWRITTEN_LEN_MAX: usize = 1024 * 1024;

/// What a read found.
#[derive(Debug, PartialEq, Eq)]
pub enum Input {
    /// So many bytes in the buffer, and perhaps more in the socket.
    Filled(usize),
    /// So many bytes in the buffer, and no more in the socket.
    Last(usize),
    /// Nothing to read.
    Nothing,
    /// The server will send no more.
    Closed,
}

/// A connection, open or not.
#[derive(Debug)]
pub struct Connection {
    stream: Option<TcpStream>,
    /// The broker that it belongs to, if to any.
    pub broker: Option<Broker>,
    /// Requests that may be out at once.
    pub depth: usize,
    /// Since when, in ns, it could have taken a request: what was held back before then was not the generator's fault.
    pub free_since: u64,
    /// Requests wait for the window or the socket.
    pub is_blocked: bool,
    /// It failed: what falls due on it can never be sent.
    pub is_lost: bool,
    /// Where replies have their keys.
    pub hints: Hints,
    window: Window,
    unwritten: Vec<u8>,
    written: usize,
    partial: Vec<u8>,
}

impl Connection {
    /// A connection with at most `window_len` requests out.
    pub fn new(stream: TcpStream, broker: Option<Broker>, window_len: usize) -> Self {
        Self {
            stream: Some(stream),
            broker,
            depth: window_len,
            free_since: 0,
            is_blocked: false,
            is_lost: false,
            hints: Hints::default(),
            window: Window::new(window_len),
            unwritten: Vec::new(),
            written: 0,
            partial: Vec::new(),
        }
    }

    /// Whether there is a socket.
    pub fn is_open(&self) -> bool {
        self.stream.is_some()
    }

    /// Whether a request of so many frames may be sent.
    pub fn has_room(&self, frames: usize) -> bool {
        self.is_open()
            && self.window.in_flight() < self.depth
            && self.window.room() >= frames
            && self.unwritten.len() < UNWRITTEN_LEN_MAX
    }

    /// Requests without a reply.
    pub fn in_flight(&self) -> usize {
        self.window.in_flight()
    }

    /// The parts that a request is appended with: broker, buffer, window.
    pub fn sending(&mut self) -> (Option<&mut Broker>, &mut Vec<u8>, &mut Window) {
        (self.broker.as_mut(), &mut self.unwritten, &mut self.window)
    }

    /// The request that a reply with this opaque answers.
    pub fn answered(&mut self, opaque: u32) -> Option<Sent> {
        if opaque == 0 {
            return self.window.close_oldest();
        }
        let slot = opaque.checked_sub(OPAQUE_BASE)?;
        self.window.close(usize::try_from(slot).ok()?)
    }

    /// The oldest request without a reply, given up.
    pub fn abandon_oldest(&mut self) -> Option<Sent> {
        self.window.close_oldest()
    }

    /// Makes the poll report this connection.
    ///
    /// # Errors
    /// Those of the system.
    pub fn watch(&mut self, registry: &Registry, token: usize) -> io::Result<()> {
        let Some(stream) = &mut self.stream else {
            return Ok(());
        };
        registry.register(
            stream,
            Token(token),
            Interest::READABLE | Interest::WRITABLE,
        )
    }

    /// Ends what [`Self::watch`] began.
    ///
    /// # Errors
    /// Those of the system.
    pub fn unwatch(&mut self, registry: &Registry) -> io::Result<()> {
        let Some(stream) = &mut self.stream else {
            return Ok(());
        };
        registry.deregister(stream)
    }

    /// Closes the socket and forgets what was under way.
    pub fn close(&mut self) {
        self.stream = None;
        self.unwritten.clear();
        self.written = 0;
        self.partial.clear();
        self.is_blocked = false;
        while self.window.close_oldest().is_some() {}
    }

    /// Takes a socket again.
    pub fn reopen(&mut self, stream: TcpStream) {
        self.close();
        self.is_lost = false;
        self.stream = Some(stream);
    }

    /// Reads once, behind the beginning of an unfinished reply.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn read(&mut self, scratch: &mut [u8]) -> io::Result<Input> {
        let Some(stream) = &mut self.stream else {
            return Ok(Input::Nothing);
        };
        let kept = self.partial.len();
        scratch[..kept].copy_from_slice(&self.partial);
        match stream.read(&mut scratch[kept..]) {
            Ok(0) => Ok(Input::Closed),
            Ok(count) => {
                self.partial.clear();
                let filled = kept + count;
                Ok(if filled == scratch.len() {
                    Input::Filled(filled)
                } else {
                    Input::Last(filled)
                })
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(Input::Nothing),
            Err(error) => Err(error),
        }
    }

    /// Keeps the beginning of an unfinished reply for the next read.
    pub fn keep(&mut self, partial: &[u8]) {
        self.partial.extend_from_slice(partial);
    }

    /// Writes what is there; what the socket does not take waits until it is writable.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn flush(&mut self) -> io::Result<()> {
        let Some(stream) = &mut self.stream else {
            return Ok(());
        };
        while self.written < self.unwritten.len() {
            match stream.write(&self.unwritten[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::NotConnected => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        self.unwritten.clear();
        self.written = 0;
        Ok(())
    }
}
