//! The figures of a run as a table, as JSON, and as a distribution for HdrHistogram's tools.

use std::fmt::Write;

use hdrhistogram::Histogram;
use serde_json::{Map, Value, json};

use crate::{
    options::{Mode, Options},
    plot::{self, Line, Stroke},
    process::{Cpu, Stolen},
    record::{Recorder, Summary},
    run::Phase,
};

/// All that is reported.
#[derive(Debug)]
pub struct Report<'a> {
    /// What was asked for.
    pub options: &'a Options,
    /// As typed.
    pub command_line: String,
    /// Processor and how many.
    pub machine: String,
    /// Its kernel.
    pub kernel: String,
    /// What was measured.
    pub phases: &'a [Phase],
}

/// A generator that is busier than this is suspected to set the pace itself.
const BUSY_MAX: f64 = 0.95;

/// When a hypervisor takes more, p99 of an open loop is a millisecond and more instead of a tenth of one, whoever serves:
/// `docs/performance` has the figures.
const STOLEN_MAX: f64 = 0.003;

/// Fewer ticks than this are a greater share of a short run than `STOLEN_MAX`, and may be almost nothing.
const STOLEN_TICKS_MIN: u64 = 3;

/// Figures of one kind of request that need more than its record.
struct Rates {
    requests: f64,
    received: f64,
    sent: f64,
}

impl Rates {
    fn of(recorder: &Recorder, phase: &Phase) -> Self {
        let seconds = phase.duration.as_secs_f64();
        Self {
            requests: recorder.replies as f64 / seconds,
            received: recorder.bytes_received as f64 / seconds,
            sent: recorder.bytes_sent as f64 / seconds,
        }
    }
}

impl Report<'_> {
    /// Whether every reply was right.
    pub fn is_faultless(&self) -> bool {
        self.phases.iter().all(|phase| phase.faults.is_empty())
    }

    /// The table.
    pub fn text(&self) -> String {
        let mut out = String::new();
        self.write_text(&mut out)
            .expect("a string takes all that is written");
        out
    }

    fn write_text(&self, out: &mut String) -> std::fmt::Result {
        let options = self.options;
        writeln!(
            out,
            "loadgen: {} at {}",
            options.workload.name(),
            options.target
        )?;
        writeln!(
            out,
            "  {} topics on {} brokers, {} of each topic; version {}",
            options.population.topics,
            options.population.brokers(),
            options.population.brokers_per_topic,
            options.version
        )?;
        writeln!(out, "  {}; {}", self.machine, self.kernel)?;
        writeln!(out, "  {}\n", self.command_line)?;
        for phase in self.phases {
            writeln!(out, "  {}", self.headline(phase))?;
        }
        for phase in self.phases {
            writeln!(out, "\n{}", self.title(phase))?;
            writeln!(
                out,
                "  {:<20} {:>11} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
                "µs", "requests/s", "p50", "p90", "p99", "p99.9", "max", "MB/s in", "MB/s out"
            )?;
            for recorder in &phase.recorders {
                write_rows(out, recorder, phase)?;
            }
            write_costs(out, phase)?;
        }
        Ok(())
    }

    /// The one number of a phase.
    fn headline(&self, phase: &Phase) -> String {
        let recorder = &phase.recorders[0];
        let answered = Summary::of(&recorder.latency).filter(|_| recorder.replies > 0);
        let figure = match (phase.mode, answered) {
            (_, None) => "no replies, ".to_owned(),
            (Mode::Closed, Some(_)) => {
                let rate = grouped(Rates::of(recorder, phase).requests);
                format!("throughput {rate} requests/s, ")
            }
            (Mode::Open, Some(latency)) => format!("p99.9 {:.1} µs ", latency.p999),
        };
        let load = match phase.mode {
            Mode::Closed => "closed loop".to_owned(),
            Mode::Open => format!("at {} requests/s, open loop", grouped(self.options.rate)),
        };
        let doubt = if phase.faults.is_empty() {
            ""
        } else {
            ", WITH FAULTS"
        };
        format!("{figure}{load}{doubt}")
    }

    fn title(&self, phase: &Phase) -> String {
        let options = self.options;
        let connections = if options.workload.is_brokers() {
            options.population.brokers()
        } else {
            options.connections
        };
        let seconds = phase.duration.as_secs_f64();
        match phase.mode {
            Mode::Closed => format!(
                "closed loop, {connections} connections, {} out on each, {seconds} s",
                options.depth
            ),
            Mode::Open => format!(
                "open loop, {connections} connections, {} requests/s, {seconds} s; latency from the due time",
                grouped(options.rate)
            ),
        }
    }

    /// The JSON object.
    pub fn json(&self) -> Value {
        let options = self.options;
        json!({
            "workload": options.workload.name(),
            "target": options.target.to_string(),
            "commandLine": self.command_line,
            "machine": self.machine,
            "kernel": self.kernel,
            "topics": options.population.topics,
            "brokers": options.population.brokers(),
            "brokersPerTopic": options.population.brokers_per_topic,
            "connections": if options.workload.is_brokers() { options.population.brokers() } else { options.connections },
            "threads": options.threads,
            "seed": options.seed,
            "version": options.version,
            "phases": self.phases.iter().map(|phase| self.phase_json(phase)).collect::<Vec<_>>(),
        })
    }

    fn phase_json(&self, phase: &Phase) -> Value {
        let mut object = Map::new();
        object.insert("mode".to_owned(), phase.mode.name().into());
        object.insert("seconds".to_owned(), phase.duration.as_secs_f64().into());
        match phase.mode {
            Mode::Closed => object.insert("depth".to_owned(), self.options.depth.into()),
            Mode::Open => object.insert("rate".to_owned(), self.options.rate.into()),
        };
        let requests = phase.recorders.iter().map(|recorder| {
            let rates = Rates::of(recorder, phase);
            json!({
                "name": recorder.name,
                "replies": recorder.replies,
                "requestsPerSecond": rates.requests,
                "bytesReceivedPerSecond": rates.received,
                "bytesSentPerSecond": rates.sent,
                "opaqueEchoed": recorder.unechoed == 0,
                "latencyMicroseconds": summary_json(&recorder.latency),
                "latenessMicroseconds": summary_json(&recorder.lateness),
            })
        });
        object.insert("requests".to_owned(), requests.collect());
        let faults: Map<String, Value> = phase
            .faults
            .iter()
            .map(|(fault, count)| (fault.name(), count.into()))
            .collect();
        object.insert("faults".to_owned(), faults.into());
        let per_request = |nanoseconds: u64| per_request(nanoseconds, phase);
        let generator = json!({
            "cpuNanosecondsPerRequest": per_request(phase.cpu.user + phase.cpu.system),
            "userNanosecondsPerRequest": per_request(phase.cpu.user),
            "busy": phase.busy,
        });
        object.insert("generator".to_owned(), generator);
        let server = phase.server.map(|server| {
            json!({
                "cpuNanosecondsPerRequest": per_request(server.cpu.user + server.cpu.system),
                "userNanosecondsPerRequest": per_request(server.cpu.user),
                "residentKib": server.resident_kib,
            })
        });
        object.insert("server".to_owned(), server.into());
        let stolen = phase.stolen;
        object.insert("stolenShare".to_owned(), stolen.map(|s| s.share).into());
        let milliseconds = stolen.map(Stolen::milliseconds);
        object.insert("stolenMilliseconds".to_owned(), milliseconds.into());
        object.into()
    }

    /// The plot of all phases: the measured load's latency, and how late the generator was.
    pub fn plot(&self) -> String {
        let mut lines = Vec::new();
        for phase in self.phases {
            let recorder = &phase.recorders[0];
            lines.push(Line {
                name: format!("{}, {} loop", recorder.name, phase.mode.name()),
                histogram: &recorder.latency,
                stroke: Stroke::Solid,
            });
            lines.push(Line {
                name: "lateness of the generator".to_owned(),
                histogram: &recorder.lateness,
                stroke: Stroke::Dashed,
            });
        }
        let title = format!("{}: latency", self.options.workload.name());
        plot::svg(&title, &lines)
    }

    /// The last phase's latency as the percentile table that HdrHistogram's plotters read, in µs.
    pub fn distribution(&self) -> String {
        let phase = self.phases.last().expect("a run has a phase");
        distribution(&phase.recorders[0].latency)
    }
}

fn write_rows(out: &mut String, recorder: &Recorder, phase: &Phase) -> std::fmt::Result {
    let rates = Rates::of(recorder, phase);
    if let Some(latency) = Summary::of(&recorder.latency) {
        write!(out, "  {:<20} {:>11.0}", recorder.name, rates.requests)?;
        write_summary(out, latency)?;
        writeln!(
            out,
            " {:>9.1} {:>9.1}",
            rates.received / 1e6,
            rates.sent / 1e6
        )?;
    }
    if let Some(lateness) = Summary::of(&recorder.lateness) {
        write!(out, "  {:<32}", "  generator late by")?;
        write_summary(out, lateness)?;
        out.push('\n');
    }
    Ok(())
}

fn write_summary(out: &mut String, summary: Summary) -> std::fmt::Result {
    for value in [
        summary.p50,
        summary.p90,
        summary.p99,
        summary.p999,
        summary.max,
    ] {
        write!(out, " {value:>9.1}")?;
    }
    Ok(())
}

fn write_costs(out: &mut String, phase: &Phase) -> std::fmt::Result {
    writeln!(
        out,
        "  generator CPU {}, {:.0} % busy{}",
        cpu_text(phase.cpu, phase),
        phase.busy * 100.0,
        if phase.busy > BUSY_MAX {
            ": at its limit, which may be what is measured"
        } else {
            ""
        }
    )?;
    if let Some(server) = phase.server {
        writeln!(
            out,
            "  server CPU {}, {} KiB resident",
            cpu_text(server.cpu, phase),
            server.resident_kib
        )?;
    }
    if let Some(stolen) = phase.stolen.filter(|stolen| stolen.ticks > 0) {
        let percent = stolen.share * 100.0;
        let is_doubtful = stolen.ticks >= STOLEN_TICKS_MIN && stolen.share > STOLEN_MAX;
        let doubt = if is_doubtful {
            ": latencies of milliseconds may be its doing"
        } else {
            ""
        };
        writeln!(
            out,
            "  a hypervisor took {} ms of all processors together, {percent:.2} %{doubt}",
            stolen.milliseconds()
        )?;
    }
    let first = &phase.recorders[0];
    if first.replies > 0 {
        let received = first.bytes_received as f64 / first.replies as f64;
        writeln!(out, "  replies of {received:.0} bytes on average")?;
    }
    if phase.recorders.iter().any(|recorder| recorder.unechoed > 0) {
        writeln!(
            out,
            "  replies carry no opaque and were taken in order: a null server"
        )?;
    }
    if phase.faults.is_empty() {
        return writeln!(out, "  no faults");
    }
    for (fault, count) in phase.faults.iter() {
        writeln!(out, "  FAULT {}: {count}", fault.name())?;
    }
    Ok(())
}

fn cpu_text(cpu: Cpu, phase: &Phase) -> String {
    let all = cpu.user + cpu.system;
    match per_request(all, phase).zip(per_request(cpu.user, phase)) {
        Some((all, user)) => format!("{all:.0} ns/request ({user:.0} in user mode)"),
        None => format!("{:.1} ms", all as f64 / 1e6),
    }
}

fn per_request(nanoseconds: u64, phase: &Phase) -> Option<f64> {
    let replies = phase.recorders[0].replies;
    (replies > 0).then(|| nanoseconds as f64 / replies as f64)
}

fn summary_json(histogram: &Histogram<u64>) -> Value {
    Summary::of(histogram).map_or(Value::Null, |summary| {
        json!({
            "count": summary.count,
            "p50": summary.p50,
            "p90": summary.p90,
            "p99": summary.p99,
            "p99.9": summary.p999,
            "max": summary.max,
        })
    })
}

fn distribution(histogram: &Histogram<u64>) -> String {
    let mut out = format!(
        "{:>12} {:>14} {:>10} {:>14}\n\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    );
    let mut count = 0;
    for step in histogram.iter_quantiles(5) {
        count += step.count_since_last_iteration();
        let value = step.value_iterated_to() as f64 / 1_000.0;
        let quantile = step.quantile_iterated_to();
        let inverse = 1.0 / (1.0 - quantile);
        let inverse = if inverse.is_finite() {
            format!("{inverse:>14.2}")
        } else {
            String::new()
        };
        writeln!(out, "{value:>12.3} {quantile:>14.12} {count:>10} {inverse}")
            .expect("a string takes all that is written");
    }
    let (mean, deviation) = (histogram.mean() / 1_000.0, histogram.stdev() / 1_000.0);
    let (max, total) = (histogram.max() as f64 / 1_000.0, histogram.len());
    write!(
        out,
        "#[Mean    = {mean:>12.3}, StdDeviation   = {deviation:>12.3}]\n\
         #[Max     = {max:>12.3}, Total count    = {total:>12}]\n"
    )
    .expect("a string takes all that is written");
    out
}

/// A whole number with a comma every three digits.
fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests;
