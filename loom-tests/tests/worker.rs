//! A worker's real turn, on a socket that holds what it is given.

use std::{
    io::{self, ErrorKind, Read, Write},
    sync::Arc,
};

use loom_tests::{Nobody, Tally, join, model, spawn};
use waypost::{
    config::{Config, Environment},
    connection::{StreamLimits, credit::Credits},
    limits::{FRAME_LEN_MAX, UNFINISHED_LEN_MAX},
    protocol::{code::ResponseCode, command::Response},
    registry::{Command, KvTable, Registry, RouteSnapshot},
    sync::{Publisher, Receiver, Sender, Unparker, mailbox, parker, publication},
    time::Timestamp,
    worker::{
        Edge, Event, Inlets, Next, Polled, Readiness, Worker,
        message::{Order, Reply},
        outbox::Outbox,
    },
};

const NOW: Timestamp = Timestamp::from_millis(1000);

/// A request that the writer answers (205), in a frame.
fn request() -> Vec<u8> {
    let header =
        br#"{"code":205,"flag":0,"opaque":1,"version":479,"extFields":{"brokerName":"b"}}"#;
    let header_len = u32::try_from(header.len()).expect("it is short");
    let lengths = [header_len + 4, header_len].map(u32::to_be_bytes);
    [lengths.as_flattened(), header].concat()
}

/// One peer's socket.
#[derive(Debug)]
struct Socket {
    arrived: io::Cursor<Vec<u8>>,
    /// How many writes it has taken.
    written: Arc<Tally>,
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.arrived.read(buffer)? {
            0 => Err(ErrorKind::WouldBlock.into()),
            count => Ok(count),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.written.count();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Debug)]
struct Sockets;

impl Edge for Sockets {
    type Socket = Socket;

    fn register(&mut self, _socket: &mut Socket, _slot: u32) -> io::Result<()> {
        Ok(())
    }

    fn shut(_socket: &mut Socket) -> io::Result<()> {
        Ok(())
    }
}

/// What the worker's thread owns, and the ends that belong to other threads.
struct Rig {
    worker: Worker<Sockets>,
    inlets: Inlets<Socket, Nobody>,
    orders: Sender<Order<Socket>, Nobody>,
    replies: Sender<Reply, Nobody>,
    commands: Receiver<Command, Unparker>,
    _publisher: Publisher<RouteSnapshot>,
}

impl Rig {
    fn new() -> Self {
        let config = Config::defaults(&Environment {
            user_home: None,
            rocketmq_home: None,
        });
        let registry = Registry::new(config, KvTable::default(), 7, NOW);
        let (publisher, snapshots) = publication(registry.initial_snapshot());
        let (_, nobody) = parker();
        let (command_door, commands) = mailbox(1, nobody.clone());
        let (jobs, _) = mailbox(1, nobody);
        let (orders, order_inlet) = mailbox(1, Nobody);
        let (replies, reply_inlet) = mailbox(1, Nobody);
        let limits = StreamLimits {
            frame_len_max: FRAME_LEN_MAX,
            high_water: 1024,
            low_water: 512,
        };
        Self {
            worker: Worker::new(
                0,
                Sockets,
                snapshots.subscribe(),
                Outbox::new(command_door, jobs, Credits::new(1)),
                limits,
                UNFINISHED_LEN_MAX,
            ),
            inlets: Inlets {
                orders: order_inlet,
                replies: reply_inlet,
            },
            orders,
            replies,
            commands,
            _publisher: publisher,
        }
    }

    fn turn(&mut self, event: Event) -> Next {
        let polled = Polled {
            asked_at: NOW,
            now: NOW,
            events: [event],
        };
        self.worker.turn(&mut self.inlets, polled)
    }
}

/// An order to close a connection that was given before a reply over it is seen no later than the reply, so the reply is not
/// written: what a peer has been told is not taken back by what came before (fault A11).
#[test]
fn a_reply_behind_an_order_to_close_its_connection_is_not_written() {
    model(|| {
        let mut rig = Rig::new();
        let written = Arc::new(Tally::new());
        let socket = Socket {
            arrived: io::Cursor::new(request()),
            written: Arc::clone(&written),
        };
        let serves = Order::Serve(socket, ([127, 0, 0, 1], 1).into());
        rig.orders.send(serves).expect("there is room");
        rig.turn(Event::Mail);
        let readable = Readiness {
            readable: true,
            ..Readiness::default()
        };
        rig.turn(Event::Socket(0, readable));
        let mut asked = None;
        rig.commands.drain(1, |command| asked = Some(command));
        let Some(Command::WipeWritePerm(to, _)) = asked else {
            unreachable!("the worker has asked for {asked:?}");
        };

        let writer = spawn({
            let (orders, replies) = (rig.orders.clone(), rig.replies.clone());
            move || {
                let closes = Order::Close(to.connection);
                orders.send(closes).expect("there is room");
                let answer = Some(Response::new(ResponseCode::Success));
                let reply = Reply::Executed { to, answer };
                replies.send(reply).expect("a credit is room for a reply");
            }
        });
        rig.turn(Event::Mail);
        join(writer);
        rig.turn(Event::Mail);

        assert_eq!(written.read(), 0, "an answer over what is to be closed");
        assert!(rig.worker.is_settled(), "the credit is back");
    });
}
