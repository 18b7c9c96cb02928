//! A peer with a real socket. Every wait ends with an answer, the end of the connection, or a failed test.

use std::{
    io::{ErrorKind, Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    time::Duration,
};

use serde_json::{Value, json};

/// Long enough for a loaded machine, short enough for a hung test to be noticed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A connection to a server.
pub(crate) struct Client {
    pub(crate) socket: TcpStream,
}

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) code: i64,
    pub(crate) opaque: i64,
    pub(crate) header: Value,
    pub(crate) body: Vec<u8>,
}

/// A request's frame.
pub(crate) fn request(code: i32, opaque: i64, ext: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let ext: serde_json::Map<String, Value> = ext
        .iter()
        .map(|(key, value)| ((*key).to_owned(), json!(value)))
        .collect();
    let header = json!({"code": code, "opaque": opaque, "flag": 0, "version": 479, "language": "JAVA", "extFields": ext});
    let header = header.to_string();
    let length = |len: usize| u32::try_from(len).unwrap().to_be_bytes();
    [
        &length(4 + header.len() + body.len()),
        &length(header.len()),
        header.as_bytes(),
        body,
    ]
    .concat()
}

/// The registration of broker `name` at `addr` with these topics.
pub(crate) fn registration(opaque: i64, name: &str, addr: &str, topics: &[&str]) -> Vec<u8> {
    let ext = [
        ("clusterName", "c"),
        ("brokerName", name),
        ("brokerAddr", addr),
        ("brokerId", "0"),
        ("haServerAddr", "127.0.0.1:1"),
    ];
    let body = super::world::register_body(&super::world::topics(topics), (0, 1, opaque));
    request(103, opaque, &ext, body.as_bytes())
}

/// A route query.
pub(crate) fn route(opaque: i64, topic: &str) -> Vec<u8> {
    request(105, opaque, &[("topic", topic)], b"")
}

/// A KV change.
pub(crate) fn put_kv(opaque: i64, key: &str, value: &str) -> Vec<u8> {
    request(
        100,
        opaque,
        &[("namespace", "n"), ("key", key), ("value", value)],
        b"",
    )
}

/// A KV look-up.
pub(crate) fn get_kv(opaque: i64, key: &str) -> Vec<u8> {
    request(101, opaque, &[("namespace", "n"), ("key", key)], b"")
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_write_timeout(Some(PATIENCE)).unwrap();
        socket.set_nodelay(true).unwrap();
        Self { socket }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).unwrap();
    }

    /// The next answer; `None` at the end of the connection, however it came.
    pub(crate) fn next(&mut self) -> Option<Answer> {
        let mut length = [0; 4];
        self.fill(&mut length)?;
        let mut frame = vec![0; u32::from_be_bytes(length) as usize];
        self.fill(&mut frame)?;
        let header_len = (u32::from_be_bytes(frame[..4].try_into().unwrap()) & 0xff_ffff) as usize;
        let (header, body) = frame[4..].split_at(header_len);
        let header: Value = serde_json::from_slice(header).unwrap();
        Some(Answer {
            code: header["code"].as_i64().unwrap(),
            opaque: header["opaque"].as_i64().unwrap(),
            body: body.to_vec(),
            header,
        })
    }

    pub(crate) fn receive(&mut self) -> Answer {
        self.next().expect("the server answers")
    }

    pub(crate) fn ask(&mut self, request: &[u8]) -> Answer {
        self.send(request);
        self.receive()
    }

    /// Sends no more, but goes on reading.
    pub(crate) fn finish(&mut self) {
        self.socket.shutdown(Shutdown::Write).unwrap();
    }

    /// Ends the connection with a reset.
    pub(crate) fn reset(self) {
        socket2::SockRef::from(&self.socket)
            .set_linger(Some(Duration::ZERO))
            .unwrap();
    }

    fn fill(&mut self, buffer: &mut [u8]) -> Option<()> {
        match self.socket.read_exact(buffer) {
            Ok(()) => Some(()),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => None,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => None,
            Err(error) => panic!("no answer: {error}"),
        }
    }
}
