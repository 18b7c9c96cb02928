//! CPU time of threads and processes, from their clocks, and memory, from `/proc`.

use std::{fs, io, time::Duration};

use nix::{time::ClockId, unistd::Pid};

use crate::error::{Error, Result};

/// `/proc` counts CPU time in hundredths of a second, whatever the kernel's own tick. That is too coarse for a sum over a few requests,
/// so it only tells how much of a sum was in user mode, and what a hypervisor took.
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
    /// A sum that is exact, and a part of it that is not.
    fn of(total: u64, user: u64) -> Self {
        let user = user.min(total);
        Self {
            user,
            system: total - user,
        }
    }

    /// What was used since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        let total = |cpu: Self| cpu.user + cpu.system;
        Self::of(
            total(self).saturating_sub(total(earlier)),
            self.user.saturating_sub(earlier.user),
        )
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
    cpu_of(ClockId::CLOCK_THREAD_CPUTIME_ID, "/proc/thread-self/stat")
}

/// CPU time of a process, with that of its ended threads.
///
/// # Errors
/// When there is no such process.
pub fn process_cpu(pid: u32) -> Result<Cpu> {
    let clock = || {
        let pid = i32::try_from(pid).map_err(io::Error::other)?;
        Ok(ClockId::pid_cpu_clock_id(Pid::from_raw(pid))?)
    };
    let clock = clock().map_err(Error::while_doing(format_args!("CPU clock of {pid}")))?;
    cpu_of(clock, &format!("/proc/{pid}/stat"))
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

/// What a process has used so far.
#[derive(Clone, Copy, Debug)]
pub struct ProcessUse {
    /// CPU time.
    pub cpu: Cpu,
    /// Resident memory in KiB.
    pub resident_kib: u64,
}

impl ProcessUse {
    /// Of this process, now; `None` if it has ended, whether or not its parent has taken note.
    pub fn of(pid: u32) -> Option<Self> {
        Some(Self {
            cpu: process_cpu(pid).ok()?,
            resident_kib: resident_kib(pid).ok()?,
        })
    }
}

/// Time of all processors of the machine since it was started, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processors {
    /// What a hypervisor gave to others although a thread of this machine was ready to run. It looks like a late wake-up or a slow
    /// reply, of everybody on the machine.
    stolen: u64,
    all: u64,
}

impl Processors {
    /// The present state. `None` where the system does not tell.
    pub fn now() -> Option<Self> {
        Self::of(&fs::read_to_string("/proc/stat").ok()?)
    }

    fn of(stat: &str) -> Option<Self> {
        // Behind the first eight are guests', which the first two include.
        let fields = stat.strip_prefix("cpu ")?.lines().next()?;
        let fields: Vec<u64> = fields
            .split_whitespace()
            .take(8)
            .map_while(|field| field.parse().ok())
            .collect();
        Some(Self {
            stolen: *fields.get(7)?,
            all: fields.iter().sum(),
        })
    }

    /// What was stolen since `earlier`.
    pub fn stolen_since(self, earlier: Self) -> Stolen {
        let all = self.all.saturating_sub(earlier.all);
        let ticks = self.stolen.saturating_sub(earlier.stolen);
        Stolen {
            ticks,
            share: ticks as f64 / all.max(1) as f64,
        }
    }
}

/// Time of all processors together that a hypervisor took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stolen {
    /// In the system's ticks: few of them say little, since one may stand for any time up to its length.
    pub ticks: u64,
    /// Of all processors' time, up to 1.
    pub share: f64,
}

impl Stolen {
    /// The ticks' time.
    pub fn milliseconds(self) -> u64 {
        self.ticks * TICK_NANOSECONDS / 1_000_000
    }
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

fn cpu_of(clock: ClockId, path: &str) -> Result<Cpu> {
    let user = user_of(&read(path)?);
    let user = user.ok_or_else(|| Error::new(format!("{path} has no CPU times")))?;
    let total = clock.now().map_err(io::Error::from);
    let total = total.map_err(Error::while_doing(format_args!("CPU clock beside {path}")))?;
    let total = u64::try_from(Duration::from(total).as_nanos());
    Ok(Cpu::of(total.expect("no process is 584 years old"), user))
}

fn read(path: &str) -> Result<String> {
    let read: io::Result<String> = fs::read_to_string(path);
    read.map_err(Error::while_doing(path))
}

/// Field 14, in ns. The second field is a name in parentheses that may itself contain blanks and parentheses.
fn user_of(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks: u64 = fields.split_whitespace().nth(11)?.parse().ok()?;
    Some(ticks * TICK_NANOSECONDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_in_user_mode_is_found_behind_any_name() {
        let stat = "42 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 123 45 0 0 20 0";
        assert_eq!(user_of(stat), Some(1_230_000_000));
        assert_eq!(user_of("42 (cut) S 1 2"), None);
    }

    #[test]
    fn stolen_time_is_told_in_milliseconds_and_as_a_share_of_all_processors_time() {
        let of = |stat| Processors::of(stat).unwrap();
        let before = of("cpu  100 20 30 400 5 0 7 8 9 9\ncpu0 1 1 1 1 1 1 1 1 1 1\n");
        let after = of("cpu  130 20 40 450 5 0 7 18 99 9\ncpu0 1 1 1 1 1 1 1 1 1 1\n");
        let stolen = after.stolen_since(before);
        assert!((stolen.share - 0.1).abs() < 1e-9);
        assert_eq!((stolen.ticks, stolen.milliseconds()), (10, 100));
        assert_eq!(before.stolen_since(before).milliseconds(), 0);
        assert_eq!(Processors::of("cpu  1 2 3\n"), None);
        assert!(Processors::now().is_some());
    }

    #[test]
    fn a_coarse_part_never_spoils_the_sum() {
        // A tick of user mode was booked between two moments that are 0.6 ms of CPU time apart.
        let before = Cpu::of(100_900_000, 90_000_000);
        let after = Cpu::of(101_500_000, 100_000_000);
        assert_eq!(after.since(before), Cpu::of(600_000, 10_000_000));
        assert_eq!(Cpu::of(600_000, 10_000_000).user, 600_000);
    }

    #[test]
    fn the_time_of_a_thread_that_has_ended_is_the_process_s() {
        let before = process_cpu(std::process::id()).unwrap();
        let of_thread = std::thread::spawn(|| {
            let before = thread_cpu().unwrap();
            loop {
                let used = thread_cpu().unwrap().since(before);
                if used.user + used.system > 3_000_000 {
                    return used;
                }
            }
        });
        let of_thread = of_thread.join().unwrap();
        let used = process_cpu(std::process::id()).unwrap().since(before);
        assert!(
            used.user + used.system >= of_thread.user + of_thread.system,
            "{used:?}, {of_thread:?}"
        );
    }
}
