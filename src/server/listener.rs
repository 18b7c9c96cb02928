//! Opens the listening socket.

use std::{
    io::{self, ErrorKind},
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs},
};

use mio::net::TcpListener;
use socket2::{Domain, Protocol, Socket, Type};

use crate::config::Config;

/// Binds and listens as configured; returns the address too, as it is to be shown. Accepted sockets inherit the buffer sizes.
pub(super) fn open(config: &Config) -> io::Result<(TcpListener, SocketAddr)> {
    let mut last_error = io::Error::new(ErrorKind::NotFound, "the name has no address");
    for address in (config.bind_address(), config.listen_port()).to_socket_addrs()? {
        match open_shown(address, config) {
            Ok(opened) => return Ok(opened),
            Err(error) => last_error = error,
        }
    }
    Err(last_error)
}

/// `0.0.0.0` means all addresses of the machine, those of IPv6 too, as for the original (spec 5.2).
fn open_shown(address: SocketAddr, config: &Config) -> io::Result<(TcpListener, SocketAddr)> {
    if address.ip() == Ipv4Addr::UNSPECIFIED {
        let both = SocketAddr::from((Ipv6Addr::UNSPECIFIED, address.port()));
        match open_at(both, config) {
            Ok(listener) => {
                let port = listener.local_addr()?.port();
                return Ok((listener, SocketAddr::new(address.ip(), port)));
            }
            Err(error) if error.kind() == ErrorKind::AddrInUse => return Err(error),
            Err(error) => tracing::info!("IPv4 alone is listened to: no IPv6 here, {error}"),
        }
    }
    let listener = open_at(address, config)?;
    let address = listener.local_addr()?;
    Ok((listener, address))
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
    use std::net::TcpStream;

    use socket2::SockRef;

    use super::*;
    use crate::config::Environment;

    /// The send and the receive buffer of a listener on a port of the system's choice.
    fn buffers(lines: &str) -> (usize, usize) {
        let mut config = Config::defaults(&Environment::default());
        let file = format!("listenPort=0\nbindAddress=127.0.0.1\n{lines}");
        assert_eq!(config.load_file("test.properties", file.as_bytes()), []);
        let (listener, _) = open(&config).unwrap();
        sizes(&SockRef::from(&listener))
    }

    fn sizes(socket: &Socket) -> (usize, usize) {
        (
            socket.send_buffer_size().unwrap(),
            socket.recv_buffer_size().unwrap(),
        )
    }

    #[test]
    fn all_addresses_are_those_of_both_families_and_are_shown_as_they_were_asked_for() {
        let mut config = Config::defaults(&Environment::default());
        assert_eq!(config.load_file("test.properties", b"listenPort=0"), []);
        let (listener, shown) = open(&config).unwrap();
        assert_eq!(shown.ip(), Ipv4Addr::UNSPECIFIED);
        assert_ne!(shown.port(), 0);
        TcpStream::connect((Ipv4Addr::LOCALHOST, shown.port())).unwrap();
        // Where there is no IPv6 the listener has an address of the other family.
        if listener.local_addr().unwrap().is_ipv6() {
            TcpStream::connect((Ipv6Addr::LOCALHOST, shown.port())).unwrap();
        }
        let taken = format!("listenPort={}", shown.port());
        assert_eq!(config.load_file("test.properties", taken.as_bytes()), []);
        assert_eq!(open(&config).unwrap_err().kind(), ErrorKind::AddrInUse);
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
