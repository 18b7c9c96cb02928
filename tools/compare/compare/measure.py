"""Rounds: each server in its turn, each measurement guarded and repeated when others were in the way."""

import contextlib
import os
import subprocess
import time

from interop.checks import Failure

from . import load, machine
from .servers import Null

TRIES = 5  # of a measurement that was disturbed
STOLEN_FROM_RATES = 10  # times as much may be stolen where no tail is measured: a rate suffers in proportion
PAUSE = 2.0  # seconds before another: what disturbs goes on for a while
SHORT_WARM_UP = 1.0  # of a server that has been under load before

_PACE = ("--mode", "--rate", "--depth")  # what a reply's length does not depend on


# Requests a second of an open loop; with more the generator itself is late, and its lateness is all that is seen.
OPEN_LOOP_MAX = 100_000


class Sample:
    """What one measurement of one server gave."""

    def __init__(self, turn, values, faults, others):
        self.turn = turn
        self.values = values
        self.faults = faults
        self.others = others
        self.tries = 1


class Others:
    """What others took of the processors' time during a measurement, in percent of it."""

    def __init__(self, options, case, foreign, stolen):
        self.foreign = foreign  # other processes
        self.stolen = stolen  # a hypervisor, in the worst of the runs that count
        stolen_max = options.stolen_max * (1 if case.shows_tails else STOLEN_FROM_RATES)
        # How much too much it was.
        self.excess = max(foreign / options.foreign_max, stolen / stolen_max)

    @property
    def disturbed(self):
        """Whether it was too much."""
        return self.excess > 1

    def __str__(self):
        return f"others {self.foreign:.0f} %, stolen {self.stolen:.2f} %"


class Outcome:
    """All samples of a case."""

    def __init__(self, case):
        self.case = case
        self.samples = {}  # by name of the server
        self.errors = {}  # likewise, why there are no more samples

    def all_samples(self):
        """Every sample of every server."""
        return [sample for samples in self.samples.values() for sample in samples]

    @property
    def repeated(self):
        """Measurements that were made again."""
        return sum(sample.tries - 1 for sample in self.all_samples())

    @property
    def disturbed(self):
        """Measurements that count although others were in the way each time."""
        return sum(sample.others.disturbed for sample in self.all_samples())

    def stolen(self, name):
        """What a hypervisor took from a server's measurements, in percent."""
        return [sample.others.stolen for sample in self.samples.get(name, [])]

    def faults(self, name):
        """Wrong replies of a server by kind, all rounds together."""
        total = {}
        for sample in self.samples.get(name, []):
            for kind, count in sample.faults.items():
                total[kind] = total.get(kind, 0) + count
        return total

    def series(self, metric, name, than=None):
        """The values of a metric round by round, or their ratios to another server's of the same round."""
        mine = self._by_turn(metric, name)
        if than is None:
            return list(mine.values())
        theirs = self._by_turn(metric, than)
        return [mine[turn] / theirs[turn] for turn in mine if theirs.get(turn)]

    def _by_turn(self, metric, name):
        samples = self.samples.get(name, [])
        return {sample.turn: sample.values[metric] for sample in samples if metric in sample.values}


class Bench:
    """What a case measures with."""

    def __init__(self, options, placement, servers):
        self.options = options
        self.placement = placement
        self.servers = servers
        self.seconds = options.seconds
        self.load = load.Load(options, placement)
        self._reply_bytes = {}
        self._starts = 0
        self._rates = {}  # by pid: half of what the server can do
        self._warm = set()  # pids
        self._faults = {}
        self._stolen = []  # during each run

    def start(self, server):
        """Starts a server; returns how long that took."""
        self._starts += 1
        return server.start(os.path.join(self.options.folder, server.name, f"{self._starts:03}"))

    def run(self, server, arguments, seconds=None):
        """A measured run; its wrong replies are the sample's."""
        self._fit(server, arguments)
        result = self.load.run(server, arguments, seconds or self.seconds, self.warm_up(server))
        return self.count(result)

    def warm_up(self, server):
        """How long a server has to be loaded before it is measured."""
        warm_up = SHORT_WARM_UP if server.pid in self._warm else server.warm_up
        self._warm.add(server.pid)
        return min(warm_up, self.options.warm_up_max)

    def count(self, result, which=""):
        """Takes note of a run's wrong replies, and of what was stolen from it."""
        self._stolen.append(result.stolen_percent)
        for kind, count in result.faults.items():
            self._faults[which + kind] = self._faults.get(which + kind, 0) + count
        return result

    def half_rate(self, server, arguments):
        """Half of the requests a second that the server answers when nothing else goes on, measured once a process; but no
        more than the generator sends on time."""
        if server.pid not in self._rates:
            most = self.run(server, (*arguments, "--mode", "closed", "--depth", "16")).rate
            self._rates[server.pid] = min(most / 2, OPEN_LOOP_MAX)
        return self._rates[server.pid]

    def _fit(self, server, arguments):
        if isinstance(server, Null):
            server.fit(self._bytes_of(arguments), os.path.join(self.options.folder, server.name, "fitted"))

    def _bytes_of(self, arguments):
        """How long our replies to these requests are: those of the null server are as long."""
        pairs = zip(arguments[::2], arguments[1::2])
        kind = tuple(word for pair in pairs if pair[0] not in _PACE for word in pair)
        ours = self.servers.get("waypost")
        if kind not in self._reply_bytes and ours and ours.proc:
            ours.resume()
            try:
                self._reply_bytes[kind] = self.load.run(ours, (*kind, "--mode", "closed"), 0.3, 0.1).reply_bytes
            finally:
                ours.pause()
        return self._reply_bytes.get(kind, 1024)

    def sample(self, case, server, turn):
        """One measurement, repeated a few times while others are in the way; the least disturbed counts."""
        best = None
        for number in range(TRIES):
            if best:
                time.sleep(PAUSE)
            self._faults, self._stolen = {}, []
            guard = machine.Guard(self._pids)
            server.resume()
            try:
                values = case.measure(self, server, turn)
            finally:
                if case.fresh:
                    server.stop()
                server.pause()
            foreign, stolen = guard.percents()
            others = Others(self.options, case, foreign, max(self._stolen, default=stolen))
            sample = Sample(turn, values, self._faults, others)
            if best is None or others.excess < best.others.excess:
                best = sample
            if not best.others.disturbed:
                break
        best.tries = number + 1
        return best

    def _pids(self):
        return [server.pid for server in self.servers.values() if server.proc]


def run_case(bench, case, rounds, report):
    """Runs a case: all its servers in turns, so many rounds."""
    outcome = Outcome(case)
    alive = [server for server in bench.servers.values() if server.name in case.servers]

    @contextlib.contextmanager
    def failing(server):
        try:
            yield
        except (Failure, OSError, ValueError, subprocess.SubprocessError) as error:
            outcome.errors[server.name] = " ".join(str(error).split())
            report.note(f"case {case.number}, {server.title}: {error}")
            server.stop()
            alive.remove(server)

    try:
        for server in [] if case.fresh else list(alive):
            with failing(server):
                bench.start(server)
                server.pause()
        for turn in range(min(rounds, case.rounds_max)):
            for server in list(alive):
                with failing(server):
                    sample = bench.sample(case, server, turn)
                    outcome.samples.setdefault(server.name, []).append(sample)
                    values = ", ".join(f"{key} {value:.4g}" for key, value in sample.values.items())
                    report.note(f"case {case.number}, round {turn + 1}, {server.title}: {values}; "
                                f"{sample.others}, try {sample.tries}"
                                + (f"; faults {sample.faults}" if sample.faults else ""))
    finally:
        for server in bench.servers.values():
            server.stop()
    return outcome
