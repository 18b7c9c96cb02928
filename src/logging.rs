//! Log lines: one shape, one sink, no caller ever waits.
//!
//! A line is `yyyy-MM-dd HH:mm:ss LEVEL thread - message`, as the original's log configuration has it, in the zone that
//! `waypost.logTimeZone` names. Lines go through a bounded queue to one thread that writes them to standard output; what does
//! not fit is dropped and counted. Nothing is written to a file. Peers choose parts of many messages, so control characters
//! are escaped and long lines cut: a name cannot forge a line.

use std::{
    fmt::{self, Write as _},
    io,
    time::{Duration, SystemTime},
};

use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
    level_filters::LevelFilter,
    subscriber,
};
use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::{
    fmt::{FmtContext, FormatEvent, FormatFields, format::Writer},
    registry::LookupSpan,
};

use crate::{
    config::Config,
    limits::{LOG_LINES_WAITING_MAX, LOG_MESSAGE_LEN_MAX},
};

/// Where lines go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// Standard output.
    Stdout,
    /// Standard error, for those who want nothing but the boot line in standard output.
    Stderr,
}

/// What to log, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogOptions {
    /// Least important lines shown.
    pub level: LevelFilter,
    /// Where they go.
    pub output: Output,
    /// The zone of their time stamps: its offset to GMT.
    pub offset_minutes: i32,
}

impl LogOptions {
    /// What the configuration asks for. A `level` from elsewhere, such as the environment, goes first if it is one.
    #[must_use]
    pub fn new(config: &Config, level: Option<&str>) -> Self {
        let level = level.and_then(|level| level.trim().parse().ok());
        Self {
            level: level
                .or_else(|| config.log_level().parse().ok())
                .unwrap_or(LevelFilter::INFO),
            output: if config.log_output() == "stderr" {
                Output::Stderr
            } else {
                Output::Stdout
            },
            offset_minutes: config.log_offset_minutes(),
        }
    }
}

/// Keeps the writing thread; dropping it writes what still waits, for at most about a second.
#[must_use = "log lines are only written while the guard lives"]
pub struct LogGuard {
    _worker: WorkerGuard,
    dropped: ErrorCounter,
    installed: bool,
}

impl fmt::Debug for LogGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogGuard")
            .field("installed", &self.installed)
            .field("dropped", &self.dropped_lines())
            .finish()
    }
}

impl LogGuard {
    /// Lines that found the queue full so far.
    #[must_use]
    pub fn dropped_lines(&self) -> usize {
        self.dropped.dropped_lines()
    }

    /// Says how many lines have found the queue full so far, if any: in the log, where they are missing.
    pub fn report_dropped(&self) {
        let dropped = self.dropped_lines();
        if dropped > 0 {
            tracing::warn!(
                "{dropped} log lines were dropped so far: they came faster than they could be written (waypost.logLevel says which are wanted)"
            );
        }
    }

    /// Whether lines of this process reach this log: false if it had one before.
    #[must_use]
    pub fn is_installed(&self) -> bool {
        self.installed
    }
}

/// Starts the process's log.
pub fn start(options: LogOptions) -> LogGuard {
    // At the workers' priority: they log as well, and of the lines that they write without a pause a nicer thread lost some.
    let builder = NonBlockingBuilder::default()
        .lossy(true)
        .buffered_lines_limit(LOG_LINES_WAITING_MAX)
        .thread_name("log");
    let (writer, worker) = match options.output {
        Output::Stdout => builder.finish(io::stdout()),
        Output::Stderr => builder.finish(io::stderr()),
    };
    let dropped = writer.error_counter();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(options.level)
        .event_format(Line {
            offset_minutes: options.offset_minutes,
        })
        .with_writer(writer)
        .finish();
    let installed = subscriber::set_global_default(subscriber).is_ok();
    LogGuard {
        _worker: worker,
        dropped,
        installed,
    }
}

/// Formats one event.
struct Line {
    offset_minutes: i32,
}

impl<S, N> FormatEvent<S, N> for Line
where
    S: Subscriber + for<'lookup> LookupSpan<'lookup>,
    N: for<'writer> FormatFields<'writer> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        #[expect(
            clippy::disallowed_methods,
            reason = "a line's time stamp decides nothing"
        )]
        let since_epoch = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or(Duration::ZERO);
        let mut message = Message::default();
        event.record(&mut message);
        write_stamp(&mut writer, since_epoch, self.offset_minutes)?;
        let thread = std::thread::current();
        let thread = thread.name().unwrap_or("unnamed");
        writeln!(
            writer,
            " {} {thread} - {}",
            event.metadata().level(),
            message.text
        )
    }
}

/// The text of an event: its message, then its fields as `name=value`.
#[derive(Default)]
struct Message {
    text: String,
}

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let mut escaped = Escaped {
            text: &mut self.text,
        };
        // An error means that the line is full; what fits is logged.
        let outcome = match field.name() {
            "message" => write!(escaped, "{value:?}"),
            name => write!(escaped, " {name}={value:?}"),
        };
        if outcome.is_err() {
            self.text.push('…');
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }
}

/// Takes text until the line is full, without the characters that could end it or steer a terminal.
struct Escaped<'t> {
    text: &'t mut String,
}

impl fmt::Write for Escaped<'_> {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        for character in part.chars() {
            if self.text.len() >= LOG_MESSAGE_LEN_MAX {
                return Err(fmt::Error);
            }
            if is_harmless(character) {
                self.text.push(character);
            } else {
                self.text.extend(character.escape_default());
            }
        }
        Ok(())
    }
}

/// Neither a control character nor one that breaks or reorders a line.
fn is_harmless(character: char) -> bool {
    !character.is_control()
        && !matches!(character, '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// Writes `yyyy-MM-dd HH:mm:ss`.
fn write_stamp(
    out: &mut impl fmt::Write,
    since_epoch: Duration,
    offset_minutes: i32,
) -> fmt::Result {
    let utc = i64::try_from(since_epoch.as_secs()).unwrap_or(i64::MAX);
    let local = utc.saturating_add(i64::from(offset_minutes) * 60);
    let (days, second) = (local.div_euclid(86_400), local.rem_euclid(86_400));
    let (year, month, day) = civil_date(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    write!(
        out,
        "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}"
    )
}

/// The Gregorian date that lies `days` after 1970-01-01. Years are counted from March, so that a leap day ends one.
fn civil_date(days: i64) -> (i64, i64, i64) {
    /// From 0000-03-01 to 1970-01-01.
    const EPOCH: i64 = 719_468;
    const DAYS_OF_400_YEARS: i64 = 146_097;
    let (era, day) = (
        (days + EPOCH).div_euclid(DAYS_OF_400_YEARS),
        (days + EPOCH).rem_euclid(DAYS_OF_400_YEARS),
    );
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tracing_subscriber::fmt::MakeWriter;

    use super::*;

    fn stamp(seconds: u64, offset_minutes: i32) -> String {
        let mut text = String::new();
        write_stamp(&mut text, Duration::from_secs(seconds), offset_minutes)
            .expect("a String takes all");
        text
    }

    #[test]
    fn stamps_are_those_of_the_calendar() {
        assert_eq!(stamp(0, 0), "1970-01-01 00:00:00");
        assert_eq!(stamp(0, -90), "1969-12-31 22:30:00");
        assert_eq!(stamp(951_782_399, 0), "2000-02-28 23:59:59");
        assert_eq!(stamp(951_782_400, 0), "2000-02-29 00:00:00");
        assert_eq!(stamp(951_868_800, 0), "2000-03-01 00:00:00");
        assert_eq!(stamp(1_700_000_000, 0), "2023-11-14 22:13:20");
        assert_eq!(stamp(1_700_000_000, 480), "2023-11-15 06:13:20");
        assert_eq!(stamp(4_107_542_400, 0), "2100-03-01 00:00:00");
    }

    /// Runs `log` with a log that writes through a pipe, and returns its lines.
    fn lines(log: impl FnOnce()) -> Vec<String> {
        use std::sync::mpsc;
        #[derive(Clone)]
        struct Pipe(mpsc::Sender<Vec<u8>>);
        impl io::Write for Pipe {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.send(bytes.to_vec()).map_err(io::Error::other)?;
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        impl MakeWriter<'_> for Pipe {
            type Writer = Self;
            fn make_writer(&self) -> Self {
                self.clone()
            }
        }
        let (sender, receiver) = mpsc::channel();
        let subscriber = tracing_subscriber::fmt()
            .event_format(Line { offset_minutes: 0 })
            .with_writer(Pipe(sender))
            .finish();
        subscriber::with_default(subscriber, log);
        let bytes: Vec<u8> = receiver.iter().flatten().collect();
        String::from_utf8(bytes)
            .expect("lines are UTF-8")
            .lines()
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn a_line_has_stamp_level_thread_message_and_fields() {
        let all = lines(|| {
            tracing::info!(
                peer = "10.0.0.1:1",
                count = 3,
                "new broker registered, {}",
                "a"
            )
        });
        let thread = std::thread::current();
        let thread = thread.name().expect("tests have named threads");
        assert_eq!(all.len(), 1);
        assert_eq!(
            all[0][19..],
            format!(" INFO {thread} - new broker registered, a peer=10.0.0.1:1 count=3")
        );
    }

    #[test]
    fn no_text_of_a_peer_makes_a_second_line_or_an_endless_one() {
        let name = "a\nb\r\u{1b}[2J\u{2028}\u{202e}";
        let all = lines(|| tracing::warn!("topic {name} {}", "x".repeat(10 * LOG_MESSAGE_LEN_MAX)));
        assert_eq!(all.len(), 1);
        assert!(
            all[0].contains(r"topic a\nb\r\u{1b}[2J\u{2028}\u{202e} xxx"),
            "{}",
            &all[0][..99]
        );
        assert!(all[0].len() < LOG_MESSAGE_LEN_MAX + 200, "{}", all[0].len());
    }

    #[test]
    fn levels_below_the_chosen_one_are_not_logged() {
        assert_eq!(lines(|| tracing::debug!("quiet")), Vec::<String>::new());
    }

    #[test]
    fn the_environment_goes_before_the_file_and_nonsense_counts_for_nothing() {
        let config = Config::defaults(&crate::config::Environment::default());
        assert_eq!(LogOptions::new(&config, None).level, LevelFilter::INFO);
        assert_eq!(
            LogOptions::new(&config, Some("DEBUG")).level,
            LevelFilter::DEBUG
        );
        assert_eq!(
            LogOptions::new(&config, Some("loud")).level,
            LevelFilter::INFO
        );
        assert_eq!(LogOptions::new(&config, None).output, Output::Stdout);
        assert_eq!(LogOptions::new(&config, None).offset_minutes, 480);
    }

    proptest! {
        #[test]
        fn every_day_is_the_one_after_the_day_before(days in 0_i64..4_000_000) {
            let (year, month, day) = civil_date(days);
            let next = civil_date(days + 1);
            let month_ends = next == (year, month + 1, 1) || (month == 12 && day == 31 && next == (year + 1, 1, 1));
            prop_assert!(next == (year, month, day + 1) || (month_ends && day >= 28));
        }
    }
}
