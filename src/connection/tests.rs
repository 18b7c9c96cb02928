//! A connection under simulated peers, writers and time.

use proptest::{collection::vec, prelude::*};

use super::*;
use crate::{limits::IN_FLIGHT_MAX, protocol::frame::FrameError};

const REGISTER: i32 = 103;
const ROUTE: i32 = 105;
/// A command that is done only when a file is written.
const PUT: i32 = 100;
/// A command that in these tests needs no writer after all.
const DELETE: i32 = 216;
const IDLE: Duration = Duration::from_secs(120);

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn limits() -> StreamLimits {
    StreamLimits {
        frame_len_max: 16 * 1024 * 1024,
        high_water: 64 * 1024,
        low_water: 32 * 1024,
    }
}

/// A frame with `body_len` bytes of body.
fn frame(code: i32, opaque: usize, body_len: usize) -> Vec<u8> {
    let header =
        format!(r#"{{"code":{code},"flag":0,"language":"JAVA","opaque":{opaque},"version":479}}"#);
    let total = u32::try_from(4 + header.len() + body_len).unwrap();
    let mut bytes = total.to_be_bytes().to_vec();
    bytes.extend(u32::try_from(header.len()).unwrap().to_be_bytes());
    bytes.extend(header.as_bytes());
    bytes.resize(4 + total as usize, b'x');
    bytes
}

/// One connection, a writer that answers when told to, and a socket that takes what it is told to.
struct World {
    connection: Connection,
    limits: StreamLimits,
    credits: Credits,
    now: Timestamp,
    /// Requests executed, by opaque.
    executed: Vec<i32>,
    /// Commands out at the writer.
    out_at_writer: Vec<ReplyHead>,
    /// Length of each answer from the snapshot.
    answer_len: usize,
    answers: Vec<u8>,
}

impl World {
    fn new() -> Self {
        Self {
            connection: Connection::new(IDLE, at(0)),
            limits: limits(),
            credits: Credits::default(),
            now: at(0),
            executed: Vec::new(),
            out_at_writer: Vec::new(),
            answer_len: 10,
            answers: Vec::new(),
        }
    }

    /// What a worker does with a read.
    fn receive(&mut self, bytes: &[u8]) -> Result<(), Violation> {
        let mut scratch = vec![0; LENT_INPUT_LEN_MAX + bytes.len()];
        let lent = self.connection.lend_input(&mut scratch);
        scratch[lent..lent + bytes.len()].copy_from_slice(bytes);
        let Self {
            connection,
            limits,
            credits,
            now,
            executed,
            out_at_writer,
            answer_len,
            answers,
        } = self;
        connection.handle_input(
            &scratch[..lent + bytes.len()],
            lent,
            limits,
            *now,
            answers,
            each(|request, out, outstanding| {
                execute(
                    request,
                    out,
                    outstanding,
                    credits,
                    executed,
                    out_at_writer,
                    *answer_len,
                )
            }),
        )
    }

    fn resume(&mut self) {
        let Self {
            connection,
            limits,
            credits,
            executed,
            out_at_writer,
            answer_len,
            answers,
            ..
        } = self;
        connection
            .resume(
                limits,
                answers,
                each(|request, out, outstanding| {
                    execute(
                        request,
                        out,
                        outstanding,
                        credits,
                        executed,
                        out_at_writer,
                        *answer_len,
                    )
                }),
            )
            .unwrap();
    }

    /// The writer answers its oldest command.
    fn reply(&mut self) {
        let head = self.out_at_writer.remove(0);
        self.connection
            .handle_reply(&mut self.credits, Some((head, &Response::success())));
        if self.connection.can_resume() {
            self.resume();
        }
    }

    /// The socket takes at most `room` bytes, as in `Peer::write`.
    fn write(&mut self, room: usize) -> usize {
        self.connection.keep_output(&self.answers);
        self.answers.clear();
        let count = self.connection.output().len().min(room);
        self.connection.written(count, self.now);
        self.connection.apply_water_marks(&self.limits);
        count
    }
}

fn execute(
    request: &RemotingCommand<'_>,
    out: &mut Vec<u8>,
    outstanding: &mut Outstanding,
    credits: &mut Credits,
    executed: &mut Vec<i32>,
    out_at_writer: &mut Vec<ReplyHead>,
    answer_len: usize,
) -> Handled {
    executed.push(request.opaque);
    if ![REGISTER, PUT].contains(&request.code) {
        out.resize(out.len() + answer_len, b'a');
        return Handled::Done;
    }
    if !credits.take(outstanding, request.body.len()) {
        return Handled::Held;
    }
    out_at_writer.push(request.reply_head());
    Handled::Submitted
}

#[test]
fn a_stream_is_executed_alike_however_it_is_split() {
    let stream = [frame(ROUTE, 1, 0), frame(ROUTE, 2, 300), frame(ROUTE, 3, 0)].concat();
    for split in 0..=stream.len() {
        let mut world = World::new();
        world.receive(&stream[..split]).unwrap();
        world.receive(&stream[split..]).unwrap();
        assert_eq!(world.executed, [1, 2, 3], "split at {split}");
        assert_eq!(world.answers.len(), 30);
        assert_eq!(world.connection.input_len(), 0);
    }
}

#[test]
fn a_stream_that_comes_byte_by_byte_is_executed() {
    let stream = [frame(ROUTE, 1, 5), frame(ROUTE, 2, 0)].concat();
    let mut world = World::new();
    for byte in &stream {
        world.receive(std::slice::from_ref(byte)).unwrap();
    }
    assert_eq!(world.executed, [1, 2]);
}

#[test]
fn a_frame_that_is_too_long_to_lend_is_collected() {
    let big = frame(ROUTE, 1, 5 * LENT_INPUT_LEN_MAX);
    let stream = [big, frame(ROUTE, 2, 0)].concat();
    let mut world = World::new();
    for chunk in stream.chunks(LENT_INPUT_LEN_MAX / 2 + 1) {
        world.receive(chunk).unwrap();
    }
    assert_eq!(world.executed, [1, 2]);
    assert_eq!(world.connection.input_len(), 0);
}

/// Keeps what is shared with it, and the frames that it is given.
#[derive(Default)]
struct Keeper {
    shared: Option<Bytes>,
    frames: Vec<Bytes>,
}

impl Handler for &mut Keeper {
    fn share(&mut self, bytes: &Bytes) {
        self.shared = Some(bytes.clone());
    }

    fn handle(
        &mut self,
        _place: usize,
        request: &RemotingCommand<'_>,
        _out: &mut Vec<u8>,
        _outstanding: &mut Outstanding,
    ) -> Handled {
        let shared = self.shared.as_ref().expect("it is one large frame");
        self.frames.push(shared.slice_ref(request.frame));
        Handled::Done
    }
}

#[test]
fn one_large_frame_is_shared_with_its_handler_and_kept_if_it_has_to_wait() {
    let mut keeper = Keeper::default();
    let mut connection = Connection::new(IDLE, at(0));
    let bytes = frame(ROUTE, 1, LARGE_FRAME_LEN);
    // A command is out, which a query waits for.
    let mut credits = Credits::default();
    assert!(credits.take(connection.outstanding_mut(), 0));
    for piece in bytes.chunks(10_000) {
        let mut out = Vec::new();
        let done = connection.handle_input(piece, 0, &limits(), at(0), &mut out, &mut keeper);
        assert_eq!(done, Ok(()));
    }
    assert_eq!(keeper.frames.len(), 0);
    keeper.shared = None; // the handler of that turn is gone
    assert_eq!(connection.input_len(), bytes.len());
    connection.handle_reply(&mut credits, None);
    assert!(connection.can_resume());
    assert_eq!(
        connection.resume(&limits(), &mut Vec::new(), &mut keeper),
        Ok(())
    );
    assert_eq!(keeper.frames, [&bytes[4..]]);
    assert_eq!(connection.input_len(), 0);
}

#[test]
fn a_read_waits_for_the_commands_before_it_and_commands_do_not() {
    let mut world = World::new();
    let stream = [
        frame(REGISTER, 1, 0),
        frame(REGISTER, 2, 0),
        frame(ROUTE, 3, 0),
        frame(REGISTER, 4, 0),
        frame(ROUTE, 5, 0),
    ];
    world.receive(&stream.concat()).unwrap();
    assert_eq!(
        world.executed,
        [1, 2],
        "both commands are out, the read waits"
    );
    assert!(!world.connection.wants_input());
    world.reply();
    assert_eq!(world.executed, [1, 2]);
    world.reply();
    assert_eq!(world.executed, [1, 2, 3, 4]);
    world.reply();
    assert_eq!(world.executed, [1, 2, 3, 4, 5]);
    assert!(world.connection.wants_input());
    assert!(world.credits.all_free());
}

#[test]
fn a_command_that_is_answered_at_once_does_not_overtake_those_before_it() {
    let stream = [
        frame(REGISTER, 1, 0),
        frame(DELETE, 2, 0),
        frame(REGISTER, 3, 0),
        frame(ROUTE, 4, 0),
    ]
    .concat();
    let mut world = World::new();
    world.receive(&stream).unwrap();
    assert_eq!(world.executed, [1, 2], "what follows the kept answer waits");
    assert!(world.answers.is_empty());
    world.reply();
    let kept = world.connection.output().as_slice();
    assert_eq!(
        &kept[kept.len() - 10..],
        b"aaaaaaaaaa",
        "behind the reply to 1"
    );
    assert_eq!(world.executed, [1, 2, 3]);
    world.reply();
    assert_eq!(world.executed, [1, 2, 3, 4]);
}

#[test]
fn nothing_overtakes_a_change_that_is_written_to_disk() {
    let stream = [
        frame(REGISTER, 1, 0),
        frame(PUT, 2, 0),
        frame(REGISTER, 3, 0),
        frame(PUT, 4, 0),
    ]
    .concat();
    let mut world = World::new();
    world.receive(&stream).unwrap();
    assert_eq!(world.executed, [1, 2]);
    world.reply();
    assert_eq!(world.executed, [1, 2]);
    world.reply();
    assert_eq!(world.executed, [1, 2, 3, 4]);
}

#[test]
fn commands_beyond_the_bound_of_a_connection_wait() {
    let mut world = World::new();
    let stream: Vec<u8> = (0..2 * IN_FLIGHT_PER_CONNECTION_MAX)
        .flat_map(|opaque| frame(REGISTER, opaque, 0))
        .collect();
    world.receive(&stream).unwrap();
    assert_eq!(world.executed.len(), IN_FLIGHT_PER_CONNECTION_MAX);
    assert!(!world.connection.wants_input());
    while !world.out_at_writer.is_empty() {
        world.reply();
    }
    assert_eq!(world.executed.len(), 2 * IN_FLIGHT_PER_CONNECTION_MAX);
}

#[test]
fn a_connection_whose_command_waits_for_a_credit_executes_nothing_until_it_is_out() {
    let mut world = World::new();
    let mut other = Outstanding::default();
    while world.credits.take(&mut other, 0) {}
    world
        .receive(
            &[
                frame(REGISTER, 1, 0),
                frame(ROUTE, 2, 0),
                frame(REGISTER, 3, 0),
            ]
            .concat(),
        )
        .unwrap();
    assert_eq!(world.executed, [1]);
    assert!(!world.connection.can_resume());
    assert!(!world.connection.owes_nothing());

    world.credits.give_back(&mut other);
    assert!(world.credits.take(world.connection.outstanding_mut(), 0));
    world.connection.started(Handled::Submitted);
    world.out_at_writer.push(ReplyHead::default());
    world.resume();
    assert_eq!(world.executed, [1], "the read waits for the command");
    world.reply();
    assert_eq!(world.executed, [1, 2, 3]);
    assert_eq!(
        world.out_at_writer.len(),
        1,
        "the third has the credit that the first gave back"
    );
    assert_eq!(other.commands(), IN_FLIGHT_MAX - 1);
}

#[test]
fn a_response_from_a_peer_is_dropped() {
    let mut world = World::new();
    let header = br#"{"code":0,"flag":1,"opaque":9}"#;
    let mut bytes = u32::try_from(4 + header.len())
        .unwrap()
        .to_be_bytes()
        .to_vec();
    bytes.extend(u32::try_from(header.len()).unwrap().to_be_bytes());
    bytes.extend(header);
    bytes.extend(frame(ROUTE, 2, 0));
    world.receive(&bytes).unwrap();
    assert_eq!(world.executed, [2]);
}

#[test]
fn a_peer_that_does_not_read_is_not_read_above_the_high_water_mark_and_again_below_the_low_one() {
    let mut world = World::new();
    world.answer_len = 1000;
    let requests = 10_000;
    let stream: Vec<u8> = (0..requests)
        .flat_map(|opaque| frame(ROUTE, opaque, 0))
        .collect();
    let mut unread = &stream[..];
    let mut most = 0;
    // Nothing is taken by the socket: the connection must stop by itself.
    while world.connection.wants_input() && !unread.is_empty() {
        let chunk;
        (chunk, unread) = unread.split_at(unread.len().min(16 * 1024));
        world.receive(chunk).unwrap();
        world.write(0);
        while !world.connection.waits_for_commands() && world.connection.can_resume() {
            world.resume();
            world.write(0);
        }
        most = most.max(world.connection.output().len());
    }
    assert!(
        most <= OUTPUT_BATCH_LEN.max(world.limits.high_water) + world.answer_len,
        "{most}"
    );
    assert!(!world.connection.wants_input() && !world.connection.can_resume());

    let above_low = world.connection.output().len() - world.limits.low_water - 1;
    world.write(above_low);
    assert!(
        !world.connection.can_resume(),
        "still above the low-water mark"
    );
    world.write(1);
    assert!(world.connection.can_resume());
    world.resume();
    world.write(usize::MAX);
    while world.connection.can_resume() {
        world.resume();
        world.write(usize::MAX);
    }
    assert!(world.connection.wants_input());
    let received = stream.len() - unread.len();
    assert_eq!(
        world.executed.len(),
        received / (stream.len() / requests) + 1,
        "all that arrived"
    );
}

#[test]
fn an_idle_connection_is_due_after_its_timeout_and_each_read_or_write_moves_that() {
    let mut world = World::new();
    assert_eq!(world.connection.poll_timeout(), at(120_000));
    world.now = at(5_000);
    world.receive(&frame(ROUTE, 1, 0)[..3]).unwrap();
    assert_eq!(world.connection.poll_timeout(), at(125_000));
    world.now = at(7_000);
    world.receive(&frame(ROUTE, 1, 0)[3..]).unwrap();
    world.now = at(8_000);
    world.write(0);
    assert_eq!(
        world.connection.poll_timeout(),
        at(127_000),
        "a write that wrote nothing is none"
    );
    world.write(5);
    assert_eq!(world.connection.poll_timeout(), at(128_000));
}

#[test]
fn what_came_before_the_end_is_executed_and_answered_for_a_while() {
    let mut world = World::new();
    world
        .receive(&[frame(REGISTER, 1, 0), frame(ROUTE, 2, 0)].concat())
        .unwrap();
    world.now = at(1_000);
    world.connection.handle_end(at(1_000));
    assert!(!world.connection.has_executed_all());
    assert_eq!(
        world.connection.poll_timeout(),
        at(1_000).after(LINGER_TIMEOUT)
    );
    world.reply();
    assert_eq!(world.executed, [1, 2]);
    assert!(world.connection.has_executed_all());
    world.write(3);
    assert!(!world.connection.owes_nothing());
    world.write(usize::MAX);
    assert!(world.connection.owes_nothing());
}

#[test]
fn a_connection_holds_no_memory_when_all_is_executed_and_sent() {
    let mut world = World::new();
    world.receive(&frame(ROUTE, 1, 2000)[..1500]).unwrap();
    world.receive(&frame(ROUTE, 1, 2000)[1500..]).unwrap();
    world.write(usize::MAX);
    assert_eq!(world.connection.input_len(), 0);
    assert!(world.connection.output().is_empty());
    assert!(
        size_of::<Connection>() <= 160,
        "{}",
        size_of::<Connection>()
    );
}

#[test]
fn rubbish_is_a_violation_and_the_requests_before_it_are_executed() {
    let mut world = World::new();
    let rubbish = b"GET / HTTP/1.1\r\n\r\n";
    let violation = world
        .receive(&[&frame(ROUTE, 1, 0)[..], rubbish].concat())
        .unwrap_err();
    assert!(
        matches!(violation, Violation::Frame(FrameError::TooLarge { .. })),
        "{violation}"
    );
    assert_eq!(world.executed, [1]);
    assert_eq!(world.answers.len(), 10);
}

#[test]
fn a_frame_above_the_limit_is_refused_by_its_length_alone() {
    let mut world = World::new();
    world
        .receive(&(16 * 1024 * 1024 - 4_u32).to_be_bytes())
        .unwrap();
    assert_eq!(
        world.connection.large_unfinished_frame_len(),
        Some(16 * 1024 * 1024)
    );

    let violation = World::new()
        .receive(&(16 * 1024 * 1024 - 3_u32).to_be_bytes())
        .unwrap_err();
    let text = violation.to_string();
    for part in [
        "16777217",
        "16777216",
        "frameMaxLength",
        "enableSplitRegistration",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn tls_and_proxy_greetings_are_violations_of_their_own() {
    assert_eq!(
        World::new().receive(&[0x16, 3, 1]),
        Err(Violation::TlsNotSupported)
    );
    assert_eq!(
        World::new().receive(b"PROXY TCP4 "),
        Err(Violation::ProxyNotSupported)
    );
    let mut world = World::new();
    world.receive(b"PR").unwrap();
    world.receive(b"OX").unwrap();
    assert_eq!(world.receive(b"Y"), Err(Violation::ProxyNotSupported));
}

#[test]
fn only_large_frames_need_admission() {
    let mut world = World::new();
    world
        .receive(&frame(ROUTE, 1, LARGE_FRAME_LEN / 2)[..1000])
        .unwrap();
    assert_eq!(world.connection.large_unfinished_frame_len(), None);
    let mut world = World::new();
    let large = frame(ROUTE, 1, LARGE_FRAME_LEN);
    world.receive(&large[..1000]).unwrap();
    assert_eq!(
        world.connection.large_unfinished_frame_len(),
        Some(large.len())
    );
    world.receive(&large[1000..]).unwrap();
    assert_eq!(world.connection.large_unfinished_frame_len(), None);
}

/// A stream, and where it is cut.
fn cut(stream: &[u8], cuts: &[prop::sample::Index]) -> Vec<Vec<u8>> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
    places.sort_unstable();
    places.push(stream.len());
    let mut from = 0;
    let piece = |place| {
        let piece = stream[from..place].to_vec();
        from = place;
        piece
    };
    places.into_iter().map(piece).collect()
}

/// Codes with lengths of bodies: that are read at once, that are too long to lend, that are large.
fn requests(codes: &'static [i32]) -> impl Strategy<Value = Vec<Vec<u8>>> {
    let body_len =
        prop_oneof![4 => 0..300_usize, 1 => 0..2 * LENT_INPUT_LEN_MAX, 1 => 0..2 * LARGE_FRAME_LEN];
    let request = (prop::sample::select(codes), body_len);
    vec(request, 0..8).prop_map(|requests| {
        let requests = requests.into_iter().enumerate();
        requests
            .map(|(place, (code, body_len))| frame(code, place, body_len))
            .collect()
    })
}

/// The beginnings of frames that there cannot be.
fn rubbish() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(vec![0, 0, 0, 3, 0]),
        Just(vec![0xff; 4]),
        Just(b"GET / HTTP/1.1\r\n".to_vec()),
        Just(vec![0, 0, 0, 8, 2, 0, 0, 0]),
        Just(vec![0, 0, 0, 8, 0, 0, 0, 5]),
        Just(vec![0, 0, 0, 8, 0, 0, 0, 4, b'[', b'1', b']', b' ']),
    ]
}

proptest! {
    // A failure prints its input; that belongs into a test of its own.
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn whatever_a_stream_is_and_however_it_is_cut_it_is_executed_and_answered_alike(
        requests in requests(&[ROUTE, REGISTER, PUT, DELETE]),
        cuts in vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let stream = requests.concat();
        let play = |pieces: Vec<Vec<u8>>| {
            let mut world = World::new();
            for piece in pieces {
                // As the worker does: who waits for the writer is not read.
                while !world.connection.wants_input() {
                    world.reply();
                }
                world.receive(&piece).unwrap();
            }
            while !world.out_at_writer.is_empty() {
                world.reply();
            }
            world.connection.keep_output(&world.answers);
            (world.executed, world.connection.output().as_slice().to_vec(), world.connection.input_len())
        };
        let (executed, answers, left) = play(cut(&stream, &cuts));
        prop_assert_eq!(executed.len(), requests.len());
        prop_assert!(executed.is_sorted());
        prop_assert_eq!(left, 0);
        prop_assert_eq!((executed, answers, left), play(vec![stream]));
    }

    #[test]
    fn what_is_refused_is_refused_behind_all_that_came_before_it_and_with_all_behind_it(
        requests in requests(&[ROUTE, DELETE]),
        rubbish in rubbish(),
        cuts in vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let behind = frame(ROUTE, 100, 0);
        let stream = [&requests.concat()[..], &rubbish, &behind].concat();
        let play = |pieces: Vec<Vec<u8>>| {
            let mut world = World::new();
            let refused = pieces.iter().find_map(|piece| world.receive(piece).err());
            (world.executed, world.answers.len(), refused)
        };
        let (executed, answered, refused) = play(cut(&stream, &cuts));
        let all: Vec<i32> = (0..).take(requests.len()).collect();
        prop_assert_eq!(&executed, &all);
        prop_assert_eq!(answered, 10 * all.len());
        prop_assert!(refused.is_some());
        prop_assert_eq!((executed, answered, refused), play(vec![stream]));
    }
}
