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

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use socket2::SockRef;

    use super::*;
    use crate::config::Environment;

    /// The send and the receive buffer of a listener on a port of the system's choice.
    fn buffers(lines: &str) -> (usize, usize) {
        let mut config = Config::defaults(&Environment::default());
        let file = format!("listenPort=0\nbindAddress=127.0.0.1\n{lines}");
        assert_eq!(config.load_file("test.properties", file.as_bytes()), []);
        let listener = open(&config).unwrap();
        sizes(&SockRef::from(&listener))
    }

    fn sizes(socket: &Socket) -> (usize, usize) {
        (
            socket.send_buffer_size().unwrap(),
            socket.recv_buffer_size().unwrap(),
        )
    }

    #[test]
    fn c8_buffers_are_those_of_a_fresh_socket_unless_configured() {
        let fresh = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let fresh = sizes(&SockRef::from(&fresh));

        assert_eq!(buffers(""), fresh);
        let (send, receive) = buffers("serverSocketSndBufSize=20000\n");
        // The system doubles what it is told, for its own book-keeping. So half of its default would not be seen here.
        assert!(send >= 20_000 && send != fresh.0, "{send} {fresh:?}");
        assert_eq!(receive, fresh.1);
        let (send, receive) = buffers("serverSocketRcvBufSize=20000\n");
        assert!(
            receive >= 20_000 && receive != fresh.1,
            "{receive} {fresh:?}"
        );
        assert_eq!(send, fresh.0);
    }
}
