//! The thread that sends and receives: a `mio::Poll`, some connections, some streams, its own histograms.

use std::{
    io::{self, ErrorKind},
    mem,
    sync::mpsc::SyncSender,
    time::Duration,
};

use mio::{Events, Poll, event::Event, net::TcpStream};

use crate::{
    connection::{Connection, Input, SCRATCH_LEN},
    error::{Error, Result},
    frame::OPAQUE_BASE,
    moments::{Moments, Stage, Waiting},
    outage::{Outage, Plan, RETURN, Step},
    process::{Cpu, Meter, thread_cpu},
    record::{Fault, Faults, Recorder},
    reply::{BadFrame, Reply, frame_len, inspect},
    stream::{Pace, Stream},
    window::Sent,
};

/// How often a thread says how far it is.
const PROGRESS_INTERVAL: u64 = 200_000_000;

/// What a thread measured.
#[derive(Debug)]
pub struct Outcome {
    /// One for each stream, then one for returning brokers if there was an outage.
    pub recorders: Vec<Recorder>,
    /// Wrong replies.
    pub faults: Faults,
    /// CPU time in the measured time.
    pub cpu: Cpu,
    /// Share of the measured time that the thread did not spend in its poll: near 1 it is the generator that sets the pace.
    pub busy: f64,
}

/// A thread's state.
#[derive(Debug)]
pub struct Worker<'a> {
    connections: &'a mut [Connection],
    streams: Vec<Stream>,
    moments: Moments,
    waiting: Waiting,
    outage: Option<Outage>,
    progress: Option<SyncSender<u64>>,
    told: u64,
    poll: Poll,
    scratch: Vec<u8>,
    unflushed: Vec<usize>,
    recorders: Vec<Recorder>,
    faults: Faults,
}

impl<'a> Worker<'a> {
    /// A worker that has sent nothing yet.
    ///
    /// # Errors
    /// When the system has no poll left.
    pub fn new(
        connections: &'a mut [Connection],
        streams: Vec<Stream>,
        moments: Moments,
        waiting: Waiting,
        outage: Option<Outage>,
        progress: Option<SyncSender<u64>>,
    ) -> Result<Self> {
        let mut recorders: Vec<Recorder> = streams.iter().map(|s| Recorder::new(s.name)).collect();
        if outage.is_some() {
            recorders.push(Recorder::new(RETURN));
        }
        Ok(Self {
            connections,
            streams,
            moments,
            waiting,
            outage,
            progress,
            told: 0,
            poll: Poll::new().map_err(Error::while_doing("create a poll"))?,
            scratch: vec![0; SCRATCH_LEN],
            unflushed: Vec::new(),
            recorders,
            faults: Faults::default(),
        })
    }

    /// Runs the phase.
    ///
    /// # Errors
    /// Those of the poll; a connection's are faults.
    pub fn run(mut self) -> Result<Outcome> {
        let registry = self.poll.registry();
        for (index, connection) in self.connections.iter_mut().enumerate() {
            connection.free_since = self.moments.start;
            let watched = connection.watch(registry, index);
            watched.map_err(Error::while_doing("watch a connection"))?;
        }
        let meter = self.turns()?;
        let now = self.moments.now();
        for index in 0..self.connections.len() {
            self.give_up(index, now);
            let unwatched = self.connections[index].unwatch(self.poll.registry());
            unwatched.map_err(Error::while_doing("leave a connection"))?;
        }
        while let Some(Step::Return(_)) = self.outage.as_mut().map(|outage| outage.step(now)) {
            self.faults.add(Fault::NotReturned);
        }
        let measured = self.moments.end - self.moments.warm_end;
        Ok(Outcome {
            recorders: self.recorders,
            faults: self.faults,
            cpu: meter.after?.since(meter.before?),
            busy: 1.0 - meter.idle as f64 / measured as f64,
        })
    }

    fn turns(&mut self) -> Result<Meter> {
        let mut events = Events::with_capacity(1024);
        let mut meter = Meter::at_present();
        let mut next_progress = self.moments.start;
        let mut stage = Stage::Early;
        loop {
            let now = self.moments.now();
            stage = self.advance(stage, now, &mut meter);
            if stage == Stage::Draining && (!self.is_waiting() || now >= self.moments.drain_end) {
                return Ok(meter);
            }
            if stage != Stage::Early {
                self.change_brokers(now)
                    .map_err(Error::while_doing("bring a broker back"))?;
            }
            if now >= next_progress {
                next_progress = now + PROGRESS_INTERVAL;
                self.tell_progress();
            }
            self.flush(now);
            let before = self.moments.now();
            let pause = self.pause(before, stage);
            match self.poll.poll(&mut events, Some(pause)) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                outcome => outcome.map_err(Error::while_doing("wait for connections"))?,
            }
            meter.idle += self.moments.measured(before, self.moments.now());
            for event in &events {
                self.handle(event);
            }
        }
    }

    /// Does what is due at this time, and says in which stage the phase is.
    fn advance(&mut self, stage: Stage, now: u64, meter: &mut Meter) -> Stage {
        if now < self.moments.start {
            return Stage::Early;
        }
        if now < self.moments.end {
            if stage == Stage::Early {
                (0..self.connections.len()).for_each(|index| self.pump(index, now));
            }
            self.fall_due(now);
            if stage != Stage::Measured && now >= self.moments.warm_end {
                meter.before = thread_cpu();
                return Stage::Measured;
            }
            return if stage == Stage::Early {
                Stage::WarmUp
            } else {
                stage
            };
        }
        if stage != Stage::Draining {
            meter.after = thread_cpu();
            // What fell due since the last turn, which may have been long ago, must be sent all the same.
            self.fall_due(self.moments.end - 1);
        }
        Stage::Draining
    }

    /// Whether requests are out or due.
    fn is_waiting(&self) -> bool {
        let is_absent = self.outage.is_some_and(|outage| outage.next_at().is_some());
        if is_absent {
            return true;
        }
        self.connections
            .iter()
            .enumerate()
            .any(|(index, connection)| {
                let is_owed = |stream: &Stream| stream.owed(index).is_some();
                connection.in_flight() > 0
                    || (connection.is_open() && self.streams.iter().any(is_owed))
            })
    }

    fn tell_progress(&mut self) {
        let Some(progress) = &self.progress else {
            return;
        };
        let replies = self.recorders[0].replies;
        // What a slow reporter has no room for is told the next time.
        if progress.try_send(replies - self.told).is_ok() {
            self.told = replies;
        }
    }

    /// How long nothing has to be done unless the server sends something.
    fn pause(&self, now: u64, stage: Stage) -> Duration {
        let mut until = match stage {
            Stage::Early => self.moments.start,
            Stage::WarmUp => self.moments.warm_end,
            Stage::Measured => self.moments.end,
            Stage::Draining => self.moments.drain_end,
        };
        if stage != Stage::Draining {
            let due = self.streams.iter().filter_map(Stream::next_due);
            until = due.fold(until, u64::min);
        }
        if let Some(at) = self.outage.and_then(|outage| outage.next_at()) {
            until = until.min(at);
        }
        let nanoseconds = until.saturating_sub(now).min(PROGRESS_INTERVAL);
        self.waiting.pause(nanoseconds)
    }

    /// Sends what is due by now.
    fn fall_due(&mut self, now: u64) {
        for stream in 0..self.streams.len() {
            while let Some(index) = self.streams[stream].fall_due(now) {
                self.send(stream, index, now);
            }
        }
    }

    /// Sends on a connection what its streams want to send.
    fn pump(&mut self, index: usize, now: u64) {
        if now < self.moments.start {
            return;
        }
        for stream in 0..self.streams.len() {
            self.send(stream, index, now);
        }
    }

    fn send(&mut self, stream_index: usize, index: usize, now: u64) {
        if !self.connections[index].is_open() {
            self.give_up_due(stream_index, index, now);
            return;
        }
        let stream = &mut self.streams[stream_index];
        let connection = &mut self.connections[index];
        let recorder = &mut self.recorders[stream_index];
        let frames = stream.source.frames();
        let mut appended = false;
        loop {
            let start = match &mut stream.pace {
                Pace::Closed if now >= self.moments.end => break,
                Pace::Closed => now,
                Pace::Open(open) => match open.owed(index) {
                    Some(due) => due,
                    None => break,
                },
            };
            if !connection.has_room(frames) {
                connection.is_blocked = true;
                break;
            }
            if let Pace::Open(open) = &mut stream.pace {
                open.sent(index);
                if start >= self.moments.warm_end {
                    let could = start.max(connection.free_since);
                    recorder.record_lateness(now.saturating_sub(could));
                }
            }
            let (broker, out, window) = connection.sending();
            let before = out.len();
            stream.source.append(broker, out, || {
                let slot = window.open(Sent {
                    start,
                    stream: stream_index,
                });
                OPAQUE_BASE + u32::try_from(slot).expect("windows are bounded")
            });
            if self.moments.is_measured(now) {
                recorder.bytes_sent += (out.len() - before) as u64;
            }
            appended = true;
        }
        if appended {
            self.unflushed.push(index);
        }
    }

    fn flush(&mut self, now: u64) {
        let mut unflushed = mem::take(&mut self.unflushed);
        for index in unflushed.drain(..) {
            if self.connections[index].flush().is_err() {
                self.lose(index, now);
            }
        }
        self.unflushed = unflushed;
    }

    fn handle(&mut self, event: &Event) {
        let index = event.token().0;
        if event.is_readable() || event.is_read_closed() {
            self.receive(index, event.is_read_closed());
        }
        let now = self.moments.now();
        let connection = &mut self.connections[index];
        if connection.is_blocked {
            connection.is_blocked = false;
            connection.free_since = now;
        }
        self.pump(index, now);
        // Written at once, not at the turn's end: the server works on it while the next connection is read.
        self.unflushed.clear();
        if self.connections[index].flush().is_err() {
            self.lose(index, now);
        }
    }

    fn receive(&mut self, index: usize, to_the_end: bool) {
        let mut scratch = mem::take(&mut self.scratch);
        loop {
            let input = self.connections[index].read(&mut scratch);
            let now = self.moments.now();
            let (filled, more) = match input {
                Ok(Input::Filled(filled)) => (filled, true),
                Ok(Input::Last(filled)) => (filled, to_the_end),
                Ok(Input::Nothing) => break,
                Ok(Input::Closed) | Err(_) => {
                    self.lose(index, now);
                    break;
                }
            };
            if self.take_replies(index, &scratch[..filled], now).is_err() {
                self.faults.add(Fault::BadFrame);
                self.lose(index, now);
                break;
            }
            if !more {
                break;
            }
        }
        self.scratch = scratch;
    }

    fn take_replies(
        &mut self,
        index: usize,
        bytes: &[u8],
        now: u64,
    ) -> std::result::Result<(), BadFrame> {
        let connection = &mut self.connections[index];
        let is_counted = self.moments.is_measured(now);
        // Requests that left together and came back together are recorded together.
        let mut alike: Option<(Sent, u64)> = None;
        let mut rest = bytes;
        while let Some(len) = frame_len(rest)?
            && len <= rest.len()
        {
            let (frame, behind) = rest.split_at(len);
            rest = behind;
            let reply = inspect(frame, &mut connection.hints)?;
            let Some(sent) = connection.answered(reply.opaque) else {
                self.faults.add(Fault::UnknownOpaque);
                continue;
            };
            let recorder = &mut self.recorders[sent.stream];
            if reply.opaque == 0 {
                recorder.unechoed += 1;
            } else {
                recorder.echoed += 1;
            }
            if is_counted {
                recorder.replies += 1;
                recorder.bytes_received += len as u64;
            }
            let stream = self.streams.get(sent.stream);
            if let Some(fault) = wrong(reply, stream.is_some_and(Stream::wants_body)) {
                self.faults.add(fault);
            }
            match &mut alike {
                Some((group, count)) if *group == sent => *count += 1,
                _ => {
                    if let Some((group, count)) = alike.replace((sent, 1)) {
                        record(&mut self.recorders, &self.moments, group, now, count);
                    }
                }
            }
        }
        if let Some((group, count)) = alike {
            record(&mut self.recorders, &self.moments, group, now, count);
        }
        connection.keep(rest);
        Ok(())
    }

    /// Closes a connection that failed.
    fn lose(&mut self, index: usize, now: u64) {
        if self.connections[index].is_open() {
            self.faults.add(Fault::Closed);
            self.connections[index].is_lost = true;
            self.give_up(index, now);
            self.connections[index].close();
        }
    }

    /// Gives up all that a connection waits for or has to send. It took at least this long, and must not be missing among the slow.
    fn give_up(&mut self, index: usize, now: u64) {
        let until = self.moments.waited_until(now);
        while let Some(sent) = self.connections[index].abandon_oldest() {
            self.faults.add(Fault::Unanswered);
            record(&mut self.recorders, &self.moments, sent, until, 1);
        }
        for stream in 0..self.streams.len() {
            self.give_up_due(stream, index, now);
        }
    }

    /// Records what fell due and can no longer be sent.
    fn give_up_due(&mut self, stream: usize, index: usize, now: u64) {
        let Pace::Open(open) = &mut self.streams[stream].pace else {
            return;
        };
        let connection = &self.connections[index];
        // A broker that left on purpose has nothing to send.
        let is_away = !connection.is_open() && !connection.is_lost;
        let until = self.moments.waited_until(now);
        while let Some(start) = open.give_up(index) {
            if !is_away {
                self.faults.add(Fault::NeverSent);
                let sent = Sent { start, stream };
                record(&mut self.recorders, &self.moments, sent, until, 1);
            }
        }
    }

    fn change_brokers(&mut self, now: u64) -> io::Result<()> {
        let Some(outage) = &mut self.outage else {
            return Ok(());
        };
        match outage.step(now) {
            Step::Wait => Ok(()),
            Step::Leave(count) => {
                let leaving = &mut self.connections[..count];
                leaving.iter_mut().for_each(Connection::close);
                Ok(())
            }
            Step::Return(index) => {
                let plan = outage.plan;
                self.return_broker(plan, index, now)
            }
        }
    }

    fn return_broker(&mut self, plan: Plan, index: usize, now: u64) -> io::Result<()> {
        let connection = &mut self.connections[index];
        let stream = TcpStream::connect(plan.target)?;
        stream.set_nodelay(true)?;
        connection.reopen(stream);
        connection.watch(self.poll.registry(), index)?;
        let (broker, out, window) = connection.sending();
        let broker = broker.expect("a broker's connection has a broker");
        let sent = Sent {
            start: plan.return_at,
            stream: self.streams.len(),
        };
        self.recorders[sent.stream].record_lateness(now - plan.return_at);
        let slot = u32::try_from(window.open(sent)).expect("windows are bounded");
        broker.revision += 1;
        broker.append_registration(&plan.population, plan.codec, OPAQUE_BASE + slot, out);
        self.unflushed.push(index);
        Ok(())
    }
}

/// What is wrong with a reply whose request is known.
fn wrong(reply: Reply, wants_body: bool) -> Option<Fault> {
    if !reply.is_response {
        Some(Fault::NoResponse)
    } else if reply.code != 0 {
        Some(Fault::Code(reply.code))
    } else if wants_body && reply.body_len == 0 {
        Some(Fault::EmptyBody)
    } else {
        None
    }
}

fn record(recorders: &mut [Recorder], moments: &Moments, sent: Sent, now: u64, count: u64) {
    if sent.start >= moments.warm_end {
        recorders[sent.stream].record_latency(now - sent.start, count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_right_if_it_is_a_response_with_code_0_and_a_body_where_one_is_wanted() {
        let right = Reply {
            code: 0,
            opaque: 5,
            is_response: true,
            body_len: 0,
        };
        let request = Reply {
            is_response: false,
            ..right
        };
        let refusal = Reply { code: 17, ..right };
        assert_eq!(wrong(right, false), None);
        assert_eq!(wrong(right, true), Some(Fault::EmptyBody));
        assert_eq!(wrong(request, false), Some(Fault::NoResponse));
        assert_eq!(wrong(refusal, true), Some(Fault::Code(17)));
    }
}
