//! A name server without the server: a registry, its publication, and brokers that have registered.
//!
//! The one file of the benches that knows how the library takes registrations and publishes what comes of them.

use std::{net::SocketAddr, ops::Range, sync::Arc};

pub(crate) use loadgen::population::Population;
use loadgen::population::{CLUSTER, broker_addr, broker_name};
use waypost::{
    config::{Config, Environment},
    connection::{Handled, Handler, credit::Outstanding},
    ids::ConnectionId,
    processor::{self, Context, KnownBrokers, Outcome, RouteCache},
    protocol::{
        body::{DataVersion, QueueSettings, RegisterBrokerBody, TopicConfig},
        command::{RemotingCommand, ReplyHead},
        name::TopicName,
    },
    registry::{
        Command, KvTable, Registry, RouteSnapshot,
        command::{RegisterBroker, ReplyTo},
        query::Routes,
    },
    sync::{Publisher, Source, Subscriber, publication},
    time::Timestamp,
};

/// The connection that everything comes over.
const CONNECTION: ConnectionId = ConnectionId {
    worker: 0,
    slot: 0,
    generation: 0,
};

/// Brokers that hold a topic.
pub(crate) const BROKERS_PER_TOPIC: usize = 4;
/// Topics that a broker holds, where there are as many.
pub(crate) const TOPICS_PER_BROKER: usize = 2_000;

/// Brokers and topics that come to `entries` pairs of a topic and a broker that holds it.
pub(crate) fn population(entries: usize) -> Population {
    Population {
        topics: entries / BROKERS_PER_TOPIC,
        brokers_per_topic: BROKERS_PER_TOPIC,
        topics_per_broker: TOPICS_PER_BROKER,
        first_number: 0,
    }
}

/// What a topic is called: about as long as such names are.
pub(crate) fn topic_name(topic: usize) -> String {
    format!("topic-order-service-{topic:07}")
}

/// The registration of a master with these topics. A fourth of them have each value of `topicSysFlag`.
pub(crate) fn registration(broker: usize, topics: Range<usize>) -> RegisterBroker {
    let topic = |topic: usize| TopicConfig {
        name: TopicName::from(topic_name(topic).as_str()),
        settings: QueueSettings {
            read_queue_nums: 4,
            write_queue_nums: 4,
            topic_sys_flag: i32::try_from(topic % 4).expect("below 4"),
            ..QueueSettings::default()
        },
    };
    RegisterBroker {
        cluster_name: Arc::from(CLUSTER),
        broker_name: Arc::from(broker_name(broker)),
        broker_id: 0,
        broker_addr: Arc::from(broker_addr(broker)),
        ha_server_addr: None,
        zone_name: None,
        heartbeat_timeout_millis: None,
        enable_acting_master: Some(false),
        body: RegisterBrokerBody {
            data_version: DataVersion {
                counter: 1,
                ..DataVersion::default()
            },
            topics: topics.map(topic).collect(),
            filter_servers: Some(Vec::new()),
            mappings: Vec::new(),
        },
    }
}

/// Gives some of a registration's topics other numbers of queues, under the next version.
pub(crate) fn change(registration: &mut RegisterBroker, topics: Range<usize>) {
    let body = &mut registration.body;
    body.data_version.counter += 1;
    for topic in &mut body.topics[topics] {
        topic.settings.read_queue_nums ^= 12; // 4 and 8 by turns
    }
}

/// What a worker keeps from request to request.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    known_brokers: KnownBrokers,
    route_cache: RouteCache,
}

/// Processes a request by itself, not looked up together with others.
pub(crate) fn process(
    request: &RemotingCommand<'_>,
    snapshot: &RouteSnapshot,
    now: Timestamp,
    desk: &mut Desk,
    out: &mut Vec<u8>,
) -> Outcome {
    let routes = Routes::new();
    let mut clerk = Clerk {
        snapshot,
        now,
        desk,
        routes,
    };
    clerk.process(0, request, out)
}

/// Executes the requests of a connection as a worker does, as long as none needs the writer.
#[derive(Debug)]
pub(crate) struct Clerk<'a> {
    pub(crate) snapshot: &'a RouteSnapshot,
    pub(crate) now: Timestamp,
    pub(crate) desk: &'a mut Desk,
    /// Found ahead, by the requests' places.
    pub(crate) routes: Routes<'a>,
}

impl Clerk<'_> {
    fn process(
        &mut self,
        place: usize,
        request: &RemotingCommand<'_>,
        out: &mut Vec<u8>,
    ) -> Outcome {
        let mut context = Context {
            snapshot: self.snapshot,
            route: self.routes.get_mut(place).and_then(Option::take),
            now: self.now,
            connection: CONNECTION,
            peer: SocketAddr::from(([127, 0, 0, 1], 10911)),
            known_brokers: &mut self.desk.known_brokers,
            route_cache: &mut self.desk.route_cache,
            go_away: false,
        };
        processor::process(request, &mut context, out)
    }
}

impl Handler for Clerk<'_> {
    fn look_ahead(&mut self, requests: &[RemotingCommand<'_>]) {
        self.routes = processor::look_ahead(requests, self.snapshot);
    }

    fn handle(
        &mut self,
        place: usize,
        request: &RemotingCommand<'_>,
        out: &mut Vec<u8>,
        _outstanding: &mut Outstanding,
    ) -> Handled {
        assert!(!processor::is_heavy(request, self.snapshot));
        assert_eq!(self.process(place, request, out), Outcome::Answered);
        Handled::Done
    }
}

/// A registry and its publication.
#[derive(Debug)]
pub(crate) struct Filled {
    registry: Registry,
    publisher: Publisher<RouteSnapshot>,
    source: Source<RouteSnapshot>,
}

impl Filled {
    /// One without brokers.
    pub(crate) fn empty(kv: KvTable) -> Self {
        let config = Config::defaults(&Environment {
            user_home: None,
            rocketmq_home: None,
        });
        let registry = Registry::new(config, kv, 7, Timestamp::from_millis(0));
        let (publisher, source) = publication(registry.initial_snapshot());
        Self {
            registry,
            publisher,
            source,
        }
    }

    /// One in which all brokers of a population have registered.
    pub(crate) fn new(kv: KvTable, population: Population) -> Self {
        let mut filled = Self::empty(kv);
        for broker in 0..population.brokers() {
            let registration = registration(broker, population.topics_of(broker));
            filled.register(Box::new(registration), Timestamp::from_millis(1));
        }
        filled
    }

    /// A turn of the writer with one registration in it, its reply dropped: applies, publishes, frees what nobody reads any more.
    pub(crate) fn register(&mut self, registration: Box<RegisterBroker>, now: Timestamp) {
        let to = ReplyTo {
            connection: CONNECTION,
            head: ReplyHead::default(),
            oneway: false,
        };
        self.registry
            .apply(Command::Register(to, registration), now);
        let publisher = &mut self.publisher;
        drop(
            self.registry
                .publish()
                .store(|next| publisher.publish(next)),
        );
        publisher.reclaim();
    }

    /// A reader of what is published.
    pub(crate) fn subscribe(&self) -> Subscriber<RouteSnapshot> {
        self.source.subscribe()
    }
}
