//! CPU time and memory of threads and processes, from `/proc`.

use std::{fs, io};

use crate::error::{Error, Result};

/// `/proc` counts CPU time in hundredths of a second, whatever the kernel's own tick.
const TICK_NANOSECONDS: u64 = 10_000_000;

/// CPU time in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// In the program.
    pub user: u64,
    /// In the kernel, for the program.
    pub system: u64,
}

impl Cpu {
    /// What was used since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
        }
    }

    /// The sum with another thread's.
    pub fn plus(self, other: Self) -> Self {
        Self {
            user: self.user + other.user,
            system: self.system + other.system,
        }
    }
}

/// What a thread used of the processor.
#[derive(Debug)]
pub struct Meter {
    /// CPU time when the measured time began.
    pub before: Result<Cpu>,
    /// CPU time when it ended.
    pub after: Result<Cpu>,
    /// Time in the poll between them, in ns.
    pub idle: u64,
}

impl Meter {
    /// A meter that has both at the present moment, until they are set.
    pub fn at_present() -> Self {
        Self {
            before: thread_cpu(),
            after: thread_cpu(),
            idle: 0,
        }
    }
}

/// CPU time of the calling thread.
///
/// # Errors
/// When `/proc` is not there or not what it used to be.
pub fn thread_cpu() -> Result<Cpu> {
    cpu_of("/proc/thread-self/stat")
}

/// CPU time of a process, with that of its ended threads.
///
/// # Errors
/// When there is no such process.
pub fn process_cpu(pid: u32) -> Result<Cpu> {
    cpu_of(&format!("/proc/{pid}/stat"))
}

/// Resident memory of a process in KiB.
///
/// # Errors
/// When there is no such process.
pub fn resident_kib(pid: u32) -> Result<u64> {
    let path = format!("/proc/{pid}/status");
    let status = read(&path)?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
        .ok_or_else(|| Error::new(format!("{path} has no VmRSS")))
}

/// The machine and its kernel, for the report.
pub fn machine() -> (String, String) {
    let cpu_info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu_info
        .lines()
        .find_map(|line| {
            line.strip_prefix("model name")?
                .split_once(": ")
                .map(|x| x.1)
        })
        .unwrap_or("unknown processor");
    // Those of the machine, not those that this process is pinned to.
    let processors = cpu_info
        .lines()
        .filter(|line| line.starts_with("processor"));
    let cores = processors.count();
    let kernel = |name: &str| {
        let text = fs::read_to_string(format!("/proc/sys/kernel/{name}"));
        text.map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
    };
    (
        format!("{model}, processors: {cores}"),
        format!("{} {}", kernel("ostype"), kernel("osrelease")),
    )
}

fn cpu_of(path: &str) -> Result<Cpu> {
    parse_stat(&read(path)?).ok_or_else(|| Error::new(format!("{path} has no CPU times")))
}

fn read(path: &str) -> Result<String> {
    let read: io::Result<String> = fs::read_to_string(path);
    read.map_err(Error::while_doing(path))
}

/// Fields 14 and 15. The second field is a name in parentheses that may itself contain blanks and parentheses.
fn parse_stat(stat: &str) -> Option<Cpu> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    Some(Cpu {
        user: ticks()? * TICK_NANOSECONDS,
        system: ticks()? * TICK_NANOSECONDS,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_times_are_found_behind_any_name() {
        let stat = "42 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 123 45 0 0 20 0";
        let expected = Cpu {
            user: 1_230_000_000,
            system: 450_000_000,
        };
        assert_eq!(parse_stat(stat), Some(expected));
        assert_eq!(parse_stat("42 (cut) S 1 2"), None);
    }
}
