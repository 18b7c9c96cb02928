//! A blocking connection on which every wait is bounded.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::reply::{Parsed, Reply, parse};

/// Opening a connection on loopback takes longer only when nobody listens properly.
const CONNECT_BOUND: Duration = Duration::from_secs(5);

/// A server that does not read for so long is taken for one that closed.
const WRITE_BOUND: Duration = Duration::from_secs(10);

/// One connection to the server under test.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    pending: Vec<u8>,
    closed: bool,
}

/// What came within the bound.
#[derive(Debug)]
pub enum Received {
    /// A frame.
    Frame(Box<Reply>),
    /// Nothing.
    Nothing,
    /// The end of the stream, or a reset.
    Closed,
    /// Bytes that are no remoting frame.
    Foreign(Vec<u8>),
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// Whatever the connect fails with.
    pub fn open(address: SocketAddr) -> io::Result<Connection> {
        let stream = TcpStream::connect_timeout(&address, CONNECT_BOUND)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(WRITE_BOUND))?;
        Ok(Connection {
            stream,
            pending: Vec::new(),
            closed: false,
        })
    }

    /// Takes over a stream somebody else opened.
    #[must_use]
    pub fn accepted(stream: TcpStream) -> Connection {
        Connection {
            stream,
            pending: Vec::new(),
            closed: false,
        }
    }

    /// Writes bytes; a peer that closed shows at the next [`Connection::receive`].
    pub fn send(&mut self, bytes: &[u8]) {
        // The answer to "was it closed" is in the reading direction: bytes may still wait to be read there.
        if self.stream.write_all(bytes).is_err() {
            self.closed = true;
        }
    }

    /// Waits for one frame until `deadline`.
    pub fn receive(&mut self, deadline: Instant) -> Received {
        loop {
            match parse(&self.pending) {
                Parsed::Frame(reply, length) => {
                    self.pending.drain(..length);
                    return Received::Frame(reply);
                }
                Parsed::Foreign => return Received::Foreign(std::mem::take(&mut self.pending)),
                Parsed::Partial => {}
            }
            match self.read_some(deadline) {
                Ok(0) => return Received::Closed,
                Ok(_) => {}
                Err(error) if is_timeout(&error) && self.closed => return Received::Closed,
                Err(error) if is_timeout(&error) => return Received::Nothing,
                Err(_) => return Received::Closed,
            }
        }
    }

    fn read_some(&mut self, deadline: Instant) -> io::Result<usize> {
        let mut buffer = [0; 16 * 1024];
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            self.stream
                .set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
            match self.stream.read(&mut buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(length) => {
                    self.pending.extend(&buffer[..length]);
                    return Ok(length);
                }
            }
        }
    }

    /// Sends FIN and keeps reading.
    pub fn half_close(&mut self) {
        // A connection the peer has closed already needs no FIN of ours.
        self.stream.shutdown(Shutdown::Write).unwrap_or_default();
    }

    /// Waits until an answer lies unread in the socket; closing it then sends RST instead of FIN.
    pub fn await_unread(&mut self, deadline: Instant) {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut byte = [0; 1];
        // Without an unread byte the close is an ordinary one, which the step's own observation would show.
        if self
            .stream
            .set_read_timeout(Some(left.max(Duration::from_millis(1))))
            .is_ok()
        {
            self.stream.peek(&mut byte).unwrap_or_default();
        }
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
