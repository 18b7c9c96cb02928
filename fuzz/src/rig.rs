//! A worker with nothing of the system below it: sockets that hold what they are given, and the other ends of its mailboxes.
//!
//! Whoever drives it (the simulator, a fuzz target, a test of one order of things) is the network, the peers, the writer and the
//! clock. The worker and the helper are the server's own.

use std::{
    cell::{Cell, RefCell, RefMut},
    collections::VecDeque,
    io::{self, ErrorKind, Read, Write},
    rc::Rc,
    sync::Arc,
};

use waypost::{
    connection::{StreamLimits, credit::Credits},
    ids::ConnectionId,
    protocol::command::RemotingCommand,
    registry::{Command, RouteSnapshot},
    sync::{Full, Publisher, Receiver, Sender, Unparker, Wake, mailbox, parker, publication},
    time::Timestamp,
    worker::{
        Edge, Event, Inlets, Next, Polled, Readiness, Worker,
        helper::{Helper, Job},
        message::{Order, Reply},
        outbox::Outbox,
    },
};

/// One in so many calls of a socket is interrupted.
const INTERRUPTED_EVERY: usize = 5;

/// How a peer has ended its direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Open,
    /// By a FIN behind what has arrived.
    Finished,
    /// By a RST, which breaks the other direction too.
    Broken,
}

/// A connection as the network sees it.
#[derive(Debug)]
pub struct Line {
    /// Arrived, not read.
    arrived: VecDeque<u8>,
    end: End,
    /// What the socket still takes.
    room: usize,
    /// It took less than it was offered, so it tells when there is room again.
    is_full: bool,
    /// Taken by the socket.
    sent: Vec<u8>,
    /// It was registered, or bytes were read or written, since this was asked last.
    has_moved: bool,
    is_shut: bool,
    is_closed: bool,
    /// Who it is to the worker, from its registration on.
    id: Option<ConnectionId>,
    /// What the next poll tells.
    news: Option<Readiness>,
    calls: usize,
}

/// The network's end of a [`Line`].
#[derive(Debug, Clone)]
pub struct Far(Rc<RefCell<Line>>);

/// The worker's end of a [`Line`].
#[derive(Debug)]
pub struct Socket(Rc<RefCell<Line>>);

/// A connection whose socket takes `room` bytes before the peer reads.
#[must_use]
pub fn line(room: usize) -> (Far, Socket) {
    let line = Rc::new(RefCell::new(Line {
        arrived: VecDeque::new(),
        end: End::Open,
        room,
        is_full: false,
        sent: Vec::new(),
        has_moved: false,
        is_shut: false,
        is_closed: false,
        id: None,
        news: None,
        calls: 0,
    }));
    (Far(Rc::clone(&line)), Socket(line))
}

impl Line {
    fn tell(&mut self, news: impl FnOnce(&mut Readiness)) {
        news(self.news.get_or_insert_default());
    }

    /// Whether this call is interrupted.
    fn is_interrupted(&mut self) -> bool {
        self.calls += 1;
        self.calls.is_multiple_of(INTERRUPTED_EVERY)
    }
}

impl Far {
    fn line(&self) -> RefMut<'_, Line> {
        self.0.borrow_mut()
    }

    /// Bytes arrive at the worker's end.
    pub fn deliver(&self, bytes: &[u8]) {
        let mut line = self.line();
        line.arrived.extend(bytes);
        line.tell(|news| news.readable = true);
    }

    /// The peer's FIN arrives.
    pub fn finish(&self) {
        let mut line = self.line();
        line.end = End::Finished;
        line.tell(|news| (news.readable, news.read_closed) = (true, true));
    }

    /// The peer's RST arrives.
    pub fn shatter(&self) {
        let mut line = self.line();
        line.end = End::Broken;
        line.tell(|news| {
            *news = Readiness {
                readable: true,
                read_closed: true,
                writable: true,
                write_closed: true,
                error: true,
            };
        });
    }

    /// The socket takes so many bytes more.
    pub fn make_room(&self, bytes: usize) {
        let mut line = self.line();
        line.room = line.room.saturating_add(bytes);
        if std::mem::take(&mut line.is_full) {
            line.tell(|news| news.writable = true);
        }
    }

    /// The socket takes so many bytes, whatever it took before.
    pub fn set_room(&self, bytes: usize) {
        self.line().room = bytes;
    }

    /// Takes what the worker has written.
    #[must_use]
    pub fn take_sent(&self) -> Vec<u8> {
        std::mem::take(&mut self.line().sent)
    }

    /// Whether it was registered, or bytes were read or written, since this was asked last.
    #[must_use]
    pub fn has_moved(&self) -> bool {
        std::mem::take(&mut self.line().has_moved)
    }

    /// Whether the worker has closed it.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.line().is_closed
    }

    /// Whether all that has arrived is read.
    #[must_use]
    pub fn is_read(&self) -> bool {
        self.line().arrived.is_empty()
    }

    /// Who it is to the worker, once that has it.
    #[must_use]
    pub fn id(&self) -> Option<ConnectionId> {
        self.line().id
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.0.borrow_mut().is_closed = true;
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut line = self.0.borrow_mut();
        if line.is_interrupted() {
            return Err(ErrorKind::Interrupted.into());
        }
        if line.arrived.is_empty() {
            return match line.end {
                End::Open => Err(ErrorKind::WouldBlock.into()),
                End::Finished => Ok(0),
                End::Broken => Err(ErrorKind::ConnectionReset.into()),
            };
        }
        // What is thrown away at the end is no sign of life.
        line.has_moved |= !line.is_shut;
        let count = line.arrived.len().min(buffer.len());
        line.arrived.read_exact(&mut buffer[..count])?;
        Ok(count)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut line = self.0.borrow_mut();
        if line.is_interrupted() {
            return Err(ErrorKind::Interrupted.into());
        }
        if line.end == End::Broken {
            return Err(ErrorKind::BrokenPipe.into());
        }
        if line.room == 0 {
            line.is_full = true;
            return Err(ErrorKind::WouldBlock.into());
        }
        line.has_moved = true;
        let count = bytes.len().min(line.room);
        line.room -= count;
        line.sent.extend(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A request that the worker has executed itself.
#[derive(Debug, Clone, Copy)]
pub struct Executed {
    /// Where it came from.
    pub connection: ConnectionId,
    /// The number that its sender gave it.
    pub opaque: i32,
    /// The version of its sender.
    pub version: i32,
    /// Whether it wants no answer.
    pub oneway: bool,
    /// What the sockets had taken by then and their peers had not.
    pub sent: usize,
}

/// The sockets of a worker, by slot.
#[derive(Debug, Clone, Default)]
struct Sockets(Rc<RefCell<Registered>>);

#[derive(Debug, Default)]
struct Registered {
    slots: Vec<Slot>,
    executed: Vec<Executed>,
    /// So many registrations fail.
    failures: usize,
}

#[derive(Debug)]
struct Slot {
    tenants: u32,
    line: Far,
}

impl Edge for Sockets {
    type Socket = Socket;

    fn register(&mut self, socket: &mut Socket, slot: u32) -> io::Result<()> {
        let mut registered = self.0.borrow_mut();
        let line = Far(Rc::clone(&socket.0));
        let index = usize::try_from(slot).expect("a small number");
        let tenants = match registered.slots.get_mut(index) {
            Some(place) => {
                assert!(place.line.is_closed(), "two tenants of slot {slot}");
                place.tenants += 1;
                place.line = line.clone();
                place.tenants
            }
            None => {
                assert_eq!(registered.slots.len(), index, "slots are used again");
                registered.slots.push(Slot {
                    tenants: 0,
                    line: line.clone(),
                });
                0
            }
        };
        line.line().has_moved = true;
        line.line().id = Some(ConnectionId {
            worker: 0,
            slot,
            generation: tenants,
        });
        if registered.failures > 0 {
            registered.failures -= 1;
            return Err(ErrorKind::OutOfMemory.into());
        }
        line.line().tell(|news| news.writable = true);
        Ok(())
    }

    fn shut(socket: &mut Socket) -> io::Result<()> {
        let mut line = socket.0.borrow_mut();
        line.is_shut = true;
        match line.end {
            End::Broken => Err(ErrorKind::NotConnected.into()),
            End::Open | End::Finished => Ok(()),
        }
    }

    fn executes(&mut self, connection: ConnectionId, request: &RemotingCommand<'_>) {
        let mut registered = self.0.borrow_mut();
        let slots = &registered.slots;
        let sent = slots.iter().map(|slot| slot.line.line().sent.len()).sum();
        registered.executed.push(Executed {
            connection,
            sent,
            opaque: request.opaque,
            version: request.version,
            oneway: request.is_oneway(),
        });
    }
}

/// Whether the worker is woken.
#[derive(Debug, Clone, Default)]
pub struct Bell(Rc<Cell<bool>>);

impl Wake for Bell {
    fn wake(&self) {
        self.0.set(true);
    }
}

/// How large everything around a worker is.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    /// What may be out at the writer and the helper.
    pub credits: usize,
    /// Room of the writer's mailbox.
    pub commands: usize,
    /// Room of the mailbox of orders.
    pub orders: usize,
    /// Bounds of each connection.
    pub limits: StreamLimits,
    /// What the unfinished large frames may hold.
    pub unfinished_len_max: usize,
}

/// A worker, a helper, and their mailboxes.
#[derive(Debug)]
pub struct Rig {
    worker: Option<Worker<Sockets>>,
    inlets: Inlets<Socket, Bell>,
    sockets: Sockets,
    bell: Bell,
    next: Next,
    helper: Helper,
    jobs: Receiver<Job, Unparker>,
    replies: Sender<Reply, Bell>,
    orders: Sender<Order<Socket>, Bell>,
    commands: Receiver<Command, Unparker>,
    command_door: Sender<Command, Unparker>,
    publisher: Publisher<RouteSnapshot>,
}

impl Rig {
    /// A worker without connections that knows this snapshot.
    #[must_use]
    pub fn new(snapshot: Arc<RouteSnapshot>, sizes: Sizes) -> Self {
        let (publisher, snapshots) = publication(snapshot);
        let (_, nobody) = parker();
        let (command_door, commands) = mailbox(sizes.commands, nobody.clone());
        let (job_door, jobs) = mailbox(sizes.credits, nobody);
        let bell = Bell::default();
        let (replies, reply_inlet) = mailbox(sizes.credits, bell.clone());
        let (orders, order_inlet) = mailbox(sizes.orders, bell.clone());
        let sockets = Sockets::default();
        let credits = Credits::new(sizes.credits);
        let worker = Worker::new(
            0,
            sockets.clone(),
            snapshots.subscribe(),
            Outbox::new(command_door.clone(), job_door, credits),
            sizes.limits,
            sizes.unfinished_len_max,
        );
        Self {
            worker: Some(worker),
            inlets: Inlets {
                orders: order_inlet,
                replies: reply_inlet,
            },
            sockets,
            bell,
            next: Next::Wait(None),
            helper: Helper::new(snapshots.subscribe()),
            jobs,
            replies,
            orders,
            commands,
            command_door,
            publisher,
        }
    }

    /// What a poll tells now, and does not tell again. Of the mailboxes first: a turn that emptied them at once would give a slot
    /// away before it hears of the slot's old tenant.
    #[must_use]
    pub fn poll(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        if self.bell.0.take() {
            events.push(Event::Mail);
        }
        for (slot, Slot { line, .. }) in (0..).zip(&self.sockets.0.borrow().slots) {
            let mut line = line.line();
            if !line.is_closed
                && let Some(readiness) = line.news.take()
            {
                events.push(Event::Socket(slot, readiness));
            }
        }
        events
    }

    /// One turn of the worker with what a poll told that began at `asked_at`. Says what it has executed itself.
    pub fn turn(
        &mut self,
        asked_at: Timestamp,
        now: Timestamp,
        events: Vec<Event>,
    ) -> Vec<Executed> {
        let worker = self.worker.as_mut().expect("it has not ended");
        let polled = Polled {
            asked_at,
            now,
            events,
        };
        self.next = worker.turn(&mut self.inlets, polled);
        std::mem::take(&mut self.sockets.0.borrow_mut().executed)
    }

    /// A poll and the turn behind it, in one moment.
    pub fn poll_and_turn(&mut self, now: Timestamp) -> Vec<Executed> {
        let events = self.poll();
        self.turn(now, now, events)
    }

    /// What the worker does after its last turn.
    #[must_use]
    pub fn next(&self) -> Next {
        self.next
    }

    /// Whether a poll would return at once.
    #[must_use]
    pub fn is_awake(&self, now: Timestamp) -> bool {
        let slots = &self.sockets.0.borrow().slots;
        let has_news = |slot: &Slot| !slot.line.is_closed() && slot.line.line().news.is_some();
        let is_due = match self.next {
            Next::Turn => true,
            Next::Wait(deadline) => deadline.is_some_and(|deadline| deadline <= now),
            Next::End => false,
        };
        is_due || self.bell.0.get() || slots.iter().any(has_news)
    }

    /// Whether nothing is out at the writer or the helper.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.worker.as_ref().is_none_or(Worker::is_settled)
    }

    /// After the last turn.
    pub fn close_all(&mut self) {
        let worker = self.worker.take();
        worker.expect("it has not ended").close_all();
    }

    /// The next so many registrations fail.
    pub fn fail_registrations(&mut self, count: usize) {
        self.sockets.0.borrow_mut().failures = count;
    }

    /// Gives the worker an order, if there is room.
    ///
    /// # Errors
    ///
    /// [`Full`] with the order.
    pub fn order(&self, order: Order<Socket>) -> Result<(), Full<Order<Socket>>> {
        self.orders.send(order)
    }

    /// Gives the worker a reply.
    pub fn reply(&self, reply: Reply) {
        let sent = self.replies.send(reply);
        sent.expect("a worker has no more out than its mailbox has room for replies");
    }

    /// Gives the writer a command of somebody else's, if there is room.
    ///
    /// # Errors
    ///
    /// [`Full`] with the command.
    pub fn command(&self, command: Command) -> Result<(), Full<Command>> {
        self.command_door.send(command)
    }

    /// The command that waits longest for the writer.
    pub fn next_command(&mut self) -> Option<Command> {
        let mut first = None;
        self.commands.drain(1, |command| first = Some(command));
        first
    }

    /// The helper executes the job that waits longest, and the worker gets what comes of it.
    pub fn help(&mut self, now: Timestamp) -> Option<Job> {
        let mut first = None;
        self.jobs.drain(1, |job| first = Some(job));
        let job = first?;
        let done = self.helper.execute(&job, now);
        self.reply(Reply::Helped {
            connection: job.connection,
            done,
        });
        Some(job)
    }

    /// Makes a snapshot the newest.
    pub fn publish(&mut self, snapshot: Arc<RouteSnapshot>) {
        self.publisher.publish(snapshot);
    }
}
