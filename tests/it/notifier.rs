//! One-way requests that the server sends to brokers (spec 2.16, 3.7), over real sockets.

use std::{
    io::{BufReader, ErrorKind, Read, Write},
    net::{TcpListener, TcpStream},
};

use serde_json::Value;

use super::{
    client::{Client, PATIENCE, request},
    server::Running,
    world::{register_body, topics},
};

/// Registers a member of group `b` that wants to be notified.
fn register(client: &mut Client, id: &str, addr: &str) {
    let ext = [
        ("clusterName", "c"),
        ("brokerName", "b"),
        ("brokerAddr", addr),
        ("brokerId", id),
        ("haServerAddr", addr),
        ("enableActingMaster", "true"),
    ];
    let body = register_body(&topics(&["T", "U"]), (0, 1, 1));
    let answer = client.ask(&request(103, 1, &ext, body.as_bytes()));
    assert_eq!(answer.code, 0, "{answer:?}");
}

fn unregister(client: &mut Client, id: &str, addr: &str) {
    let ext = [
        ("clusterName", "c"),
        ("brokerName", "b"),
        ("brokerAddr", addr),
        ("brokerId", id),
    ];
    assert_eq!(client.ask(&request(104, 1, &ext, b"")).code, 0);
}

/// Registers members 0, at an address of nobody, and 1, who listens.
fn two_members(server: &Running) -> (Client, TcpListener, String) {
    let mut client = server.connect();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    register(&mut client, "0", "127.0.0.1:1");
    register(&mut client, "1", &addr);
    (client, listener, addr)
}

/// The next frame's header.
fn header(stream: &mut BufReader<TcpStream>) -> Value {
    let mut length = [0; 4];
    stream.read_exact(&mut length).unwrap();
    let mut frame = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut frame).unwrap();
    serde_json::from_slice(&frame[4..]).unwrap()
}

#[test]
fn members_are_notified_over_one_connection_and_one_that_hangs_delays_nobody() {
    let server = Running::start("notifyMinBrokerIdChanged=true\n");
    let (mut client, listener, addr) = two_members(&server);
    // An address that answers nothing, one that refuses, and one that is none.
    register(&mut client, "2", "192.0.2.1:9");
    register(&mut client, "3", "127.0.0.1:2");
    register(&mut client, "4", "no-address");

    unregister(&mut client, "0", "127.0.0.1:1");
    let mut broker = BufReader::new(listener.accept().unwrap().0);
    let gone = header(&mut broker);
    assert_eq!(
        (gone["code"].as_i64(), gone["flag"].as_i64()),
        (Some(905), Some(2))
    );
    assert_eq!(gone["extFields"]["minBrokerId"], "1");
    assert_eq!(gone["extFields"]["minBrokerAddr"], addr);
    assert_eq!(gone["extFields"]["offlineBrokerAddr"], "127.0.0.1:1");

    register(&mut client, "0", "127.0.0.1:1");
    let back = header(&mut broker);
    assert_eq!(back["extFields"]["minBrokerId"], "0");

    // A broker that has closed the connection is connected to anew.
    drop(broker);
    unregister(&mut client, "0", "127.0.0.1:1");
    register(&mut client, "0", "127.0.0.1:1");
    let mut broker = BufReader::new(listener.accept().unwrap().0);
    assert_eq!(header(&mut broker)["code"], 905);
}

#[test]
fn a_broker_that_never_stops_sending_is_hung_up_on() {
    let server = Running::start("notifyMinBrokerIdChanged=true\n");
    let (mut client, listener, _) = two_members(&server);
    unregister(&mut client, "0", "127.0.0.1:1");
    let mut broker = listener.accept().unwrap().0;
    broker.set_write_timeout(Some(PATIENCE)).unwrap();

    // Many times what the sockets' buffers hold.
    let chunk = [0; 64 * 1024];
    let sent = (0..4096).try_for_each(|_| broker.write_all(&chunk));

    let error = sent.expect_err("the connection ends long before all is sent");
    assert!(
        matches!(
            error.kind(),
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset
        ),
        "{error}"
    );
}
