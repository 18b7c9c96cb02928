//! What the read path allocates: nothing.

use std::time::Duration;

use waypost::{
    connection::{Connection, Handled, Handler, StreamLimits, credit::Outstanding},
    processor::{self, Context, KnownBrokers, Outcome, RouteCache},
    protocol::command::RemotingCommand,
    registry::{RouteSnapshot, query::Routes},
    time::Timestamp,
};

use crate::world::{Ask, World, ask, conn, heartbeat, reg, route, topics};

const LIMITS: StreamLimits = StreamLimits {
    frame_len_max: 16 * 1024 * 1024,
    high_water: 64 * 1024,
    low_water: 32 * 1024,
};

/// What a worker does with a connection's requests, less the socket.
struct Reader<'a> {
    snapshot: &'a RouteSnapshot,
    routes: Routes<'a>,
    known_brokers: &'a mut KnownBrokers,
    route_cache: &'a mut RouteCache,
}

impl Handler for Reader<'_> {
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
        let mut context = Context {
            snapshot: self.snapshot,
            route: self.routes.get_mut(place).and_then(Option::take),
            now: Timestamp::from_millis(0),
            connection: conn(1),
            peer: ([127, 0, 0, 1], 1).into(),
            known_brokers: self.known_brokers,
            route_cache: self.route_cache,
            go_away: false,
        };
        let outcome = processor::process(request, &mut context, out);
        assert!(matches!(
            outcome,
            Outcome::Answered | Outcome::AnsweredAndSubmit(_)
        ));
        Handled::Done
    }
}

fn bytes(requests: &[Ask]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for request in requests {
        let frame = request.frame();
        let len = u32::try_from(frame.len()).expect("a short frame");
        bytes.extend_from_slice(&len.to_be_bytes());
        bytes.extend_from_slice(&frame);
    }
    bytes
}

/// How many allocations the requests cost when they come again.
fn allocations(world: &World, requests: &[Ask]) -> u64 {
    let bytes = bytes(requests);
    let mut out = Vec::new();
    let (mut known_brokers, mut route_cache) = (KnownBrokers::default(), RouteCache::default());
    let mut connection = Connection::new(Duration::from_secs(120), Timestamp::from_millis(0));
    let mut receive = || {
        out.clear();
        let reader = Reader {
            snapshot: world.snapshot(),
            routes: Routes::new(),
            known_brokers: &mut known_brokers,
            route_cache: &mut route_cache,
        };
        let now = Timestamp::from_millis(0);
        let received = connection.handle_input(&bytes, 0, &LIMITS, now, &mut out, reader);
        received.expect("well-formed");
    };
    for _ in 0..3 {
        receive();
    }
    allocation_counter::measure(receive).count_total
}

fn world() -> World {
    let mut world = World::new();
    let names: Vec<String> = (0..100).map(|number| format!("topic-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for broker in 0..6 {
        let (name, addr) = (format!("broker-{broker}"), format!("10.0.0.{broker}:10911"));
        let registration = reg("c", &name, 0, &addr, &topics(&names), (0, 1, 1));
        assert_eq!(world.send(broker, &registration).code, 0);
    }
    world
}

#[test]
fn a_route_query_allocates_nothing() {
    let world = world();
    for depth in [1, 2, 16, 100] {
        let queries: Vec<Ask> = (0..depth)
            .map(|number| route(&format!("topic-{number}")))
            .collect();
        assert_eq!(allocations(&world, &queries), 0, "{depth}");
    }
}

#[test]
fn old_and_new_clients_that_ask_in_turn_cost_no_allocation_either() {
    let world = world();
    let queries = [479, 300, 479, 300].map(|version| route("topic-1").version(version));
    assert_eq!(allocations(&world, &queries), 0);
}

#[test]
fn topics_on_fifty_different_lists_of_brokers_and_queues_cost_no_allocation_either() {
    let mut world = World::new();
    let table: Vec<_> = (1..=50)
        .map(|queues| (format!("topic-{queues}"), 6, queues))
        .collect();
    let registration = reg("c", "broker-0", 0, "10.0.0.1:10911", &table, (0, 1, 1));
    assert_eq!(world.send(0, &registration).code, 0);
    // Twice each: a body is kept when it is asked for again.
    let twice = table.iter().flat_map(|(topic, ..)| [topic, topic]);
    let queries: Vec<Ask> = twice.map(|topic| route(topic)).collect();
    assert_eq!(allocations(&world, &queries), 0);
}

#[test]
fn a_heartbeat_allocates_nothing() {
    let world = world();
    let beat = heartbeat("c", "broker-1", "10.0.0.1:10911");
    let version = ask(322)
        .ext("clusterName", "c")
        .ext("brokerName", "broker-1")
        .ext("brokerAddr", "10.0.0.1:10911")
        .body(r#"{"counter":1,"stateVersion":0,"timestamp":1}"#);
    assert_eq!(allocations(&world, &[beat, version]), 0);
}

#[test]
fn what_does_allocate_is_counted() {
    assert!(allocations(&world(), &[route("unknown")]) > 0);
}
