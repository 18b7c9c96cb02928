//! Before the first phase: every broker connects and registers its topics, every client connects.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use crate::{
    connection::Connection,
    error::{Error, Result},
    frame::OPAQUE_BASE,
    options::Options,
    registration::SLICE_LEN,
    reply::{frame_len, inspect},
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
        let stream = register(options, &mut broker)
            .map_err(Error::while_doing(format_args!("register broker {index}")))?;
        progress(index + 1);
        Ok(Connection::new(stream, Some(broker), window_len))
    });
    let brokers = brokers.collect::<Result<Vec<_>>>()?;
    let clients = (0..options.connections).map(|_| {
        let stream = open(options.target)
            .and_then(nonblocking)
            .map_err(Error::while_doing(format_args!(
                "connect to {}",
                options.target
            )))?;
        Ok(Connection::new(stream, None, window_len))
    });
    let clients = clients.collect::<Result<Vec<_>>>()?;
    Ok(Connections { brokers, clients })
}

fn register(options: &Options, broker: &mut Broker) -> io::Result<mio::net::TcpStream> {
    let mut stream = open(options.target)?;
    stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
    stream.set_write_timeout(Some(REPLY_TIMEOUT))?;
    let mut frame = Vec::new();
    broker.append_registration(&options.population, options.codec, OPAQUE_BASE, &mut frame);
    stream.write_all(&frame)?;

    let no_reply = |_| io::Error::other("the server sent something else than a reply");
    let mut reply = vec![0; 4];
    stream.read_exact(&mut reply)?;
    let len = frame_len(&reply).map_err(no_reply)?;
    reply.resize(len.expect("the prefix is there"), 0);
    stream.read_exact(&mut reply[4..])?;
    let reply = inspect(&reply, &mut 0).map_err(no_reply)?;
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
