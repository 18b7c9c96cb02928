//! Brokers come and go in every way there is while readers hold each answer against what was acknowledged.
//!
//! A broker says what it is doing in one atomic word, before and after it does it. A reader loads the words before it asks and
//! after it was answered: what was so at both moments, and in the same life of the broker, was so at the moment of the answer.
//!
//! Every registration of a broker carries its own number twice in the queues of its topics, and the number of the broker's life in
//! the queues and in the broker's address. So an answer that is put together from two moments gives itself away.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use parity::{
    Result,
    frame::Frame,
    script::build::{Broker, broker, route, topics},
};

use crate::{
    Context,
    bound::Bound,
    bystanders::{Bystanders, P99_MAX, joined},
    pause,
    peer::{Peer, Routed, reset_at_close, routed},
    report::Record,
    server::{Home, Server},
    usage::Usage,
};

/// Readers, each with a connection.
const READERS: usize = 2;

/// Clients that ask for a broker that does not flap.
const CLIENTS: usize = 1;

/// `scanNotActiveBrokerInterval`.
const SCAN: Duration = Duration::from_millis(200);

/// `heartbeatTimeoutMillis` of a broker that will fall silent.
const TIMEOUT: Duration = Duration::from_secs(1);

/// What a loaded machine may take for what takes no time.
const SLACK: Duration = Duration::from_secs(2);

/// All brokers have this topic beside their own.
const SHARED: &str = "flap-shared";

/// Routes and their encodings come and go; the allocator keeps what it may use again.
const GROWTH_MAX_KIB: u64 = 16 * 1024;

/// What a broker is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It is gone, and that was seen or acknowledged.
    Down,
    /// Its first registration of this life is out.
    Joining,
    /// Its registration is acknowledged.
    Up,
    /// A further registration is out.
    Renewing,
    /// It has begun to leave.
    Leaving,
}

/// A broker's word: how often it registered, in how many lives, and what it is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Word {
    number: u64,
    life: u64,
    phase: Phase,
}

impl Word {
    fn encode(self) -> u64 {
        self.number << 32 | self.life << 8 | self.phase as u64
    }

    fn decode(bits: u64) -> Word {
        let phase = match bits & 0xff {
            0 => Phase::Down,
            1 => Phase::Joining,
            2 => Phase::Up,
            3 => Phase::Renewing,
            _ => Phase::Leaving,
        };
        Word {
            number: bits >> 32,
            life: bits >> 8 & 0xff_ffff,
            phase,
        }
    }

    fn is_present(self) -> bool {
        matches!(self.phase, Phase::Up | Phase::Renewing)
    }

    /// The oldest registration that may be shown.
    fn oldest(self) -> u64 {
        match self.phase {
            Phase::Renewing => self.number - 1,
            Phase::Down | Phase::Joining | Phase::Up | Phase::Leaving => self.number,
        }
    }
}

/// The words of all brokers.
#[derive(Debug)]
struct Words(Vec<AtomicU64>);

impl Words {
    // Sequentially consistent, so that a word stored before a request was sent is seen by whoever was answered after it.
    fn load(&self, broker: usize) -> Word {
        Word::decode(self.0[broker].load(Ordering::SeqCst))
    }

    fn store(&self, broker: usize, word: Word) {
        self.0[broker].store(word.encode(), Ordering::SeqCst);
    }
}

/// What is wrong with what an answer says of a broker, asked between two moments.
fn judge(
    broker: usize,
    before: Word,
    after: Word,
    shown: Option<Routed>,
) -> std::result::Result<(), String> {
    let same_life = before.life == after.life;
    let Some(shown) = shown else {
        let vanished = same_life && before.is_present() && after.is_present();
        return if vanished {
            Err(format!("{after:?} is not in the answer"))
        } else {
            Ok(())
        };
    };
    if same_life && before.phase == Phase::Down && after.phase == Phase::Down {
        return Err(format!("{after:?} is still in the answer"));
    }
    let Some([life, number, again]) = shown.numbers else {
        return Err(format!("{after:?} has no queues in the answer"));
    };
    if number != again || shown.address != address_of(broker, life) {
        return Err(format!("{after:?}: the answer mixes {shown:?}"));
    }
    let in_time = number <= after.number && (before.life != life || number >= before.oldest());
    if in_time && life <= after.life && life >= before.life {
        Ok(())
    } else {
        Err(format!(
            "{shown:?} is shown between {before:?} and {after:?}"
        ))
    }
}

/// An address has one owner, so no two brokers have one in common.
fn address_of(broker: usize, life: u64) -> String {
    format!("127.1.{broker}.1:{}", 20_000 + life % 40_000)
}

fn name_of(broker: usize) -> String {
    format!("flap-{broker}")
}

fn topic_of(broker: usize) -> String {
    format!("flap-topic-{broker}")
}

/// So many brokers for so many seconds.
pub(super) fn run(context: &Context, record: &mut Record) -> Result<()> {
    let scan = SCAN.as_millis().to_string();
    let settings = [
        ("scanNotActiveBrokerInterval", scan.as_str()),
        ("waypost.logLevel", "error"),
    ];
    let home = Home::new(&context.binary, &settings)?;
    let server = home.start()?;
    let others = Bystanders::start(server.address(), CLIENTS)?;
    let count = usize::try_from(context.size.count)
        .unwrap_or(usize::MAX)
        .min(250);
    let words = Arc::new(Words((0..count).map(|_| AtomicU64::new(0)).collect()));
    let before = server.usage()?;
    // The first tenth of the time loads what later times use again.
    let length = Duration::from_secs(context.size.seconds);
    let mut tally = Tally::default();
    flap(
        &server,
        &words,
        length / 10,
        context.seed,
        &mut tally,
        record,
    )?;
    let warm = server.usage()?;
    flap(
        &server,
        &words,
        length - length / 10,
        context.seed + 1,
        &mut tally,
        record,
    )?;
    tally.report(count, record);
    let (_, after) = Usage::settled(server.pid(), before.fds, SLACK)?;
    record.figure("RSS before the first (KiB)", before.rss_kib);
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
    others.stop("steady broker", P99_MAX, record)?;
    server.terminate()
}

/// What happened how often, and how long it took at most.
#[derive(Debug, Default)]
struct Tally {
    answers: u64,
    judged: u64,
    ways: BTreeMap<&'static str, (u64, Duration)>,
    registrations: u64,
}

impl Tally {
    fn merge(&mut self, other: Tally) {
        self.answers += other.answers;
        self.judged += other.judged;
        self.registrations += other.registrations;
        for (way, (count, longest)) in other.ways {
            let sum = self.ways.entry(way).or_default();
            *sum = (sum.0 + count, sum.1.max(longest));
        }
    }

    fn report(self, brokers: usize, record: &mut Record) {
        record.figure("brokers", brokers);
        record.figure("acknowledged registrations", self.registrations);
        record.figure("answers that were checked", self.answers);
        record.figure("brokers looked for in them", self.judged);
        for (way, (count, longest)) in self.ways {
            record.figure(way, count);
            if way != TAKEOVER {
                record.millis(&format!("{way}: gone after, longest"), longest);
            }
        }
    }
}

const UNREGISTERED: &str = "left by 104";
const FIN: &str = "left by FIN";
const RST: &str = "left by RST";
const SILENCE: &str = "left by silence";
const TAKEOVER: &str = "moved to another connection";

/// All brokers and readers at once; every broker is down at the end.
fn flap(
    server: &Server,
    words: &Arc<Words>,
    length: Duration,
    seed: u64,
    tally: &mut Tally,
    record: &mut Record,
) -> Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    let address = server.address();
    let end = Instant::now() + length;
    let mut brokers = Vec::new();
    for index in 0..words.0.len() {
        let words = Arc::clone(words);
        let random = fastrand::Rng::with_seed(seed * 1000 + index as u64);
        brokers.push(thread::spawn(move || {
            Flapper::new(address, words, index, random)?.until(end)
        }));
    }
    let mut readers = Vec::new();
    for _ in 0..READERS {
        let (words, stop) = (Arc::clone(words), Arc::clone(&stop));
        readers.push(thread::spawn(move || read(address, &words, &stop)));
    }
    for done in brokers.into_iter().map(joined) {
        let (one, faults) = done?;
        tally.merge(one);
        record.faults(faults);
    }
    stop.store(true, Ordering::Relaxed);
    for done in readers.into_iter().map(joined) {
        let (one, faults) = done?;
        tally.merge(one);
        record.faults(faults);
    }
    Ok(())
}

/// Asks for one topic after the other and judges every answer.
fn read(address: SocketAddr, words: &Words, stop: &AtomicBool) -> Result<(Tally, Vec<String>)> {
    let mut peer = Peer::open(address)?;
    let mut tally = Tally::default();
    let mut faults = Vec::new();
    let count = words.0.len();
    let all: Vec<usize> = (0..count).collect();
    while !stop.load(Ordering::Relaxed) {
        for index in 0..=count {
            let (topic, expected) = match all.get(index..=index) {
                Some(one) => (topic_of(index), one),
                None => (SHARED.to_owned(), &all[..]),
            };
            let before: Vec<Word> = expected.iter().map(|one| words.load(*one)).collect();
            let reply = peer.ask(&route(&topic))?;
            let mut shown = match reply.code {
                0 => routed(&reply.body)?,
                17 => BTreeMap::new(),
                other => {
                    faults.push(format!("{topic}: code {other}"));
                    continue;
                }
            };
            for (one, before) in expected.iter().zip(before) {
                let judged = judge(*one, before, words.load(*one), shown.remove(&name_of(*one)));
                faults.extend(judged.err().map(|fault| format!("{topic}: {fault}")));
                tally.judged += 1;
            }
            faults.extend(
                shown
                    .keys()
                    .map(|name| format!("{topic}: {name} is in the answer")),
            );
            tally.answers += 1;
        }
    }
    Ok((tally, faults))
}

/// One broker.
#[derive(Debug)]
struct Flapper {
    address: SocketAddr,
    words: Arc<Words>,
    index: usize,
    random: fastrand::Rng,
    word: Word,
    /// Asks whether it is gone.
    client: Peer,
    tally: Tally,
    faults: Vec<String>,
}

impl Flapper {
    fn new(
        address: SocketAddr,
        words: Arc<Words>,
        index: usize,
        random: fastrand::Rng,
    ) -> Result<Flapper> {
        Ok(Flapper {
            address,
            word: words.load(index),
            words,
            index,
            random,
            client: Peer::open(address)?,
            tally: Tally::default(),
            faults: Vec::new(),
        })
    }

    fn until(mut self, end: Instant) -> Result<(Tally, Vec<String>)> {
        while Instant::now() < end {
            self.live()?;
        }
        Ok((self.tally, self.faults))
    }

    fn says(&mut self, phase: Phase) {
        self.word.phase = phase;
        self.words.store(self.index, self.word);
    }

    fn own(&self) -> Broker {
        broker(
            "flap",
            &name_of(self.index),
            0,
            &address_of(self.index, self.word.life),
        )
    }

    /// The next registration, and what it makes of the word.
    fn registration(&mut self, phase: Phase, timeout: Duration) -> Frame {
        self.word.number += 1;
        self.says(phase);
        let Word { number, life, .. } = self.word;
        let small = |number: u64| i32::try_from(number).expect("32 bits of the word are a number");
        let (life, number) = (small(life), small(number));
        let counter = u32::try_from(number).expect("it is positive");
        let table = topics(counter, &[])
            .add(&topic_of(self.index), life, number, 6, number)
            .add(SHARED, life, number, 6, number);
        self.own()
            .register()
            .with("heartbeatTimeoutMillis", &timeout.as_millis().to_string())
            .body(table.body())
    }

    fn register(&mut self, peer: &mut Peer, phase: Phase, timeout: Duration) -> Result<()> {
        let frame = self.registration(phase, timeout);
        peer.must(&frame)?;
        self.tally.registrations += 1;
        self.says(Phase::Up);
        Ok(())
    }

    /// From the first registration until it is gone.
    fn live(&mut self) -> Result<()> {
        self.word.life += 1;
        let usual = Duration::from_mins(2);
        let mut peer = Peer::open(self.address)?;
        self.register(&mut peer, Phase::Joining, usual)?;
        for _ in 0..self.random.u32(0..6) {
            match self.random.u32(0..4) {
                0 => drop(peer.must(&self.own().heartbeat())?),
                1 => {
                    // It registers anew before its old connection ends, as after a hiccup of the network.
                    let mut fresh = Peer::open(self.address)?;
                    self.register(&mut fresh, Phase::Renewing, usual)?;
                    peer = fresh;
                    self.count(TAKEOVER, Duration::ZERO);
                }
                _ => self.register(&mut peer, Phase::Renewing, usual)?,
            }
            pause(Duration::from_micros(self.random.u64(0..5000)));
        }
        self.leave(peer)
    }

    fn leave(&mut self, mut peer: Peer) -> Result<()> {
        let started;
        let way = match self.random.u32(0..20) {
            0 => {
                let frame = self.registration(Phase::Renewing, TIMEOUT);
                started = Instant::now();
                peer.must(&frame)?;
                self.tally.registrations += 1;
                // Readers may not rely on it any more: this thread alone knows when it was heard of last.
                self.says(Phase::Leaving);
                self.await_silent_end(started)?;
                SILENCE
            }
            1..8 => {
                self.says(Phase::Leaving);
                started = Instant::now();
                peer.must(&self.own().unregister())?;
                // The answer says that it is done.
                self.says(Phase::Down);
                UNREGISTERED
            }
            8..14 => {
                self.says(Phase::Leaving);
                started = Instant::now();
                drop(peer);
                FIN
            }
            _ => {
                self.says(Phase::Leaving);
                started = Instant::now();
                reset_at_close(peer.socket())?;
                drop(peer);
                RST
            }
        };
        let silence = if way == SILENCE {
            TIMEOUT + SCAN
        } else {
            Duration::ZERO
        };
        let mut bound = Bound::new(started, silence + SLACK);
        while self.is_routed()? {
            if bound.is_over() {
                self.faults
                    .push(format!("{way}: routed {:?} later", started.elapsed()));
                break;
            }
        }
        self.count(way, started.elapsed());
        self.says(Phase::Down);
        Ok(())
    }

    /// It must not go before its time.
    fn await_silent_end(&mut self, registered: Instant) -> Result<()> {
        loop {
            let gone = !self.is_routed()?;
            if registered.elapsed() >= TIMEOUT {
                return Ok(());
            }
            if gone {
                let after = registered.elapsed();
                self.faults
                    .push(format!("{SILENCE}: gone after {after:?} already"));
                return Ok(());
            }
            pause(Duration::from_millis(5));
        }
    }

    fn is_routed(&mut self) -> Result<bool> {
        let reply = self.client.ask(&route(&topic_of(self.index)))?;
        Ok(reply.code == 0)
    }

    fn count(&mut self, way: &'static str, took: Duration) {
        let sum = self.tally.ways.entry(way).or_default();
        *sum = (sum.0 + 1, sum.1.max(took));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(number: u64, life: u64, phase: Phase) -> Word {
        Word {
            number,
            life,
            phase,
        }
    }

    fn shown(life: u64, number: u64) -> Option<Routed> {
        Some(Routed {
            address: address_of(3, life),
            numbers: Some([life, number, number]),
        })
    }

    #[test]
    fn a_word_survives_its_encoding() {
        for phase in [
            Phase::Down,
            Phase::Joining,
            Phase::Up,
            Phase::Renewing,
            Phase::Leaving,
        ] {
            let one = word(70_000, 60_000, phase);
            assert_eq!(Word::decode(one.encode()), one);
        }
    }

    #[test]
    fn who_was_there_all_the_time_must_be_shown_as_acknowledged() {
        let up = word(5, 2, Phase::Up);
        assert!(judge(3, up, up, shown(2, 5)).is_ok());
        assert!(judge(3, up, up, None).is_err());
        assert!(judge(3, up, up, shown(2, 4)).is_err());
        let renewing = word(6, 2, Phase::Renewing);
        assert!(judge(3, up, renewing, shown(2, 6)).is_ok());
        assert!(judge(3, renewing, renewing, shown(2, 5)).is_ok());
        assert!(judge(3, renewing, renewing, shown(2, 4)).is_err());
        assert!(judge(3, renewing, renewing, None).is_err());
    }

    #[test]
    fn who_was_gone_all_the_time_must_not_be_shown() {
        let down = word(5, 2, Phase::Down);
        assert!(judge(3, down, down, None).is_ok());
        assert!(judge(3, down, down, shown(2, 5)).is_err());
        assert!(judge(3, down, word(6, 3, Phase::Joining), shown(3, 6)).is_ok());
        assert!(judge(3, word(5, 2, Phase::Up), word(5, 2, Phase::Leaving), None).is_ok());
        assert!(judge(3, word(5, 2, Phase::Up), word(9, 4, Phase::Up), None).is_ok());
    }

    #[test]
    fn an_answer_of_two_moments_gives_itself_away() {
        let up = word(5, 2, Phase::Up);
        let mixed = |address, numbers| Some(Routed { address, numbers });
        let of_another_life = mixed(address_of(3, 1), Some([2, 5, 5]));
        assert!(judge(3, up, up, of_another_life).is_err());
        assert!(judge(3, up, up, mixed(address_of(3, 2), Some([2, 5, 4]))).is_err());
        assert!(judge(3, up, up, mixed(address_of(3, 2), None)).is_err());
    }
}
