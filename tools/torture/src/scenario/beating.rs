//! Brokers that live by their heartbeats alone.

use std::time::Duration;

use parity::{
    Result,
    frame::Frame,
    script::build::{Broker, broker, route, topics},
};

use super::Size;
use crate::{peer::Peer, server::Server};

/// A topic of all of them.
pub(super) const SHARED: &str = "clock-shared";

/// How often they heartbeat.
pub(super) const BEAT: Duration = Duration::from_millis(200);

/// `scanNotActiveBrokerInterval`.
pub(super) const SCAN: Duration = Duration::from_millis(250);

/// What a loaded machine may take for what takes no time.
pub(super) const SLACK: Duration = Duration::from_secs(2);

/// The setting that makes it so.
pub(super) const SCAN_SETTING: (&str, &str) = ("scanNotActiveBrokerInterval", "250");

/// A broker that lives by its heartbeats.
#[derive(Debug)]
pub(super) struct Beating {
    own: Broker,
    topic: String,
    peer: Peer,
    timeout: Duration,
    /// Every other broker does it as 4.9 does, by registering again.
    pub(super) registers: bool,
    unanswered: u32,
}

impl Beating {
    /// Registers a broker with this `heartbeatTimeoutMillis`.
    pub(super) fn open(server: &Server, number: u32, timeout: Duration) -> Result<Beating> {
        let address = format!("127.0.0.1:{}", 13_000 + number);
        let mut beating = Beating {
            own: broker("clock", &format!("clock-{number}"), 0, &address),
            topic: format!("clock-topic-{number}"),
            peer: Peer::open(server.address())?,
            timeout,
            registers: number % 2 == 1,
            unanswered: 0,
        };
        beating.peer.must(&beating.registration())?;
        Ok(beating)
    }

    /// As many as a scenario has.
    pub(super) fn open_all(server: &Server, size: Size, timeout: Duration) -> Result<Vec<Beating>> {
        // Each has a port of its own in its address.
        let count = u32::try_from(size.count).unwrap_or(u32::MAX).min(20_000);
        let each = 0..count;
        each.map(|number| Beating::open(server, number, timeout))
            .collect()
    }

    fn registration(&self) -> Frame {
        let millis = self.timeout.as_millis().to_string();
        let table = topics(1, &[&self.topic, SHARED]);
        let frame = self.own.register().body(table.body());
        frame.with("heartbeatTimeoutMillis", &millis)
    }

    pub(super) fn beat(&mut self) {
        let frame = if self.registers {
            self.registration()
        } else {
            self.own.heartbeat()
        };
        self.peer.send(&frame);
        self.unanswered += 1;
    }

    /// Whether it is still connected.
    pub(super) fn take_answers(&mut self) -> Result<bool> {
        while self.unanswered > 0 {
            match self.peer.receive()? {
                Some(_) => self.unanswered -= 1,
                None => return Ok(false),
            }
        }
        Ok(true)
    }
}

/// The numbers of those that are not routed at this moment.
pub(super) fn missing(client: &mut Peer, brokers: &[Beating]) -> Result<Vec<usize>> {
    for beating in brokers {
        client.send(&route(&beating.topic));
    }
    let mut missing = Vec::new();
    for number in 0..brokers.len() {
        let reply = client.receive()?;
        if reply.is_none_or(|reply| reply.code != 0) {
            missing.push(number);
        }
    }
    Ok(missing)
}
