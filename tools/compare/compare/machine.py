"""This machine: which processor a process runs on, what it uses, and whether others were in the way."""

import os
import platform
import resource

TICKS = os.sysconf("SC_CLK_TCK")


class Placement:
    """Processors for the server, the measured load, and what loads the server beside it.

    With two processors the last two share one; with one there is nothing to choose.
    """

    def __init__(self):
        self.usable = sorted(os.sched_getaffinity(0))
        several = len(self.usable) > 1
        self.server = self.usable[0] if several else None
        self.load = self.usable[1] if several else None
        self.beside = self.usable[2] if len(self.usable) > 2 else self.load
        if several:  # this process asks and waits; it must not do that where the server runs
            os.sched_setaffinity(0, {self.beside})

    @staticmethod
    def pin(processor, argv):
        """The command line that runs `argv` on a processor."""
        return argv if processor is None else ["taskset", "-c", str(processor), *argv]

    def pin_beside(self, argv, gives_way):
        """The command line of what runs beside the measured load, and `gives_way` to it if they share a processor: a generator that is
        kept from sending shows what the two do to each other, and not what the server does."""
        shares = self.load is not None and self.beside == self.load
        return self.pin(self.beside, ["chrt", "--idle", "0", *argv] if gives_way and shares else argv)

    def text(self):
        """What was placed where."""
        if self.server is None:
            return "one processor for all"
        return f"server on processor {self.server}, load on {self.load}, what runs beside it on {self.beside}"


class Guard:
    """Tells how much of the machine processes other than ours have used since it was made, and how much a hypervisor has taken.

    Interrupts are left out of the first: the kernel books the loopback's work there, which is ours.
    """

    def __init__(self, pids):
        self._pids = pids
        self._before = self._now()

    def percents(self):
        """The shares of the processors' time that others had: other processes, a hypervisor."""
        elapsed, stolen, busy, own = (now - before for now, before in zip(self._now(), self._before))
        if elapsed <= 0:
            return 0.0, 0.0
        return 100.0 * max(busy - own, 0.0) / elapsed, 100.0 * stolen / elapsed

    def _now(self):
        own = sum(filter(None, map(cpu_seconds, self._pids())))
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
            usage = resource.getrusage(who)
            own += usage.ru_utime + usage.ru_stime
        with open("/proc/stat") as stat:
            user, nice, system, idle, iowait, irq, softirq, steal = map(int, stat.readline().split()[1:9])
        busy = user + nice + system
        return (busy + steal + idle + iowait + irq + softirq) / TICKS, steal / TICKS, busy / TICKS, own


def cpu_seconds(pid):
    """CPU time that a process has used, or None when it is gone."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            fields = stat.read().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident_kib(pid):
    """Resident memory of a process."""
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))


def open_files(pid):
    """How many descriptors a process has open."""
    return len(os.listdir(f"/proc/{pid}/fd"))


def describe():
    """The machine in one line."""
    with open("/proc/cpuinfo") as lines:
        models = [line.split(": ", 1)[1].strip() for line in lines if line.startswith("model name")]
    model = models[0] if models else platform.machine()
    congestion = _setting("/proc/sys/net/ipv4/tcp_congestion_control")
    pages = _setting("/sys/kernel/mm/transparent_hugepage/enabled")
    return (f"{os.cpu_count()} x {model}, {platform.system()} {platform.release()}, TCP congestion control {congestion}, "
            f"transparent huge pages {pages}")


def _setting(path):
    """What the kernel is set to; of several words the one that it has put in brackets."""
    try:
        with open(path) as setting:
            words = setting.read().split()
    except OSError:
        return "unknown"
    chosen = [word.strip("[]") for word in words if word.startswith("[")]
    return " ".join(chosen or words)
