//! No file descriptors left: those who are connected are served on, and the others as soon as some close.

use std::{
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use parity::{
    Error, Result,
    script::build::{put, route},
};

use crate::{
    Context,
    bystanders::{Bystanders, P99_MAX, TOPIC},
    pause,
    peer::Peer,
    report::Record,
    server::Home,
    usage::Usage,
};

/// Descriptors that the server may have beyond those it has when it is idle.
const ROOM: u64 = 40;

/// Clients beside it.
const CLIENTS: usize = 4;

/// Peers that come last and stay.
const LATE: usize = 20;

/// How long the server has none left.
const HUNGER: Duration = Duration::from_secs(2);

/// The acceptor looks again every 100 ms (`limits::ACCEPT_RETRY_INTERVAL`), and lets in as many as there is room for, also of
/// those that have gone while they waited.
const LOOK: Duration = Duration::from_millis(100);

/// What a loaded machine may take for what takes no time.
const SLACK: Duration = Duration::from_secs(2);

/// Of one processor. An acceptor that tries again without a pause takes all of one.
const CPU_SHARE_MAX: f64 = 0.5;

/// 64 bytes of bookkeeping for each peer's slot, and the usual noise.
const GROWTH_MAX_KIB: u64 = 4096;

/// So many peers for a server that has room for few.
pub(super) fn run(context: &Context, record: &mut Record) -> Result<()> {
    let home = Home::new(&context.binary, &[])?;
    let server = home.start()?;
    let mut connected = Peer::open(server.address())?;
    connected.must(&put("n", "k", "before"))?;
    let others = Bystanders::start(server.address(), CLIENTS)?;
    let before = server.usage()?;
    server.limit_descriptors(before.fds + ROOM)?;

    // Beyond the backlog of 1024 a connect would wait for its second SYN.
    let crowd_len = context.size.count.min(900 + ROOM);
    let address = server.address();
    let crowd = (0..crowd_len)
        .map(|_| TcpStream::connect(address).map_err(Error::from))
        .collect::<Result<Vec<_>>>()?;
    let (cpu, hungry) = (cpu_seconds(server.pid())?, Instant::now());
    pause(HUNGER);
    let share = (cpu_seconds(server.pid())? - cpu) / hungry.elapsed().as_secs_f64();
    let usage = server.usage()?;
    record.figure("peers that want to be served", crowd_len);
    record.figure("descriptors without need, limit", before.fds + ROOM);
    record.figure("descriptors in need", usage.fds);
    record.figure(
        "share of a processor in need",
        (share * 1000.0).round() / 1000.0,
    );
    record.expect(usage.fds >= before.fds + ROOM, || {
        format!("only {} descriptors were in use", usage.fds)
    });
    record.expect(share <= CPU_SHARE_MAX, || {
        format!("{share} of a processor is used for nothing")
    });
    let reply = connected.ask(&put("n", "k", "without descriptors"))?;
    record.figure("code of a KV write in need", reply.code);
    record.expect(reply.code == 1 && reply.remark.is_some(), || {
        format!(
            "a KV write without descriptors is answered with {}",
            reply.code
        )
    });

    relieve(crowd, address, record)?;
    let (took, after) = Usage::settled(server.pid(), before.fds, Duration::from_secs(10))?;
    record.millis("until all descriptors are back", took);
    record.flat("", before, after, GROWTH_MAX_KIB);
    connected.must(&put("n", "k", "after"))?;
    others.stop("meanwhile", P99_MAX, record)?;
    let log = server.log()?;
    let said = log.matches("cannot accept connections").count();
    record.figure("lines about it", said);
    // One for each time that the backlog had been empty before.
    record.expect((1..=2).contains(&said), || {
        format!("it was said {said} times")
    });
    server.terminate()
}

/// Those who came first leave, and those who wait behind them are let in.
fn relieve(crowd: Vec<TcpStream>, address: SocketAddr, record: &mut Record) -> Result<()> {
    let looks = u32::try_from(crowd.len() as u64 / ROOM + 1).expect("the backlog is small");
    let bound = LOOK * looks + SLACK;
    let mut late = Vec::new();
    for _ in 0..LATE {
        let mut peer = Peer::open(address)?;
        peer.send(&route(TOPIC));
        late.push(peer);
    }
    drop(crowd);
    let left = Instant::now();
    for mut peer in late {
        let code = peer.receive()?.map(|reply| reply.code);
        record.expect(code == Some(0), || {
            format!("a peer that waited is answered with {code:?}")
        });
    }
    let took = left.elapsed();
    record.millis("until all who waited are answered", took);
    record.millis("until then, allowed", bound);
    record.expect(took <= bound, || {
        format!("who waited was let in {took:?} after others had left")
    });
    Ok(())
}

fn cpu_seconds(pid: u32) -> Result<f64> {
    let cpu = loadgen::process::process_cpu(pid);
    let cpu = cpu.map_err(|error| Error::new(error.to_string()))?;
    Ok(Duration::from_nanos(cpu.user + cpu.system).as_secs_f64())
}
