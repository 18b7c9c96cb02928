//! Opens the listening socket.

use std::{
    io::{self, ErrorKind},
    net::{SocketAddr, ToSocketAddrs},
};

use mio::net::TcpListener;
use socket2::{Domain, Protocol, Socket, Type};

use crate::config::Config;

/// Binds and listens as configured. Accepted sockets inherit the buffer sizes.
pub(super) fn open(config: &Config) -> io::Result<TcpListener> {
    let mut last_error = io::Error::new(ErrorKind::NotFound, "the name has no address");
    for address in (config.bind_address(), config.listen_port()).to_socket_addrs()? {
        match open_at(address, config) {
            Ok(listener) => return Ok(listener),
            Err(error) => last_error = error,
        }
    }
    Err(last_error)
}

fn open_at(address: SocketAddr, config: &Config) -> io::Result<TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    socket.set_nonblocking(true)?;
    // A restart must not wait for the connections of the server before it.
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    // Set only if asked for: a fixed size switches the kernel's own tuning off.
    if let Some(len) = config.server_socket_snd_buf_size() {
        socket.set_send_buffer_size(len)?;
    }
    if let Some(len) = config.server_socket_rcv_buf_size() {
        socket.set_recv_buffer_size(len)?;
    }
    socket.bind(&address.into())?;
    socket.listen(config.server_socket_backlog().max(BACKLOG_MIN))?;
    Ok(TcpListener::from_std(socket.into()))
}

/// What the original hard-wires (spec 1.10).
const BACKLOG_MIN: i32 = 1024;
