//! Scripts: what happens in one run, drawn from a seed before anything runs, so that it can be replayed and shortened.

use std::{collections::BTreeMap, sync::LazyLock};

use rand_pcg::{
    Pcg64Mcg,
    rand_core::{Rng, SeedableRng},
};

use waypost::limits::{HELPED_BODY_LEN, HELPED_ENTRIES, LARGE_FRAME_LEN};

use super::request::{
    Fault, Form, Name, Registration, Request, RouteQuery, StaticTopic, Topic, Version,
};
use crate::world::Header;

pub(super) const CLUSTERS: [Name; 3] = ["c1", "c2", "c3"];
pub(super) const NAMES: [Name; 4] = ["a", "b", "c", "d"];
pub(super) const ADDRS: [Name; 6] = ["h1:1", "h2:1", "h3:1", "h4:1", "h5:1", "h6:1"];
pub(super) const TOPICS: [Name; 8] = [
    "T0",
    "T1",
    "T2",
    "T3",
    "T4",
    "T5",
    "a",
    "rmq_sys_SYNC_BROKER_MEMBER_a",
];
pub(super) const ZONES: [Name; 3] = ["z1", "Z1", "z2"];
pub(super) const NAMESPACES: [Name; 3] = ["ORDER_TOPIC_CONFIG", "n1", "n2"];
pub(super) const KEYS: [Name; 4] = ["T0", "T1", "k", ""];
const VALUES: [Name; 4] = ["a:4", "b:2;a:1", "v", ""];
const PERMS: [i32; 6] = [6, 6, 6, 4, 2, 7];
const IDS: [i64; 6] = [0, 0, 1, 2, 3, -1];
/// Peers that may be connected at a time.
pub(super) const SLOTS: usize = 7;
/// Topics of a broker that has so many that lists of them are the helper's business.
static CROWD: LazyLock<Vec<Name>> = LazyLock::new(|| {
    let names = (0..=HELPED_ENTRIES).map(|number| &*format!("X{number}").leak());
    names.collect()
});
/// Lengths of what makes a registration the helper's business, and more: a frame that has to be admitted.
const PADDINGS: [usize; 3] = [HELPED_BODY_LEN, LARGE_FRAME_LEN, 2 * LARGE_FRAME_LEN];

/// Something that happens.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    /// A peer writes a request; it connects if it has to.
    Send {
        slot: usize,
        request: Request,
        oneway: bool,
        header: Header,
    },
    /// A peer writes what nobody understands.
    Rubbish { slot: usize },
    /// So many bytes reach the server, wherever they split a frame.
    Deliver { slot: usize, bytes: usize },
    /// The peer takes so many bytes of its answers.
    Read { slot: usize, bytes: usize },
    /// A worker's turn.
    Work,
    /// A worker gets so far as to poll and is stopped for a while; meanwhile all that a peer has sent arrives.
    Stall { slot: usize, millis: u64 },
    /// The helper does so many jobs.
    Help { jobs: usize },
    /// A writer's turn of so many commands.
    Write { commands: usize },
    /// The file that waits longest is written, or cannot be.
    Persist { succeeds: bool },
    /// A connection breaks.
    Break { slot: usize },
    /// A peer sends its last byte.
    Finish { slot: usize },
    /// Milliseconds without a message.
    Pass { millis: u64 },
    /// The server starts to say goodbye.
    Goodbye,
    /// Everything on its way arrives.
    Settle,
}

/// How a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// Everybody leaves.
    Leave,
    /// The server stops, whatever is under way.
    Stop,
}

/// How much room there is everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Room {
    /// In the writer's mailbox.
    pub(super) commands: usize,
    /// In the worker's mailbox of orders.
    pub(super) orders: usize,
    /// What the worker may have out.
    pub(super) credits: usize,
    /// Unsent bytes at which a connection is read no further.
    pub(super) high_water: usize,
    /// Bytes that a socket takes before the peer reads.
    pub(super) socket: usize,
}

impl Room {
    /// Nothing waits for room.
    pub(super) const WIDE: Self = Self {
        commands: 1000,
        orders: 100,
        credits: 1000,
        high_water: 65_536,
        socket: 1 << 30,
    };
}

/// One run.
#[derive(Debug, Clone)]
pub(super) struct Script {
    /// Lines of the configuration file.
    pub(super) start: Vec<(Name, Name)>,
    pub(super) room: Room,
    pub(super) steps: Vec<Step>,
    pub(super) ending: Ending,
}

/// Numbers from a seed. Only whole outputs of the generator are used, whose algorithm is fixed.
struct Dice(Pcg64Mcg);

impl Dice {
    fn below(&mut self, count: usize) -> usize {
        let count = u64::try_from(count).expect("a small number");
        usize::try_from(self.0.next_u64() % count).expect("it is below a small number")
    }

    fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    fn maybe<T: Copy>(&mut self, percent: usize, of: &[T]) -> Option<T> {
        self.percent(percent).then(|| self.pick(of))
    }
}

/// A broker process as it knows itself.
#[derive(Debug, Clone)]
struct Broker {
    cluster: Name,
    name: Name,
    id: i64,
    addr: Name,
    slot: usize,
    topics: BTreeMap<Name, Topic>,
    version: Version,
    acting: Option<bool>,
    zone: Option<Name>,
    timeout_millis: Option<i64>,
    form: Form,
}

/// How messages travel in a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weather {
    /// Each request is answered before the next.
    Calm,
    /// Anything waits for anything.
    Storm,
}

struct Author {
    dice: Dice,
    weather: Weather,
    brokers: Vec<Broker>,
    steps: Vec<Step>,
    clock: i64,
}

impl Script {
    /// The script of a seed.
    pub(super) fn of(seed: u64) -> Self {
        let mut dice = Dice(Pcg64Mcg::seed_from_u64(seed));
        let weather = if dice.percent(50) {
            Weather::Calm
        } else {
            Weather::Storm
        };
        let tight = weather == Weather::Storm && dice.percent(50);
        let start = start_lines(&mut dice);
        let mut author = Author {
            dice,
            weather,
            brokers: Vec::new(),
            steps: Vec::new(),
            clock: 1,
        };
        let brokers = 2 + author.dice.below(4);
        author.brokers = (0..brokers)
            .map(|number| author.new_broker(number))
            .collect();
        if author.dice.percent(4) {
            author.crowd();
        }
        let length = 20 + author.dice.below(60);
        while author.steps.len() < length {
            author.scene();
        }
        if author.dice.percent(5) {
            let at = author.dice.below(author.steps.len());
            author.steps.insert(at, Step::Goodbye);
        }
        let ending = if author.dice.percent(15) {
            Ending::Stop
        } else {
            Ending::Leave
        };
        Self {
            start,
            room: if tight {
                Room {
                    commands: 2,
                    orders: 1,
                    credits: 1 + author.dice.below(4),
                    high_water: 200,
                    socket: 64,
                }
            } else {
                Room::WIDE
            },
            steps: author.steps,
            ending,
        }
    }
}

fn start_lines(dice: &mut Dice) -> Vec<(Name, Name)> {
    let mut lines = Vec::new();
    for (key, percent) in [
        ("supportActingMaster", 50),
        ("notifyMinBrokerIdChanged", 50),
        ("deleteTopicWithBrokerRegistration", 25),
        ("orderMessageEnable", 50),
        ("needWaitForService", 3),
    ] {
        if dice.percent(percent) {
            lines.push((key, "true"));
        }
    }
    if dice.percent(10) {
        lines.push(("waypost.brokerNameConflict", "reject"));
    }
    lines
}

impl Author {
    fn new_broker(&mut self, number: usize) -> Broker {
        let dice = &mut self.dice;
        let form = dice.pick(&[
            Form::Json,
            Form::Json,
            Form::Json,
            Form::Zlib,
            Form::Mislabelled,
            Form::Json4,
            Form::Zlib4,
            Form::Bare,
        ]);
        let is_5x = form.is_5x();
        let mut broker = Broker {
            cluster: dice.pick(&CLUSTERS[..2]),
            name: dice.pick(&NAMES[..3]),
            id: dice.pick(&IDS),
            addr: ADDRS[number],
            slot: number % SLOTS,
            topics: BTreeMap::new(),
            version: (0, 1, 1),
            acting: if is_5x {
                dice.pick(&[None, Some(true), Some(true), Some(false)])
            } else {
                None
            },
            zone: if is_5x { dice.maybe(40, &ZONES) } else { None },
            timeout_millis: if is_5x {
                dice.maybe(50, &[3000, 10_000, 0, -5, i64::MAX])
            } else {
                None
            },
            form,
        };
        for _ in 0..2 + dice.below(4) {
            let topic = dice.pick(&TOPICS);
            broker.topics.insert(topic, new_topic(dice, topic, form));
        }
        broker
    }

    /// One broker has very many topics.
    fn crowd(&mut self) {
        let broker = &mut self.brokers[0];
        for name in CROWD.iter() {
            let topic = new_topic(&mut self.dice, name, broker.form);
            broker.topics.insert(name, topic);
        }
    }

    /// One thing that somebody does, with what the network makes of it.
    fn scene(&mut self) {
        let number = self.dice.below(self.brokers.len());
        match self.dice.below(100) {
            0..21 => self.register_fully(number),
            21..24 => self.send_large_frames(number),
            24..30 => self.change_topics(number),
            30..34 => self.register_in_slices(number),
            34..37 => self.register_with_an_old_version(number),
            37..47 => self.heartbeat(number),
            47..50 => self.switch_roles(number),
            50..53 => self.switch_id(number),
            53..57 => self.move_address(number),
            57..59 => self.rename(number),
            59..63 => self.leave(number),
            63..66 => self.change_connection(number),
            66..69 => self.reconnect_in_haste(number),
            69..71 => self.register_wildly(),
            71..80 => self.administer(),
            80..88 => self.store(),
            88..93 => self.ask_over_the_wire(),
            _ => self.let_time_pass(),
        }
        self.travel();
    }

    fn send(&mut self, slot: usize, request: Request) {
        let oneway = self.dice.percent(6);
        let header = if self.dice.percent(25) {
            Header::RocketMq
        } else {
            Header::Json
        };
        self.steps.push(Step::Send {
            slot,
            request,
            oneway,
            header,
        });
        if self.weather == Weather::Calm {
            self.steps.push(Step::Settle);
        }
    }

    /// What happens to what is under way.
    fn travel(&mut self) {
        if self.weather == Weather::Calm {
            return;
        }
        for _ in 0..self.dice.below(8) {
            let slot = self.dice.below(SLOTS);
            let step = match self.dice.below(100) {
                0..22 => Step::Deliver {
                    slot,
                    bytes: self.dice.pick(&[1, 50, 300, 700, LARGE_FRAME_LEN + 1000]),
                },
                22..48 => Step::Work,
                48..66 => Step::Write {
                    commands: 1 + self.dice.below(5),
                },
                66..76 => Step::Read {
                    slot,
                    bytes: 1 + self.dice.below(400),
                },
                76..83 => Step::Persist {
                    succeeds: self.dice.percent(80),
                },
                83..88 => Step::Help {
                    jobs: 1 + self.dice.below(3),
                },
                88..92 => Step::Stall {
                    slot,
                    millis: self.dice.pick(&[1, 400, 6000, 60_000]),
                },
                92 => Step::Rubbish { slot },
                _ => Step::Settle,
            };
            self.steps.push(step);
        }
    }

    fn registration(&self, number: usize) -> Registration {
        let broker = &self.brokers[number];
        Registration {
            cluster: broker.cluster,
            name: broker.name,
            id: broker.id,
            addr: broker.addr,
            topics: broker.topics.values().copied().collect(),
            version: broker.version,
            acting: broker.acting,
            zone: broker.zone,
            timeout_millis: broker.timeout_millis,
            filter_servers: (broker.form != Form::Bare).then(Vec::new),
            mappings: Vec::new(),
            form: broker.form,
            padding: 0,
            checksum: false,
            fault: None,
        }
    }

    fn register(&mut self, number: usize, mut registration: Registration) {
        let dice = &mut self.dice;
        registration.checksum = dice.percent(20);
        if registration.form != Form::Bare && dice.percent(15) {
            registration.filter_servers = Some(vec!["f:1", "f:2"]);
        }
        if registration.form == Form::Json && dice.percent(10) {
            registration.filter_servers = None;
        }
        if registration.form.is_5x() && dice.percent(15) {
            registration.mappings = vec![StaticTopic {
                topic: dice.pick(&TOPICS),
                shown_as: dice.maybe(60, &NAMES),
                queues: dice.pick(&[1, 2]),
            }];
        }
        if matches!(registration.form, Form::Json | Form::Json4) && dice.percent(8) {
            registration.padding = dice.pick(&PADDINGS);
        }
        if dice.percent(4) {
            registration.fault = Some(dice.pick(&[
                Fault::Checksum,
                Fault::NoCluster,
                Fault::NoName,
                Fault::NoAddr,
                Fault::NoId,
                Fault::OddAddr,
                Fault::CutBody,
                Fault::NegativeVersion,
            ]));
        }
        let slot = self.brokers[number].slot;
        self.send(slot, Request::Register(Box::new(registration)));
    }

    fn register_fully(&mut self, number: usize) {
        let registration = self.registration(number);
        self.register(number, registration);
    }

    fn next_version(&mut self, number: usize) {
        self.clock += 1;
        let broker = &mut self.brokers[number];
        broker.version = (broker.version.0, self.clock, broker.version.2 + 1);
        if broker.form.is_5x() && self.dice.percent(15) {
            broker.version.0 = i64::try_from(self.dice.below(3)).expect("a small number");
        }
    }

    /// A topic is made, changed or deleted, and told of alone or with all others.
    fn change_topics(&mut self, number: usize) {
        self.next_version(number);
        let topic = self.dice.pick(&TOPICS);
        let broker = &mut self.brokers[number];
        if self.dice.percent(25) {
            broker.topics.remove(topic);
            return self.register_fully(number);
        }
        let topic = new_topic(&mut self.dice, topic, broker.form);
        broker.topics.insert(topic.name, topic);
        let mut registration = self.registration(number);
        if self.dice.percent(70) {
            registration.topics = vec![topic];
        }
        self.register(number, registration);
    }

    /// `enableSplitRegistration`: all slices carry one version.
    fn register_in_slices(&mut self, number: usize) {
        self.next_version(number);
        let names: Vec<Name> = self.brokers[number].topics.keys().copied().collect();
        for name in names
            .into_iter()
            .filter(|_| self.dice.percent(40))
            .collect::<Vec<_>>()
        {
            let broker = &mut self.brokers[number];
            let topic = new_topic(&mut self.dice, name, broker.form);
            broker.topics.insert(name, topic);
        }
        let whole = self.registration(number);
        let size = (1 + self.dice.below(3)).max(whole.topics.len() / 4);
        for slice in whole.topics.chunks(size) {
            let slice = Registration {
                topics: slice.to_vec(),
                ..whole.clone()
            };
            self.register(number, slice);
        }
    }

    fn register_with_an_old_version(&mut self, number: usize) {
        let mut registration = self.registration(number);
        registration.version.1 -= 1;
        if registration.version.0 > 0 && self.dice.percent(50) {
            registration.version.0 -= 1;
        }
        self.register(number, registration);
    }

    fn heartbeat(&mut self, number: usize) {
        let Broker {
            cluster,
            addr,
            version,
            slot,
            ..
        } = self.brokers[number];
        let slot = if self.dice.percent(75) {
            slot
        } else {
            self.dice.below(SLOTS)
        };
        let cluster = if self.dice.percent(90) {
            cluster
        } else {
            self.dice.pick(&CLUSTERS)
        };
        let request = if self.dice.percent(50) {
            Request::Heartbeat(cluster, addr)
        } else {
            Request::DataVersion(cluster, addr, version)
        };
        self.send(slot, request);
    }

    /// Two brokers of one name change places: a slave is elected.
    fn switch_roles(&mut self, number: usize) {
        let other = self.dice.below(self.brokers.len());
        let id = self.brokers[number].id;
        self.brokers[number].id = self.brokers[other].id;
        self.brokers[other].id = id;
        let (name, cluster) = (self.brokers[number].name, self.brokers[number].cluster);
        self.brokers[other].name = name;
        self.brokers[other].cluster = cluster;
        for number in [number, other] {
            self.register_fully(number);
        }
    }

    fn switch_id(&mut self, number: usize) {
        self.brokers[number].id = self.dice.pick(&IDS);
        self.register_fully(number);
    }

    /// A broker comes back with another address, perhaps one that another broker had or has.
    fn move_address(&mut self, number: usize) {
        self.brokers[number].addr = self.dice.pick(&ADDRS);
        self.register_fully(number);
    }

    fn rename(&mut self, number: usize) {
        if self.dice.percent(60) {
            self.brokers[number].name = self.dice.pick(&NAMES);
        } else {
            self.brokers[number].cluster = self.dice.pick(&CLUSTERS);
        }
        self.register_fully(number);
    }

    /// An orderly end, mostly; sometimes of a whole machine.
    fn leave(&mut self, number: usize) {
        let whole = if self.dice.percent(25) {
            self.brokers.len()
        } else {
            number + 1
        };
        for number in number..whole {
            let Broker {
                mut cluster,
                mut name,
                id,
                mut addr,
                slot,
                ..
            } = self.brokers[number];
            match self.dice.below(12) {
                0 => cluster = self.dice.pick(&CLUSTERS),
                1 => name = self.dice.pick(&NAMES),
                2 => addr = self.dice.pick(&ADDRS),
                _ => {}
            }
            self.send(slot, Request::Unregister(cluster, name, id, addr));
        }
    }

    /// A connection ends, or the broker speaks over another one from now on.
    fn change_connection(&mut self, number: usize) {
        let slot = self.brokers[number].slot;
        match self.dice.below(10) {
            0..5 => self.steps.push(Step::Break { slot }),
            5..7 => self.steps.push(Step::Finish { slot }),
            _ => self.brokers[number].slot = self.dice.below(SLOTS),
        }
        if self.weather == Weather::Calm {
            self.steps.push(Step::Settle);
        }
        if self.dice.percent(50) {
            self.register_fully(number);
        }
    }

    /// A connection ends with one request out and another unread, and the next takes its place before there is an answer.
    fn reconnect_in_haste(&mut self, number: usize) {
        let slot = self.brokers[number].slot;
        let end = if self.dice.percent(70) {
            Step::Break { slot }
        } else {
            Step::Finish { slot }
        };
        for then in [end, Step::Work] {
            self.register_fully(number);
            let arrives = Step::Deliver {
                slot,
                bytes: LARGE_FRAME_LEN,
            };
            self.steps.extend([arrives.clone(), Step::Work]);
            let topic = self.dice.pick(&TOPICS);
            self.send(
                slot,
                Request::Route(RouteQuery {
                    topic,
                    version: 479,
                    zone: None,
                }),
            );
            self.steps.extend([arrives, then, Step::Work]);
        }
    }

    /// Two frames that need admission come at once; the first stops halfway, for a while or for good.
    fn send_large_frames(&mut self, number: usize) {
        let first = self.brokers[number].slot;
        for number in [number, self.dice.below(self.brokers.len())] {
            let registration = Registration {
                form: Form::Json,
                padding: 2 * LARGE_FRAME_LEN,
                ..self.registration(number)
            };
            let slot = self.brokers[number].slot;
            self.send(slot, Request::Register(Box::new(registration)));
            let bytes = LARGE_FRAME_LEN + 1000;
            self.steps
                .extend([Step::Deliver { slot, bytes }, Step::Work]);
        }
        let then = match self.dice.below(4) {
            0 => Step::Break { slot: first },
            1 => Step::Finish { slot: first },
            2 => Step::Pass { millis: 6000 },
            _ => Step::Settle,
        };
        self.steps.extend([then, Step::Work]);
    }

    /// Anything at all.
    fn register_wildly(&mut self) {
        let number = self.dice.below(ADDRS.len());
        let mut broker = self.new_broker(number);
        broker.slot = self.dice.below(SLOTS);
        broker.name = self.dice.pick(&NAMES);
        if broker.form.is_5x() {
            broker.version.0 = i64::try_from(self.dice.below(3)).expect("a small number");
        }
        let other = self.dice.below(self.brokers.len());
        self.brokers[other] = broker;
        self.register_fully(other);
    }

    fn administer(&mut self) {
        let slot = self.dice.below(SLOTS);
        let dice = &mut self.dice;
        let request = match dice.below(10) {
            0..3 => Request::WipeWritePerm(dice.pick(&NAMES)),
            3..5 => Request::AddWritePerm(dice.pick(&NAMES)),
            5..8 => {
                Request::DeleteTopic(dice.pick(&TOPICS), dice.maybe(60, &["c1", "c2", "c3", ""]))
            }
            _ => {
                let topic = dice.pick(&TOPICS);
                let entries = (0..dice.below(4)).map(|_| (dice.pick(&NAMES), dice.pick(&PERMS), 3));
                Request::RegisterTopic(topic, entries.collect())
            }
        };
        self.send(slot, request);
    }

    fn store(&mut self) {
        let slot = self.dice.below(SLOTS);
        let dice = &mut self.dice;
        let (namespace, key) = (dice.pick(&NAMESPACES), dice.pick(&KEYS));
        let request = match dice.below(10) {
            0..4 => Request::PutKv(namespace, key, dice.maybe(85, &VALUES)),
            4..6 => Request::DeleteKv(namespace, key),
            _ => {
                let lines = 0..dice.below(3);
                Request::UpdateConfig(lines.map(|_| config_line(dice)).collect())
            }
        };
        self.send(slot, request);
    }

    fn ask_over_the_wire(&mut self) {
        let slot = self.dice.below(SLOTS);
        let dice = &mut self.dice;
        let request = match dice.below(12) {
            0..4 => Request::Route(RouteQuery {
                topic: dice.pick(&TOPICS),
                version: dice.pick(&[479, 399, 0]),
                zone: dice.maybe(20, &ZONES),
            }),
            4 => Request::ClusterInfo,
            5 => Request::GetKv(dice.pick(&NAMESPACES), dice.pick(&KEYS)),
            6 => Request::GetConfig,
            7 => Request::AllTopics,
            8 => Request::SystemTopics,
            9 => Request::TopicsOfCluster(dice.pick(&CLUSTERS)),
            10 => Request::ListKv(dice.pick(&NAMESPACES)),
            _ => Request::Unknown(dice.pick(&[0, 905, 1001])),
        };
        self.send(slot, request);
    }

    fn let_time_pass(&mut self) {
        let millis = match self.dice.below(10) {
            0..4 => self.dice.below(4000),
            4..8 => self.dice.below(20_000),
            8 => self.dice.below(130_000),
            _ => 1,
        };
        self.steps.push(Step::Pass {
            millis: u64::try_from(millis).expect("a small number"),
        });
        if self.weather == Weather::Calm {
            self.steps.push(Step::Settle);
        }
    }
}

/// A compressed body carries no flags (Q18).
fn new_topic(dice: &mut Dice, name: Name, form: Form) -> Topic {
    let has_flag = matches!(form, Form::Json | Form::Json4 | Form::Bare);
    Topic {
        name,
        perm: dice.pick(&PERMS),
        queues: dice.pick(&[4, 4, 8]),
        flag: if has_flag {
            dice.pick(&[0, 0, 1, 2, 3])
        } else {
            0
        },
    }
}

fn config_line(dice: &mut Dice) -> (Name, Name) {
    match dice.below(16) {
        0 => ("foo", "1"),
        1 => ("kvConfigPath", "/x"),
        2 => ("productEnvName", "a\\nkvConfigPath=/x"),
        3 => ("productEnvName", dice.pick(&["center", "other"])),
        4 | 5 => (
            "scanNotActiveBrokerInterval",
            dice.pick(&["5000", "1000", "60000", "abc", "0"]),
        ),
        6 => (
            "needWaitForService",
            dice.pick(&["true", "false", "false", "false"]),
        ),
        _ => {
            let key = dice.pick(&[
                "supportActingMaster",
                "notifyMinBrokerIdChanged",
                "deleteTopicWithBrokerRegistration",
                "orderMessageEnable",
                "returnOrderTopicConfigToBroker",
                "enableTopicList",
                "enableAllTopicList",
            ]);
            (key, dice.pick(&["true", "TRUE", "false", "yes"]))
        }
    }
}
