//! Peers: one that asks and waits, and what they say.

use std::{
    collections::BTreeMap,
    io,
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use parity::{
    Error, Result,
    connection::{Connection, Received},
    frame::Frame,
    reply::Reply,
};
use serde_json::Value;
use socket2::{Domain, SockRef, Socket, Type};

/// An answer on a loaded machine takes this long at most, with room for a pause of the whole machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

/// A connection that counts its requests.
#[derive(Debug)]
pub(crate) struct Peer {
    connection: Connection,
    /// The same socket.
    socket: TcpStream,
    opaque: i32,
}

impl Peer {
    /// Connects.
    ///
    /// # Errors
    /// Nobody listens.
    pub(crate) fn open(address: SocketAddr) -> Result<Peer> {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        socket.set_write_timeout(Some(PATIENCE))?;
        Ok(Peer {
            connection: Connection::accepted(socket.try_clone()?),
            socket,
            opaque: 0,
        })
    }

    /// Its socket.
    pub(crate) fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Sends a request and says its opaque; a server that has closed shows at the next [`Peer::receive`].
    pub(crate) fn send(&mut self, frame: &Frame) -> i32 {
        self.opaque += 1;
        self.connection.send(&frame.encode(self.opaque));
        self.opaque
    }

    /// The next answer; `None` at the end of the connection, however it came.
    ///
    /// # Errors
    /// Nothing comes, or no frame.
    pub(crate) fn receive(&mut self) -> Result<Option<Reply>> {
        match self.connection.receive(Instant::now() + PATIENCE) {
            Received::Frame(reply) => Ok(Some(*reply)),
            Received::Closed => Ok(None),
            Received::Nothing => Err(Error::new(format!("no answer in {PATIENCE:?}"))),
            Received::Foreign(bytes) => Err(Error::new(format!(
                "{} bytes that are no frame",
                bytes.len()
            ))),
        }
    }

    /// One request, one answer; `None` if the server has closed.
    ///
    /// # Errors
    /// No answer comes, or that of another request.
    pub(crate) fn try_ask(&mut self, frame: &Frame) -> Result<Option<Reply>> {
        let opaque = self.send(frame);
        let reply = self.receive()?;
        match reply {
            Some(reply) if reply.opaque != opaque => Err(Error::new(format!(
                "request {opaque} is answered with {}",
                reply.opaque
            ))),
            other => Ok(other),
        }
    }

    /// One request, one answer.
    ///
    /// # Errors
    /// As for [`Peer::try_ask`], or the server has closed.
    pub(crate) fn ask(&mut self, frame: &Frame) -> Result<Reply> {
        self.try_ask(frame)?
            .ok_or_else(|| Error::new("the server has closed the connection".to_owned()))
    }

    /// One request that has to succeed.
    ///
    /// # Errors
    /// As for [`Peer::ask`], or another code than 0.
    pub(crate) fn must(&mut self, frame: &Frame) -> Result<Reply> {
        let reply = self.ask(frame)?;
        if reply.code == 0 {
            return Ok(reply);
        }
        let what = frame.describe();
        Err(Error::new(format!(
            "{what}: code {} {:?}",
            reply.code, reply.remark
        )))
    }
}

/// An extension field of an answer.
pub(crate) fn field<'a>(reply: &'a Reply, name: &str) -> Option<&'a str> {
    reply.ext.as_ref()?.get(name).map(String::as_str)
}

/// The lines of a 319's answer.
pub(crate) fn lines(reply: &Reply) -> BTreeMap<String, String> {
    let text = String::from_utf8_lossy(&reply.body);
    text.lines()
        .filter_map(|line| line.split_once('='))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

/// A broker of a route.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Routed {
    /// Address of id 0.
    pub(crate) address: String,
    /// `readQueueNums`, `writeQueueNums`, `topicSysFlag`.
    pub(crate) numbers: Option<[u64; 3]>,
}

/// The brokers of a route by name. A broker without queues, or queues without a broker, has the one part only.
///
/// # Errors
/// The body is no route.
pub(crate) fn routed(body: &[u8]) -> Result<BTreeMap<String, Routed>> {
    let route: Value = serde_json::from_slice(body)?;
    let list = |key: &str| route[key].as_array().cloned().unwrap_or_default();
    let mut found: BTreeMap<String, Routed> = BTreeMap::new();
    for broker in list("brokerDatas") {
        let name = broker["brokerName"].as_str().unwrap_or_default();
        let address = broker["brokerAddrs"]["0"].as_str().unwrap_or_default();
        address.clone_into(&mut found.entry(name.to_owned()).or_default().address);
    }
    for queue in list("queueDatas") {
        let name = queue["brokerName"].as_str().unwrap_or_default();
        let number = |key: &str| queue[key].as_u64().unwrap_or(u64::MAX);
        found.entry(name.to_owned()).or_default().numbers = Some([
            number("readQueueNums"),
            number("writeQueueNums"),
            number("topicSysFlag"),
        ]);
    }
    Ok(found)
}

/// Makes the server's own buffers small, so that what is unread is in its memory and not in the kernel's; see [`narrow`].
pub(crate) const NARROW: (&str, &str) = ("serverSocketSndBufSize", "8192");

/// A connection whose own buffer takes little.
///
/// # Errors
/// Nobody listens.
pub(crate) fn narrow(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_recv_buffer_size(4096)?;
    socket.connect(&address.into())?;
    Ok(socket.into())
}

/// Makes the close of a socket a reset.
///
/// # Errors
/// Those of the system.
pub(crate) fn reset_at_close(socket: &TcpStream) -> io::Result<()> {
    SockRef::from(socket).set_linger(Some(Duration::ZERO))
}
