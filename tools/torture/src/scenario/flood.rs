//! Connections that come and go as fast as they can, with and without bytes: nothing of them is left.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use parity::{Result, script::build::route};
use socket2::{Domain, Socket, Type};

use crate::{
    Context,
    bystanders::{Bystanders, P99_MAX, TOPIC, joined},
    pause,
    peer::{PATIENCE, reset_at_close},
    report::Record,
    server::Home,
    usage::Usage,
};

/// Threads that connect.
const THREADS: u64 = 2;

/// Clients beside it.
const CLIENTS: usize = 2;

/// Source addresses, so that ports that wait for stray segments are not missing.
const SOURCES: u64 = 16;

/// Each connection is of the next kind.
const KINDS: u64 = 6;

/// Beyond what the first tenth of the flood has left: slots, answer buffers and the allocator's pools exist by then.
const GROWTH_MAX_KIB: u64 = 4096;

/// Opens and closes so many connections.
pub(super) fn run(context: &Context, record: &mut Record) -> Result<()> {
    let home = Home::new(&context.binary, &[])?;
    let server = home.start()?;
    let address = server.address();
    let others = Bystanders::start(address, CLIENTS)?;
    let before = server.usage()?;
    let first = context.size.count / 10;
    flood(address, first)?;
    let (_, warm) = Usage::settled(server.pid(), before.fds, Duration::from_secs(20))?;
    let started = Instant::now();
    let most = flood_watched(address, context.size.count - first, server.pid())?;
    let took = started.elapsed();
    let (settled, after) = Usage::settled(server.pid(), before.fds, Duration::from_secs(20))?;
    record.figure("connections", context.size.count);
    #[expect(
        clippy::cast_precision_loss,
        reason = "a count of connections is far below 2^52"
    )]
    let rate = (context.size.count - first) as f64 / took.as_secs_f64();
    record.figure("connections a second", rate.round());
    record.figure("descriptors meanwhile, most seen", most);
    record.figure("RSS before the first (KiB)", before.rss_kib);
    record.millis("until all descriptors are back", settled);
    let warm = Usage {
        rss_kib: warm.rss_kib,
        ..before
    };
    record.flat(
        "from the first tenth to the end: ",
        warm,
        after,
        GROWTH_MAX_KIB,
    );
    others.stop("meanwhile", P99_MAX, record)?;
    let lines = server.log()?.lines().count();
    record.figure("log lines", lines);
    server.terminate()
}

/// Floods and looks how many descriptors the server has meanwhile.
fn flood_watched(address: SocketAddr, count: u64, pid: u32) -> Result<u64> {
    let flood = thread::spawn(move || flood(address, count));
    let mut most = 0;
    while !flood.is_finished() {
        most = most.max(Usage::of(pid)?.fds);
        pause(Duration::from_millis(100));
    }
    joined(flood)?;
    Ok(most)
}

fn flood(address: SocketAddr, count: u64) -> Result<()> {
    let done = Arc::new(AtomicU64::new(0));
    let thread = |_| {
        let done = Arc::clone(&done);
        thread::spawn(move || {
            let request = route(TOPIC).encode(1);
            loop {
                let number = done.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return Ok(());
                }
                come_and_go(address, number, &request)?;
            }
        })
    };
    let threads: Vec<_> = (0..THREADS).map(thread).collect();
    threads.into_iter().try_for_each(joined)
}

/// One connection.
fn come_and_go(address: SocketAddr, number: u64, request: &[u8]) -> Result<()> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    let last = u8::try_from(2 + number % SOURCES).expect("a small number");
    socket.bind(&SocketAddr::from((Ipv4Addr::new(127, 0, 0, last), 0)).into())?;
    socket.connect(&address.into())?;
    let mut socket: TcpStream = socket.into();
    socket.set_read_timeout(Some(PATIENCE))?;
    match number % KINDS {
        // FIN at once.
        0 => {}
        // RST at once.
        1 => reset_at_close(&socket)?,
        // Half a request, then FIN.
        2 => socket.write_all(&request[..request.len() / 2])?,
        // A request whose answer nobody reads, then FIN (or RST, if the answer was faster).
        3 => socket.write_all(request)?,
        // No frame.
        4 => socket.write_all(b"GET / HTTP/1.1\r\n\r\n")?,
        // A client that asks once.
        _ => {
            socket.write_all(request)?;
            socket.read_exact(&mut [0; 64])?;
            reset_at_close(&socket)?;
        }
    }
    Ok(())
}
