//! A server in this process, on a port of the system's choice, and peers with real sockets.

use std::{
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;
use waypost::{
    config::{Config, Environment},
    registry::KvTable,
    server::Server,
};

use super::client::{Client, get_kv, put_kv, registration, request, route};

/// A server that ends with its test.
pub(crate) struct Running {
    server: Option<Server>,
    address: SocketAddr,
    _folder: TempDir,
}

impl Running {
    /// Starts with two workers and these lines of configuration.
    pub(crate) fn start(lines: &str) -> Self {
        Self::start_with_workers(2, lines)
    }

    fn start_with_workers(workers: usize, lines: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let environment = Environment {
            user_home: Some(folder.path().display().to_string()),
            rocketmq_home: None,
        };
        let mut config = Config::defaults(&environment);
        let file = format!(
            "listenPort=0\nbindAddress=127.0.0.1\nwaypost.workerThreads={workers}\n{lines}"
        );
        let findings = config.load_file("test.properties", file.as_bytes());
        assert!(findings.is_empty(), "{findings:?}");
        let server = Server::start(config, KvTable::default()).unwrap();
        Self {
            address: server.local_addr(),
            server: Some(server),
            _folder: folder,
        }
    }

    pub(crate) fn connect(&self) -> Client {
        Client::connect(self.address)
    }

    fn shutdown(&mut self) {
        self.server.take().expect("it is shut down once").shutdown();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.shutdown();
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "sockets live in real time")]
fn now() -> Instant {
    Instant::now()
}

/// Asks for a route until it is answered with this code.
fn until_route_answers(client: &mut Client, topic: &str, code: i64) {
    let started = now();
    while client.ask(&route(1, topic)).code != code {
        assert!(
            started.elapsed() < Duration::from_secs(20),
            "no {code} for {topic}"
        );
    }
}

#[test]
fn requests_sent_in_one_go_see_each_other_and_are_answered_in_order() {
    let server = Running::start("");
    let mut client = server.connect();
    for round in 0..50 {
        let topics = [format!("T{round}"), format!("U{round}")];
        let topics = [&*topics[0], &*topics[1]];
        let first = 10 * round;
        client.send(
            &[
                route(first, topics[0]),
                registration(first + 1, "b", "127.0.0.1:1", &topics),
                route(first + 2, topics[0]),
                request(106, first + 3, &[], b""),
                route(first + 4, topics[1]),
            ]
            .concat(),
        );
        let answers: Vec<_> = (0..5).map(|_| client.receive()).collect();
        let opaques: Vec<_> = answers.iter().map(|answer| answer.opaque - first).collect();
        assert_eq!(opaques, [0, 1, 2, 3, 4]);
        let codes: Vec<_> = answers.iter().map(|answer| answer.code).collect();
        assert_eq!(codes, [17, 0, 0, 0, 0]);
    }
}

#[test]
fn every_start_hashes_names_by_another_seed() {
    let names: Vec<String> = (0..100).map(|number| format!("T{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let [one, other] = [(); 2].map(|()| {
        let server = Running::start("");
        let mut client = server.connect();
        client.ask(&registration(1, "b", "127.0.0.1:1", &names));
        client.ask(&request(206, 2, &[], b"")).body
    });
    assert_eq!(one.len(), other.len(), "the same topics");
    assert_ne!(one, other, "in the order of their hashes");
}

#[test]
fn c1_a_registration_as_long_as_a_frame_may_be_is_answered_and_a_longer_one_ends_its_connection() {
    const LIMIT: usize = 65_536;
    let server = Running::start(&format!("com.rocketmq.remoting.frameMaxLength={LIMIT}\n"));
    let topic = |len: usize| "t".repeat(len);
    let frame = |len: usize| registration(1, "b", "127.0.0.1:1", &[&topic(len), "u"]);
    // The name stands in the body twice.
    let len = (LIMIT - frame(0).len()) / 2;
    for (len, is_answered) in [(len, true), (len + 1, false)] {
        let mut client = server.connect();
        let frame = frame(len);
        assert_eq!(frame.len() <= LIMIT, is_answered, "{}", frame.len());
        client.send(&frame);
        let code = client.next().map(|answer| answer.code);
        assert_eq!(code, is_answered.then_some(0));
    }
}

#[test]
fn c10_the_brokers_of_many_connections_that_close_at_once_all_leave() {
    let server = Running::start("");
    let brokers: Vec<Client> = (0..200)
        .map(|number| {
            let mut broker = server.connect();
            let (name, addr) = (format!("b{number}"), format!("127.0.0.1:{number}"));
            let answer = broker.ask(&registration(1, &name, &addr, &["T", "U"]));
            assert_eq!(answer.code, 0);
            broker
        })
        .collect();
    let mut client = server.connect();
    assert_eq!(client.ask(&route(1, "T")).code, 0);

    drop(brokers);

    // A route is there as long as one of them is.
    until_route_answers(&mut client, "T", 17);
}

#[test]
fn h8_each_request_of_a_connection_is_answered_in_its_own_encoding() {
    let server = Running::start("");
    let mut client = server.connect();
    // Code 106, language, version, opaque 7, flag, neither remark nor ext fields (spec 1.4).
    let header = [
        0, 106, 0, 1, 223, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ];
    let binary = [&[0, 0, 0, 25, 1, 0, 0, 21][..], &header].concat();
    let json = request(106, 8, &[], b"");
    for (request, encoding) in [(&binary, 1), (&json, 0), (&binary, 1)] {
        client.send(request);
        let mut start = [0; 8];
        client.socket.read_exact(&mut start).unwrap();
        assert_eq!(start[4], encoding);
        let len = u32::from_be_bytes(start[..4].try_into().unwrap()) as usize;
        client.socket.read_exact(&mut vec![0; len - 4]).unwrap();
    }
}

/// A broker of the topics T and U, registered.
fn with_a_broker(server: &Running) -> Client {
    let mut broker = server.connect();
    let registers = registration(1, "b", "127.0.0.1:1", &["T", "U"]);
    assert_eq!(broker.ask(&registers).code, 0);
    broker
}

#[test]
fn d14_one_server_carries_the_clients_that_all_choose_it() {
    let server = Running::start("");
    let _broker = with_a_broker(&server);
    // Both ends of each connection are of this process, which may have a thousand descriptors.
    let mut clients: Vec<Client> = (0..300).map(|_| server.connect()).collect();
    for round in 0..3 {
        for client in &mut clients {
            client.send(&route(round, "T"));
        }
        for client in &mut clients {
            let answer = client.receive();
            assert_eq!((answer.code, answer.opaque), (0, round));
        }
    }
}

#[test]
fn many_clients_are_served_at_once() {
    let server = Running::start("");
    let mut broker = with_a_broker(&server);
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                let mut client = server.connect();
                for opaque in 0..200 {
                    let answer = client.ask(&route(opaque, "T"));
                    assert_eq!((answer.code, answer.opaque), (0, opaque));
                }
            });
        }
        scope.spawn(|| {
            for round in 2..200 {
                let answer = broker.ask(&registration(round, "b", "127.0.0.1:1", &["T", "U"]));
                assert_eq!((answer.code, answer.opaque), (0, round));
            }
        });
    });
}

#[test]
fn a_peer_that_sends_no_more_gets_its_answers_and_then_the_end() {
    let server = Running::start("");
    let mut client = server.connect();
    client.send(&[put_kv(1, "k", "v"), get_kv(2, "k"), route(3, "none")].concat());
    client.finish();
    let answers: Vec<_> = std::iter::from_fn(|| client.next())
        .map(|answer| answer.code)
        .collect();
    assert_eq!(answers, [0, 0, 17]);
}

#[test]
fn a_broker_leaves_when_its_connection_ends_however_it_ends() {
    let server = Running::start("");
    let mut client = server.connect();
    let ends: [fn(Client); 4] = [
        drop,
        Client::reset,
        // A half-close: it may go on reading, which does not keep its broker.
        |mut broker| {
            broker.finish();
            assert_eq!(broker.next(), None);
        },
        |mut broker| {
            broker.send(b"rubbish!");
            assert_eq!(broker.next(), None);
        },
    ];
    for (number, end) in ends.into_iter().enumerate() {
        let topic = format!("T{number}");
        let mut broker = server.connect();
        // Three brokers over one connection: all leave.
        for name in ["x", "y", "z"] {
            let addr = format!(
                "127.0.0.1:{number}{}",
                name.len() + name.as_bytes()[0] as usize
            );
            assert_eq!(
                broker
                    .ask(&registration(1, name, &addr, &[&topic, "other"]))
                    .code,
                0
            );
        }
        assert_eq!(client.ask(&route(1, &topic)).code, 0);
        end(broker);
        until_route_answers(&mut client, &topic, 17);
    }
}

#[test]
fn rubbish_and_greetings_of_other_protocols_end_their_connection_alone_and_are_not_answered() {
    let server = Running::start("");
    let mut bystander = server.connect();
    let rubbish: [&[u8]; 7] = [
        b"GET / HTTP/1.1\r\n\r\n",
        &[0x16, 3, 1, 0, 200],
        b"PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n",
        &[0; 16],
        &[0xff; 16],
        &[0, 0, 0, 9, 7, 0, 0, 1, b'{', b'}', 0, 0, 0],
        &[0, 0, 0, 6, 0, 0, 0, 2, b'[', b']'],
    ];
    for bytes in rubbish {
        let mut peer = server.connect();
        peer.send(bytes);
        assert_eq!(peer.next(), None, "{bytes:?}");
    }
    let mut peer = server.connect();
    peer.send(&[&route(5, "none")[..], b"GET / HTTP/1.1"].concat());
    assert_eq!(
        peer.receive().opaque,
        5,
        "what came before the rubbish is answered"
    );
    assert_eq!(peer.next(), None);
    assert_eq!(bystander.ask(&route(1, "none")).code, 17);
}

#[test]
fn d1_a_silent_connection_is_closed_after_the_configured_time_and_a_busy_one_is_not() {
    let server = Running::start("serverChannelMaxIdleTimeSeconds=1\n");
    let mut busy = server.connect();
    let started = now();
    let silent = server.connect();
    silent.socket.set_nonblocking(true).unwrap();
    let mut byte = [0];
    while !matches!(silent.socket.peek(&mut byte), Ok(0)) {
        assert_eq!(busy.ask(&route(1, "none")).code, 17);
        assert!(started.elapsed() < Duration::from_secs(20), "never closed");
    }
    let elapsed = started.elapsed();
    assert!(
        elapsed >= Duration::from_millis(990),
        "closed after {elapsed:?}"
    );
    assert_eq!(busy.ask(&route(1, "none")).code, 17);
}

#[test]
fn c14_a_peer_that_does_not_read_is_not_read_and_loses_nothing() {
    // Small kernel buffers, so that what is in flight is the server's own.
    let server = Running::start("serverSocketRcvBufSize=8192\nserverSocketSndBufSize=8192\n");
    let names: Vec<String> = (0..1000)
        .map(|number| format!("topic-with-a-long-name-{number:05}"))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut broker = server.connect();
    assert_eq!(
        broker
            .ask(&registration(1, "b", "127.0.0.1:1", &names))
            .code,
        0
    );

    let mut greedy = server.connect();
    socket2::SockRef::from(&greedy.socket)
        .set_send_buffer_size(8192)
        .unwrap();
    let requests: Vec<u8> = (0..20_000)
        .flat_map(|opaque| request(206, opaque, &[], b""))
        .collect();
    let request_len = requests.len() / 20_000;
    let mut sent = 0;
    let mut refused = 0;
    greedy.socket.set_nonblocking(true).unwrap();
    while refused < 5 {
        match greedy.socket.write(&requests[sent..]) {
            Ok(count) => (sent, refused) = (sent + count, 0),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                refused += 1;
                // Others are served meanwhile; it also gives the server the time to read on, if it would.
                for _ in 0..100 {
                    assert_eq!(broker.ask(&route(1, names[0])).code, 0);
                }
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(
        sent < 5000 * request_len,
        "the server has read {sent} bytes and sent nothing"
    );

    greedy.socket.set_nonblocking(false).unwrap();
    for opaque in 0..i64::try_from(sent / request_len).unwrap() - 2 {
        let answer = greedy.receive();
        assert_eq!((answer.code, answer.opaque), (0, opaque));
        assert!(answer.body.len() > 20_000);
    }
}

#[test]
fn d11_a_connection_that_closes_at_once_leaves_nothing_behind() {
    let server = Running::start("");
    for _ in 0..3000 {
        drop(TcpStream::connect(server.address).unwrap());
    }
    assert_eq!(server.connect().ask(&route(1, "none")).code, 17);
}

#[test]
fn c12_a_large_frame_gets_its_turn_though_others_hold_all_places_and_stall() {
    let server = Running::start_with_workers(1, "");
    // Sixteen frames of the greatest length are all that one worker admits.
    let announced = (16 * 1024 * 1024_u32 - 4).to_be_bytes();
    let mut holders: Vec<Client> = (0..16).map(|_| server.connect()).collect();
    for holder in &mut holders {
        holder.send(&announced);
        holder.send(&route(1, "none")[4..]);
    }
    let names: Vec<String> = (0..5000)
        .map(|number| format!("topic-{number:05}"))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut broker = server.connect();
    broker.send(&registration(1, "b", "127.0.0.1:1", &names));
    assert_eq!(
        server.connect().ask(&route(1, "none")).code,
        17,
        "small requests need no place"
    );
    assert_eq!(broker.receive().code, 0);
    assert!(holders.iter_mut().any(|holder| holder.next().is_none()));
}

#[test]
fn during_a_shutdown_a_route_is_right_or_the_connection_ends() {
    let mut server = Running::start("");
    let mut broker = server.connect();
    assert_eq!(
        broker
            .ask(&registration(1, "b", "127.0.0.1:1", &["T", "U"]))
            .code,
        0
    );
    let address = server.address;
    thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|_| {
                let mut client = Client::connect(address);
                scope.spawn(move || {
                    let mut served = 0;
                    loop {
                        if client.socket.write_all(&route(1, "T")).is_err() {
                            return served;
                        }
                        match client.next() {
                            Some(answer) => assert_eq!(answer.code, 0),
                            None => return served,
                        }
                        served += 1;
                    }
                })
            })
            .collect();
        // The broker's connection ends in the middle of it: its routes must stay.
        until_route_answers(&mut broker, "T", 0);
        server.shutdown();
        for client in clients {
            client.join().unwrap();
        }
    });
    assert_eq!(broker.next(), None);
    assert!(
        TcpStream::connect(address).is_err(),
        "nobody listens any more"
    );
}

#[test]
fn a_stop_answers_the_commands_that_are_out() {
    let mut server = Running::start("");
    // A change that has to be written lets nothing behind it overtake it, so each has a connection of its own.
    let mut clients: Vec<_> = (0..50).map(|_| server.connect()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.send(&put_kv(7, &format!("k{number}"), "v"));
    }
    // Both workers have read what was sent before this when it is answered, and what is read is answered.
    assert_eq!(clients[48].receive().code, 0);
    assert_eq!(clients[49].receive().code, 0);
    server.shutdown();
    for client in &mut clients[..48] {
        assert_eq!(client.next().map(|answer| answer.code), Some(0));
    }
}

#[test]
fn a_kv_value_that_cannot_be_kept_is_refused_and_not_shown() {
    // No folder can be made below a file.
    let server = Running::start("kvConfigPath=/dev/null/kv.json\n");
    let mut client = server.connect();
    let refused = client.ask(&put_kv(1, "k", "v"));
    assert_eq!(refused.code, 1);
    let remark = refused.header["remark"].as_str().unwrap();
    assert!(remark.contains("/dev/null/kv.json"), "{remark}");
    assert_eq!(client.ask(&get_kv(2, "k")).code, 22);
}

#[test]
fn more_commands_than_a_worker_may_have_out_wait_and_are_all_executed() {
    let server = Running::start_with_workers(1, "");
    let mut clients: Vec<Client> = (0..40).map(|_| server.connect()).collect();
    // 2400 at once; each waits for the disk, so they pile up.
    for (number, client) in clients.iter_mut().enumerate() {
        let key = format!("k{number}");
        let puts = (0..60).flat_map(|opaque| put_kv(opaque, &key, &opaque.to_string()));
        client.send(&puts.chain(get_kv(60, &key)).collect::<Vec<u8>>());
    }
    for client in &mut clients {
        let answers: Vec<_> = (0..61).map(|_| client.receive()).collect();
        assert!(answers.iter().all(|answer| answer.code == 0), "{answers:?}");
        let last = answers.last().unwrap();
        assert_eq!(
            (last.opaque, last.header["extFields"]["value"].as_str()),
            (60, Some("59"))
        );
    }
}

#[test]
fn newer_clients_are_told_to_go_away_during_a_graceful_shutdown() {
    let mut server = Running::start("enableShutdownGracefully=true\nshutdownWaitTimeSeconds=1\n");
    let address = server.address;
    let stopping = thread::scope(|scope| {
        let stopping = scope.spawn(move || server.shutdown());
        let mut client = Client::connect(address);
        let started = now();
        while client.ask(&route(1, "none")).code != 1500 {
            assert!(
                started.elapsed() < Duration::from_millis(900),
                "never told to go away"
            );
        }
        // Connections are still accepted, and older clients served.
        let mut late = Client::connect(address);
        assert_eq!(late.ask(&route(1, "none")).code, 1500);
        stopping.join()
    });
    stopping.unwrap();
}
