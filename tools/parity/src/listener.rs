//! A listening socket in the place of a broker, which hears what the server sends of its own accord.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::connection::{Connection, Received};
use crate::reply::Reply;

/// A connection on which nothing comes for so long is left alone.
const QUIET_BOUND: Duration = Duration::from_secs(300);

/// The socket, and the frames that came to it.
#[derive(Debug)]
pub struct Listener {
    address: SocketAddr,
    frames: Receiver<Reply>,
}

impl Listener {
    /// Opens a socket on a port of its own.
    ///
    /// # Errors
    /// No port can be bound.
    pub fn open() -> io::Result<Listener> {
        let socket = TcpListener::bind("127.0.0.1:0")?;
        let address = socket.local_addr()?;
        let (sender, frames) = channel();
        // The threads end with the test process at the latest; a reader ends when the server closes.
        thread::spawn(move || {
            while let Ok((stream, _)) = socket.accept() {
                let sender = sender.clone();
                thread::spawn(move || read(Connection::accepted(stream), &sender));
            }
        });
        Ok(Listener { address, frames })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The next frame, if one comes within `bound`.
    #[must_use]
    pub fn next(&self, bound: Duration) -> Option<Reply> {
        self.frames.recv_timeout(bound).ok()
    }
}

fn read(mut connection: Connection, sender: &Sender<Reply>) {
    while let Received::Frame(reply) = connection.receive(Instant::now() + QUIET_BOUND) {
        if sender.send(*reply).is_err() {
            return;
        }
    }
}
