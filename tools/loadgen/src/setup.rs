//! Before the first phase: every broker connects and registers its topics, every client connects.

use std::{
    fmt,
    io::{self, ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use crate::{
    connection::Connection,
    error::{Error, Result},
    frame::OPAQUE_BASE,
    options::Options,
    registration::SLICE_LEN,
    reply::{Hints, frame_len, inspect},
    source::Broker,
};

/// How long the server may take to answer a registration.
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);

/// Connections that stay open for the whole run.
#[derive(Debug)]
pub struct Connections {
    /// One for each broker.
    pub brokers: Vec<Connection>,
    /// Those of clients.
    pub clients: Vec<Connection>,
}

/// Opens all connections and registers all brokers; `progress` is told how many have registered.
///
/// # Errors
/// When the server does not take them all.
pub fn connect(options: &Options, progress: &mut dyn FnMut(usize)) -> Result<Connections> {
    // A split registration has several frames, which all need a slot.
    let slices = options.register_topics.div_ceil(SLICE_LEN);
    let window_len = options.depth.max(options.open_depth) + slices;
    let brokers = (0..options.population.brokers()).map(|index| {
        let mut broker = Broker::new(
            index,
            &options.population,
            options.codec,
            options.heartbeat_kind,
        );
        let stream = register(options, &mut broker, REPLY_TIMEOUT).map_err(|error| {
            let registering = format_args!("register broker {index}");
            refused(options.target, registering, &error)
        })?;
        progress(index + 1);
        Ok(Connection::new(stream, Some(broker), window_len))
    });
    let brokers = brokers.collect::<Result<Vec<_>>>()?;
    let clients = (0..options.connections).map(|index| {
        let stream = open(options.target)
            .and_then(nonblocking)
            .map_err(|error| {
                let connecting = format_args!("connect client {index}");
                refused(options.target, connecting, &error)
            })?;
        Ok(Connection::new(stream, None, window_len))
    });
    let clients = clients.collect::<Result<Vec<_>>>()?;
    Ok(Connections { brokers, clients })
}

/// Says what the server did, and what its user can do about it, in place of the system's words for it.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "kinds are many and more are added; those that say what the server did are named"
)]
fn refused(target: SocketAddr, doing: fmt::Arguments<'_>, error: &io::Error) -> Error {
    let text = match error.kind() {
        ErrorKind::ConnectionRefused => format!(
            "no server listens at {target}; does one run there? --target names another address"
        ),
        ErrorKind::WouldBlock | ErrorKind::TimedOut => format!(
            "{doing}: {target} did not answer within {} s; is it a name server, and is it not stopped?",
            REPLY_TIMEOUT.as_secs()
        ),
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => format!(
            "{doing}: {target} closed the connection without an answer; is it a name server, and what does its log say?"
        ),
        _ => format!("{doing}: {error}"),
    };
    Error::new(text)
}

fn register(
    options: &Options,
    broker: &mut Broker,
    timeout: Duration,
) -> io::Result<mio::net::TcpStream> {
    let mut stream = open(options.target)?;
    stream.set_read_timeout(Some(timeout))?;
    stream.set_write_timeout(Some(timeout))?;
    let mut frame = Vec::new();
    broker.append_registration(&options.population, options.codec, OPAQUE_BASE, &mut frame);
    stream.write_all(&frame)?;

    let no_reply = || io::Error::other("the server sent something else than a reply");
    let mut reply = vec![0; 4];
    stream.read_exact(&mut reply)?;
    let len = frame_len(&reply).map_err(|_| no_reply())?;
    reply.resize(len.expect("the prefix is there"), 0);
    stream.read_exact(&mut reply[4..])?;
    let reply = inspect(&reply, &mut Hints::default()).map_err(|_| no_reply())?;
    if !reply.is_response {
        return Err(no_reply());
    }
    if reply.code != 0 {
        let text = format!("the server answered with code {}", reply.code);
        return Err(io::Error::other(text));
    }
    nonblocking(stream)
}

fn open(target: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(target)?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn nonblocking(stream: TcpStream) -> io::Result<mio::net::TcpStream> {
    stream.set_nonblocking(true)?;
    Ok(mio::net::TcpStream::from_std(stream))
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsString, net::TcpListener, thread};

    use super::*;
    use crate::options::{self, Command};

    /// Why a set-up fails whose server does `serve` with each connection.
    fn refusal(timeout: Duration, serve: fn(TcpStream)) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = listener.local_addr().unwrap();
        let server = thread::spawn(move || serve(listener.accept().unwrap().0));
        let line = ["--target", &target.to_string(), "--topics", "10"].map(OsString::from);
        let Ok(Command::Run(options)) = options::parse(line) else {
            panic!("these are options of a run");
        };
        let (population, codec) = (&options.population, options.codec);
        let mut broker = Broker::new(0, population, codec, options.heartbeat_kind);
        let error = register(&options, &mut broker, timeout).unwrap_err();
        server.join().unwrap();
        let text = refused(target, format_args!("register broker 0"), &error).to_string();
        text.replace(&target.to_string(), "ADDRESS")
    }

    #[test]
    fn a_server_that_closes_is_said_to_have_closed() {
        let text = refusal(REPLY_TIMEOUT, drop);
        assert_eq!(
            text,
            "register broker 0: ADDRESS closed the connection without an answer; is it a name server, and what does its log say?"
        );
    }

    #[test]
    fn a_server_that_is_silent_is_said_not_to_answer() {
        let text = refusal(Duration::from_millis(20), |mut stream| {
            // Until the other side gives up.
            let read = io::copy(&mut stream, &mut io::sink());
            assert!(read.is_err() || read.unwrap() > 0);
        });
        assert_eq!(
            text,
            "register broker 0: ADDRESS did not answer within 10 s; is it a name server, and is it not stopped?"
        );
    }
}
