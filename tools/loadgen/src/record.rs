//! What is measured: histograms and counts that one thread owns, merged when the threads are done.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

/// Longest latency told apart, in ns.
const LATENCY_MAX: u64 = 120_000_000_000;

/// A way in which a reply, or its absence, was wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// Another result code than 0.
    Code(u32),
    /// A route reply without a route.
    EmptyBody,
    /// A reply whose flag does not say that it is a response.
    NoResponse,
    /// An opaque that no outstanding request has.
    UnknownOpaque,
    /// Bytes that are no frame; the connection is given up.
    BadFrame,
    /// The server closed the connection or it failed.
    Closed,
    /// A request without a reply when its connection closed or the run ended.
    Unanswered,
    /// A request that fell due in an open loop, on a connection that had no room until the run ended or that was lost.
    NeverSent,
    /// A broker that was to come back and had not when the run ended.
    NotReturned,
    /// Some replies carried their request's opaque and some did not.
    OpaqueAtTimes,
    /// The server's process was there when the run began and is not any more.
    ServerEnded,
}

impl Fault {
    /// Name in reports.
    pub fn name(self) -> String {
        match self {
            Self::Code(code) => format!("code {code}"),
            Self::EmptyBody => "empty body".to_owned(),
            Self::NoResponse => "no response flag".to_owned(),
            Self::UnknownOpaque => "unknown opaque".to_owned(),
            Self::BadFrame => "bad frame".to_owned(),
            Self::Closed => "connection closed".to_owned(),
            Self::Unanswered => "unanswered".to_owned(),
            Self::NeverSent => "never sent".to_owned(),
            Self::NotReturned => "broker not returned".to_owned(),
            Self::OpaqueAtTimes => "opaque at times only".to_owned(),
            Self::ServerEnded => "server process ended".to_owned(),
        }
    }
}

/// Faults by kind.
#[derive(Clone, Debug, Default)]
pub struct Faults(BTreeMap<Fault, u64>);

impl Faults {
    /// Counts one more.
    pub fn add(&mut self, fault: Fault) {
        self.add_many(fault, 1);
    }

    /// Counts so many more.
    pub fn add_many(&mut self, fault: Fault, count: u64) {
        if count > 0 {
            *self.0.entry(fault).or_default() += count;
        }
    }

    /// Adds another thread's.
    pub fn merge(&mut self, other: &Self) {
        for (fault, count) in &other.0 {
            *self.0.entry(*fault).or_default() += count;
        }
    }

    /// Kinds and counts.
    pub fn iter(&self) -> impl Iterator<Item = (Fault, u64)> {
        self.0.iter().map(|(fault, count)| (*fault, *count))
    }

    /// Whether every reply was right.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// One kind of request, as one thread saw it.
#[derive(Clone, Debug)]
pub struct Recorder {
    /// Kind of request.
    pub name: &'static str,
    /// From due time (open loop) or writing (closed loop) to the reading of the reply, in ns.
    pub latency: Histogram<u64>,
    /// From due time, or from when the connection could take the request if that was later, to its writing: the generator's own
    /// fault, in ns. In a closed loop only returning brokers have a due time.
    pub lateness: Histogram<u64>,
    /// Replies in the measured time.
    pub replies: u64,
    /// Their bytes.
    pub bytes_received: u64,
    /// Bytes of requests in the measured time.
    pub bytes_sent: u64,
    /// Replies, at any time, with their request's opaque.
    pub echoed: u64,
    /// Replies, at any time, with opaque 0.
    pub unechoed: u64,
}

impl Recorder {
    /// Nothing recorded yet.
    pub fn new(name: &'static str) -> Self {
        let histogram =
            Histogram::new_with_bounds(1, LATENCY_MAX, 3).expect("these bounds are valid");
        Self {
            name,
            latency: histogram.clone(),
            lateness: histogram,
            replies: 0,
            bytes_received: 0,
            bytes_sent: 0,
            echoed: 0,
            unechoed: 0,
        }
    }

    /// Adds another thread's record of the same kind.
    pub fn merge(&mut self, other: &Self) {
        assert_eq!(self.name, other.name, "threads run the same streams");
        self.latency
            .add(&other.latency)
            .expect("all histograms have the same bounds");
        self.lateness
            .add(&other.lateness)
            .expect("all histograms have the same bounds");
        self.replies += other.replies;
        self.bytes_received += other.bytes_received;
        self.bytes_sent += other.bytes_sent;
        self.echoed += other.echoed;
        self.unechoed += other.unechoed;
    }

    /// Records `count` equal latencies; what is longer than the histogram's range counts as its longest.
    pub fn record_latency(&mut self, nanoseconds: u64, count: u64) {
        record(&mut self.latency, nanoseconds, count);
    }

    /// Records a request that left late.
    pub fn record_lateness(&mut self, nanoseconds: u64) {
        record(&mut self.lateness, nanoseconds, 1);
    }
}

fn record(histogram: &mut Histogram<u64>, nanoseconds: u64, count: u64) {
    histogram
        .record_n(nanoseconds.clamp(1, LATENCY_MAX), count)
        .expect("the value is within the bounds");
}

/// Points of a distribution, in µs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// How many values.
    pub count: u64,
    /// Median.
    pub p50: f64,
    /// 90 % are not greater.
    pub p90: f64,
    /// 99 % are not greater.
    pub p99: f64,
    /// 99.9 % are not greater.
    pub p999: f64,
    /// The greatest.
    pub max: f64,
}

impl Summary {
    /// The points of a histogram of ns; `None` if it is empty.
    pub fn of(histogram: &Histogram<u64>) -> Option<Self> {
        let at = |quantile| histogram.value_at_quantile(quantile) as f64 / 1_000.0;
        (!histogram.is_empty()).then(|| Self {
            count: histogram.len(),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: histogram.max() as f64 / 1_000.0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_is_as_if_one_thread_had_recorded_all() {
        let mut one = Recorder::new("route");
        let mut other = Recorder::new("route");
        let mut all = Recorder::new("route");
        for value in 1..=1_000 {
            let part = if value % 3 == 0 { &mut one } else { &mut other };
            part.record_latency(value * 1_000, 2);
            part.replies += 2;
            all.record_latency(value * 1_000, 2);
            all.replies += 2;
        }
        one.merge(&other);
        assert_eq!(one.latency, all.latency);
        assert_eq!(one.replies, all.replies);
        let summary = Summary::of(&one.latency).unwrap();
        assert_eq!(summary.count, 2_000);
        assert!((summary.p99 - 990.0).abs() < 1.0, "{summary:?}");
    }

    #[test]
    fn what_is_out_of_range_counts_as_the_longest() {
        let mut recorder = Recorder::new("route");
        recorder.record_latency(0, 1);
        recorder.record_latency(u64::MAX, 1);
        assert_eq!(recorder.latency.len(), 2);
        assert_eq!(Summary::of(&recorder.lateness), None);
    }

    #[test]
    fn faults_are_counted_by_kind() {
        let (mut one, mut other) = (Faults::default(), Faults::default());
        one.add(Fault::Code(17));
        other.add(Fault::Code(17));
        other.add(Fault::Closed);
        one.merge(&other);
        let counts: Vec<_> = one.iter().collect();
        assert_eq!(counts, [(Fault::Code(17), 2), (Fault::Closed, 1)]);
    }
}
