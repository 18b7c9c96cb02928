//! Thousands of peers that read, or write, one byte a second: others are served meanwhile, and memory stays bounded.

use std::{
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use parity::{
    Result,
    frame::Frame,
    script::build::{broker, route},
};

use crate::{
    Context,
    bystanders::{Bystanders, P99_MAX, large_registration},
    pause,
    peer::{NARROW, Peer, narrow},
    report::Record,
    server::{Home, Server},
    usage::Usage,
};

/// Requests of a slow reader for the list of all topics: far more answers than the sockets' buffers and the high-water mark hold.
const REQUESTS: usize = 100;

/// All of them ask for some lists at once before they are slow. That is honest work, and those who ask meanwhile wait their turn.
const COMING_MAX: Duration = Duration::from_secs(10);

/// Clients beside it.
const CLIENTS: usize = 4;

/// What the server may hold for a slow reader: the batch of answers it had begun when the high-water mark was reached
/// (128 KiB and one answer), that buffer's growth by doubling, and the requests it has not executed.
const READER_MAX_KIB: u64 = 320;

/// For a slow writer: its part of a frame, a socket and bookkeeping.
const WRITER_MAX_KIB: u64 = 4;

/// Large frames that have begun may take this much together.
const UNFINISHED_MAX_KIB: u64 = 256 * 1024;

/// Bytes of a large frame that are sent at once, before the slow part: beyond the length that needs admission.
const HEAD_LEN: usize = 66 * 1024;

/// Without slow peers.
const BASE_KIB: u64 = 8 * 1024;

/// What the second crowd may need beside the first one's memory: how buffers fall into it is chance.
const KEPT_KIB: u64 = 32 * 1024;

/// Until thousands of connections are closed.
const SETTLE: Duration = Duration::from_secs(20);

/// So many peers of each kind for so many seconds.
pub(super) fn run(context: &Context, record: &mut Record) -> Result<()> {
    let home = Home::new(&context.binary, &[NARROW])?;
    let server = home.start()?;
    let address = server.address();
    let mut owner = Peer::open(address)?;
    let own = broker("slow", "large", 0, "127.0.0.1:10999");
    owner.must(&large_registration(&own, 1))?;

    let idle = server.usage()?;
    let alone = Bystanders::start(address, CLIENTS)?;
    pause(Duration::from_secs(1));
    alone.stop("alone", P99_MAX, record)?;
    let (_, before) = Usage::settled(server.pid(), idle.fds, SETTLE)?;
    let length = Duration::from_secs(context.size.seconds);
    let peers = usize::try_from(context.size.count).unwrap_or(usize::MAX);
    record.figure("slow peers of each kind", peers);

    // Each asks at once for as much as its buffers take; after that they are slow.
    let others = Bystanders::start(address, CLIENTS)?;
    let mut slow = Slow::open(address, peers, context.size.seconds)?;
    others.stop("while they come", COMING_MAX, record)?;
    let others = Bystanders::start(address, CLIENTS)?;
    let rss = slow.trickle(&server, length)?;
    // Who has a large table to register is not kept waiting by those who have begun one and do not go on.
    let started = Instant::now();
    owner.must(&large_registration(&own, 2))?;
    record.millis("a registration of 1000 topics meanwhile", started.elapsed());
    slow.report(record);
    others.stop("meanwhile", P99_MAX, record)?;

    record.figure("RSS before (KiB)", before.rss_kib);
    record.figure("RSS meanwhile, greatest (KiB)", rss);
    let bound = BASE_KIB
        + before.rss_kib
        + context.size.count * (READER_MAX_KIB + WRITER_MAX_KIB)
        + UNFINISHED_MAX_KIB.min(slow.large_frames_kib());
    record.figure("RSS that the bounds allow (KiB)", bound);
    record.expect(rss <= bound, || {
        format!("RSS of {rss} KiB, {bound} allowed")
    });
    drop(slow);
    let (took, first) = Usage::settled(server.pid(), before.fds, SETTLE)?;
    record.millis("until all descriptors are back", took);
    record.figure("RSS when they have left (KiB)", first.rss_kib);
    // The allocator keeps what they needed; as many again must find it there.
    drop(Slow::open(address, peers, context.size.seconds)?);
    let (_, second) = Usage::settled(server.pid(), before.fds, SETTLE)?;
    let first = Usage {
        rss_kib: first.rss_kib,
        ..before
    };
    record.flat("as many again: ", first, second, KEPT_KIB);
    server.terminate()
}

/// The slow peers.
#[derive(Debug)]
struct Slow {
    writers: Vec<Writer>,
    readers: Vec<TcpStream>,
    holders: Vec<Writer>,
    read: u64,
    ended_readers: u64,
}

#[derive(Debug)]
struct Writer {
    stream: TcpStream,
    bytes: Vec<u8>,
    sent: usize,
    begun_at: usize,
    answered: bool,
    ended: bool,
}

impl Slow {
    /// Slow writers are answered after half of so many seconds.
    fn open(address: SocketAddr, count: usize, seconds: u64) -> Result<Slow> {
        let mut slow = Slow {
            writers: Vec::new(),
            readers: Vec::new(),
            holders: Vec::new(),
            read: 0,
            ended_readers: 0,
        };
        let question = route("nobody-has-it").encode(1);
        let list = Frame::request(206).encode(2);
        let lists = list.repeat(REQUESTS);
        // A frame of the greatest length, of which little ever comes.
        let mut large = (16 * 1024 * 1024_u32 - 4).to_be_bytes().to_vec();
        large.extend(&question[4..8]);
        large.resize(2 * HEAD_LEN, b' ');
        let slowly = usize::try_from(seconds / 2 + 1).unwrap_or(usize::MAX);
        let at_once = question.len().saturating_sub(slowly);
        for _ in 0..count {
            let mut stream = TcpStream::connect(address)?;
            stream.write_all(&question[..at_once])?;
            slow.writers.push(Writer::new(stream, &question, at_once)?);
            let mut reader = narrow(address)?;
            reader.write_all(&lists)?;
            reader.set_nonblocking(true)?;
            slow.readers.push(reader);
        }
        for _ in 0..(count / 10).max(20) {
            let mut stream = TcpStream::connect(address)?;
            stream.write_all(&large[..HEAD_LEN])?;
            slow.holders.push(Writer::new(stream, &large, HEAD_LEN)?);
        }
        Ok(slow)
    }

    /// One byte a second from and to everyone; says the greatest memory of the server.
    fn trickle(&mut self, server: &Server, length: Duration) -> Result<u64> {
        let started = Instant::now();
        let mut greatest = server.usage()?.rss_kib;
        while started.elapsed() < length {
            let round = Instant::now();
            for writer in self.writers.iter_mut().chain(&mut self.holders) {
                writer.step()?;
            }
            for reader in &mut self.readers {
                match reader.read(&mut [0]) {
                    Ok(0) => self.ended_readers += 1,
                    Ok(_) => self.read += 1,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error.into()),
                }
            }
            greatest = greatest.max(server.usage()?.rss_kib);
            pause(Duration::from_secs(1).saturating_sub(round.elapsed()));
        }
        Ok(greatest.max(server.usage()?.rss_kib))
    }

    fn report(&self, record: &mut Record) {
        let sent: usize = self.writers.iter().map(Writer::sent_slowly).sum();
        let count = |writers: &[Writer], test: fn(&Writer) -> bool| {
            writers.iter().filter(|writer| test(writer)).count()
        };
        record.figure("bytes written one by one", sent);
        record.figure("bytes read one by one", self.read);
        record.figure(
            "slow writers that were answered",
            count(&self.writers, |one| one.answered),
        );
        record.figure("peers that began a large frame", self.holders.len());
        record.figure(
            "of those, closed for those who wait",
            count(&self.holders, |one| one.ended),
        );
        let unanswered = count(&self.writers, |one| !one.answered);
        record.expect(unanswered == 0, || {
            format!("{unanswered} slow writers have not been answered")
        });
        let cut = count(&self.writers, |one| one.ended) as u64 + self.ended_readers;
        record.expect(cut == 0, || format!("{cut} slow peers were closed"));
    }

    fn large_frames_kib(&self) -> u64 {
        // Announced, not sent: what is sent is less.
        self.holders.len() as u64 * 16 * 1024
    }
}

impl Writer {
    /// Of these bytes so many are sent already.
    fn new(stream: TcpStream, bytes: &[u8], sent: usize) -> Result<Writer> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        Ok(Writer {
            stream,
            bytes: bytes.to_vec(),
            sent,
            begun_at: sent,
            answered: false,
            ended: false,
        })
    }

    fn sent_slowly(&self) -> usize {
        self.sent - self.begun_at
    }

    /// Sends the next byte and looks for an answer or the end.
    fn step(&mut self) -> Result<()> {
        if self.ended {
            return Ok(());
        }
        if let Some(byte) = self.bytes.get(self.sent..=self.sent) {
            match self.stream.write(byte) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => self.ended = true,
            }
        }
        match self.stream.read(&mut [0; 512]) {
            Ok(0) => self.ended = true,
            Ok(_) => self.answered = true,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => self.ended = true,
        }
        Ok(())
    }
}
