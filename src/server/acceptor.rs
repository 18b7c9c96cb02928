//! Accepts connections and hands them to the workers in turn.
//!
//! Does no work for a connection, so nothing a peer does delays the next one's accept. Out of file descriptors it says so once
//! and tries again at a deadline; what waits meanwhile waits in the kernel's backlog.

use std::{
    io::{self, ErrorKind},
    net::SocketAddr,
    time::Duration,
};

use mio::{
    Events, Interest, Poll, Token,
    net::{TcpListener, TcpStream},
};

use super::{
    clock::Clock,
    message::{Order, PollWaker},
};
use crate::{
    limits::{ACCEPT_BATCH_MAX, ACCEPT_RETRY_INTERVAL, RETRY_INTERVAL},
    sync::{Flag, Full, Sender},
    time::Timestamp,
};

/// The token of the waker with which the acceptor is stopped.
pub(super) const WAKER: Token = Token(1);
const LISTENER: Token = Token(0);

/// The thread that owns the listener.
#[derive(Debug)]
pub(super) struct Acceptor {
    listener: TcpListener,
    workers: Vec<Sender<Order, PollWaker>>,
    /// Workers to wake at the end of the turn, by index.
    handed: Vec<bool>,
    /// The worker whose turn it is.
    next: usize,
    /// A connection that no worker has room for.
    unplaced: Option<(TcpStream, SocketAddr)>,
    /// The backlog may hold more.
    ready: bool,
    retry_at: Option<Timestamp>,
    /// The last accept failed, and that has been said.
    failing: bool,
}

impl Acceptor {
    pub(super) fn new(listener: TcpListener, workers: Vec<Sender<Order, PollWaker>>) -> Self {
        Self {
            listener,
            handed: vec![false; workers.len()],
            workers,
            next: 0,
            unplaced: None,
            ready: true,
            retry_at: None,
            failing: false,
        }
    }

    /// Accepts until `stop` is raised and the waker woken, then closes the listener.
    pub(super) fn run(mut self, mut poll: Poll, clock: Clock, stop: &Flag) {
        poll.registry()
            .register(&mut self.listener, LISTENER, Interest::READABLE)
            .expect("a poll of our own takes an open listener");
        let mut events = Events::with_capacity(8);
        while !stop.is_raised() {
            match poll.poll(&mut events, self.timeout(clock)) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => {
                    unreachable!("a poll of our own fails only when interrupted: {error}")
                }
            }
            self.ready |= events.iter().any(|event| event.token() == LISTENER);
            self.turn(clock.now());
        }
    }

    fn timeout(&self, clock: Clock) -> Option<Duration> {
        match self.retry_at {
            Some(_) => clock.until(self.retry_at),
            None if self.ready => Some(Duration::ZERO),
            None => None,
        }
    }

    fn turn(&mut self, now: Timestamp) {
        if self.retry_at.is_some_and(|retry_at| retry_at > now) {
            return;
        }
        self.retry_at = None;
        for _ in 0..ACCEPT_BATCH_MAX {
            if !self.ready || self.retry_at.is_some() {
                break;
            }
            let accepted = match self.unplaced.take() {
                Some(accepted) => Ok(accepted),
                None => self.listener.accept(),
            };
            match accepted {
                Ok((socket, address)) => {
                    // One listener serves both families, and calls an IPv4 address by its name in IPv6.
                    let address = SocketAddr::new(address.ip().to_canonical(), address.port());
                    if let Err(unplaced) = self.place(socket, address) {
                        self.unplaced = Some(unplaced);
                        self.retry_at = Some(now.after(RETRY_INTERVAL));
                    }
                }
                Err(error) => self.handle_error(&error, now),
            }
        }
        for (worker, handed) in self.workers.iter().zip(&mut self.handed) {
            if std::mem::take(handed) {
                worker.wake();
            }
        }
    }

    /// Gives the connection to the next worker that has room.
    fn place(
        &mut self,
        socket: TcpStream,
        address: SocketAddr,
    ) -> Result<(), (TcpStream, SocketAddr)> {
        if let Err(error) = socket.set_nodelay(true) {
            // The peer has gone already; its worker finds out.
            tracing::trace!("no TCP_NODELAY [{address}]: {error}");
        }
        let mut order = Order::Serve(socket, address);
        for _ in 0..self.workers.len() {
            let worker = self.next;
            self.next = (self.next + 1) % self.workers.len();
            match self.workers[worker].push(order) {
                Ok(()) => {
                    self.handed[worker] = true;
                    return Ok(());
                }
                Err(Full(refused)) => order = refused,
            }
        }
        let Order::Serve(socket, address) = order else {
            unreachable!("a mailbox hands back what it was given");
        };
        Err((socket, address))
    }

    fn handle_error(&mut self, error: &io::Error, now: Timestamp) {
        if error.kind() == ErrorKind::WouldBlock {
            self.ready = false;
            // Only now: at the limit, single connections find a place all the time.
            if std::mem::take(&mut self.failing) {
                tracing::info!("every connection that waited is accepted");
            }
            return;
        }
        let of_one_connection = [
            ErrorKind::Interrupted,
            ErrorKind::ConnectionAborted,
            ErrorKind::ConnectionReset,
        ];
        if of_one_connection.contains(&error.kind()) {
            return;
        }
        // Out of file descriptors or memory, mostly: no error ends the accepting.
        if !std::mem::replace(&mut self.failing, true) {
            tracing::error!(
                "cannot accept connections, trying again every {ACCEPT_RETRY_INTERVAL:?}: {error} (if too many files are \
                 open, raise the limit: ulimit -n)"
            );
        }
        self.retry_at = Some(now.after(ACCEPT_RETRY_INTERVAL));
    }
}
