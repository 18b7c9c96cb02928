//! Peers that end in the middle, or only seem to be there: each is cleaned up in its time, with the brokers behind it.

use std::{
    io::Write,
    net::{Shutdown, TcpStream},
    time::{Duration, Instant},
};

use parity::{
    Result,
    frame::Frame,
    script::build::{broker, route, set, topics},
};

use crate::{
    Context,
    bystanders::{Bystanders, P99_MAX, TOPIC},
    peer::{NARROW, Peer, narrow, reset_at_close},
    report::Record,
    server::{Home, Server},
    usage::Usage,
};

/// `serverChannelMaxIdleTimeSeconds`: when the silent are closed.
const IDLE: Duration = Duration::from_secs(2);

/// Set for those only; until then it is the usual 120 s.
const IDLE_KEY: &str = "serverChannelMaxIdleTimeSeconds";

/// When those who send no more and do not take their answers are closed (`limits::LINGER_TIMEOUT`).
const LINGER: Duration = Duration::from_secs(5);

/// What a loaded machine may take for what takes no time.
const SLACK: Duration = Duration::from_secs(2);

/// The high-water mark and an answer for each of those who do not read; the allocator keeps it for the next.
const GROWTH_MAX_KIB: u64 = 96 * 1024;

/// Clients beside it.
const CLIENTS: usize = 2;

/// Brokers that end in each way.
const DEAD: usize = 50;

/// Requests of a peer that does not read, each for a list of 24 KB: more than the server holds for a connection, so that the last
/// of them wait, unread, and the FIN behind them.
const MANY: usize = 50;

/// And as many as it executes at once: then only the answers wait.
const FEW: usize = 4;

/// A way to end, or not to.
struct Kind {
    name: &'static str,
    /// The server closes its side after this long.
    after: Duration,
    /// Does it, and says what of the socket is kept open.
    act: fn(TcpStream, &[u8]) -> Result<Option<TcpStream>>,
}

const KINDS: [Kind; 8] = [
    Kind {
        name: "RST without a byte",
        after: Duration::ZERO,
        act: |socket, _| {
            reset_at_close(&socket)?;
            Ok(None)
        },
    },
    Kind {
        name: "RST in a frame",
        after: Duration::ZERO,
        act: |mut socket, bytes| {
            socket.write_all(&bytes[..20])?;
            reset_at_close(&socket)?;
            Ok(None)
        },
    },
    Kind {
        name: "RST with answers unread",
        after: Duration::ZERO,
        act: |mut socket, bytes| {
            socket.write_all(bytes)?;
            reset_at_close(&socket)?;
            Ok(None)
        },
    },
    Kind {
        name: "FIN without a byte",
        after: Duration::ZERO,
        act: |socket, _| {
            socket.shutdown(Shutdown::Write)?;
            Ok(Some(socket))
        },
    },
    Kind {
        name: "FIN in a frame",
        after: Duration::ZERO,
        act: |mut socket, bytes| {
            socket.write_all(&bytes[..20])?;
            socket.shutdown(Shutdown::Write)?;
            Ok(Some(socket))
        },
    },
    Kind {
        name: "FIN with answers unread",
        after: LINGER,
        act: |mut socket, bytes| {
            socket.write_all(&bytes[..FEW * bytes.len() / MANY])?;
            socket.shutdown(Shutdown::Write)?;
            Ok(Some(socket))
        },
    },
    Kind {
        name: "FIN behind requests that wait for room",
        after: IDLE,
        act: |mut socket, bytes| {
            socket.write_all(bytes)?;
            socket.shutdown(Shutdown::Write)?;
            Ok(Some(socket))
        },
    },
    Kind {
        name: "silent",
        after: IDLE,
        act: |socket, _| Ok(Some(socket)),
    },
];

/// So many peers of each kind.
pub(super) fn run(context: &Context, record: &mut Record) -> Result<()> {
    let home = Home::new(&context.binary, &[NARROW])?;
    let server = home.start()?;
    let others = Bystanders::start(server.address(), CLIENTS)?;
    let requests = Frame::request(206).encode(1).repeat(MANY);
    record.figure("peers of each kind", context.size.count);
    let mut client = Peer::open(server.address())?;
    client.must(&route(TOPIC))?;
    // A server that has written its configuration keeps the file open.
    client.must(&set(IDLE_KEY, "119"))?;
    let before = server.usage()?;
    for kind in KINDS {
        if kind.after == IDLE {
            // At once, for every connection that is opened from now on.
            client.must(&set(IDLE_KEY, &IDLE.as_secs().to_string()))?;
        }
        let started = Instant::now();
        let mut kept = Vec::new();
        for _ in 0..context.size.count {
            let socket = narrow(server.address())?;
            kept.extend((kind.act)(socket, &requests)?);
        }
        // Connections are accepted in order: when this one is served, all before it have been.
        Peer::open(server.address())?.must(&route(TOPIC))?;
        let opened = started.elapsed();
        let bound = kind.after + SLACK;
        let (_, usage) = Usage::settled(server.pid(), before.fds, opened + bound)?;
        let took = started.elapsed();
        record.millis(&format!("{}: all cleaned up after", kind.name), took);
        record.expect(usage.fds <= before.fds, || {
            let left = usage.fds - before.fds;
            format!("{}: {left} are still open after {took:?}", kind.name)
        });
        record.expect(kept.is_empty() || took >= kind.after, || {
            format!("{}: closed after {took:?}", kind.name)
        });
        drop(kept);
    }
    dead_brokers(&server, &mut client, record)?;
    let (_, after) = Usage::settled(server.pid(), before.fds, SLACK)?;
    record.flat("", before, after, GROWTH_MAX_KIB);
    others.stop("meanwhile", P99_MAX, record)?;
    server.terminate()
}

/// Brokers whose connection ends leave the routes.
fn dead_brokers(server: &Server, client: &mut Peer, record: &mut Record) -> Result<()> {
    type End = fn(Peer) -> Result<Option<Peer>>;
    let ends: [(&str, End); 2] = [
        ("FIN", |peer| {
            peer.socket().shutdown(Shutdown::Write)?;
            Ok(Some(peer))
        }),
        ("RST", |peer| {
            reset_at_close(peer.socket())?;
            Ok(None)
        }),
    ];
    let own = broker("dead", "dead", 0, "127.0.0.1:11999");
    for (name, end) in ends {
        let mut longest = Duration::ZERO;
        for number in 0..DEAD {
            let topic = format!("dead-{number}");
            let mut peer = Peer::open(server.address())?;
            let table = topics(1, &[&topic, "dead-other"]);
            peer.must(&own.register().body(table.body()))?;
            client.must(&route(&topic))?;
            let ended = Instant::now();
            let kept = end(peer)?;
            while client.ask(&route(&topic))?.code == 0 && ended.elapsed() < SLACK {}
            longest = longest.max(ended.elapsed());
            drop(kept);
        }
        record.millis(&format!("broker's {name}: gone after, longest"), longest);
        record.expect(longest < SLACK, || {
            format!("a broker was routed {longest:?} after its {name}")
        });
    }
    Ok(())
}
