"""Drives tools/loadgen: a measured run, or a run beside one."""

import contextlib
import functools
import itertools
import json
import os
import subprocess
import time

from interop.checks import Failure, wait_for
from interop.procs import Proc

SETUP_LIMIT = 600  # seconds for brokers to register
STOLEN_MS_MIN = 30  # three ticks of /proc/stat
END_LIMIT = 300  # seconds that a run may take beyond its length: this process may be held up as well

_numbers = itertools.count(1)


class Result:
    """One phase of a run, as the generator reports it."""

    def __init__(self, report):
        self.phase = report["phases"][0]
        self.faults = self.phase["faults"]
        self.measured = self.phase["requests"][0]

    @property
    def rate(self):
        """Replies a second."""
        return self.measured["requestsPerSecond"]

    @property
    def replies(self):
        """Replies in the measured time."""
        return self.measured["replies"]

    @property
    def reply_bytes(self):
        """Length of a reply."""
        return round(self._answered()["bytesReceivedPerSecond"] / self.rate)

    @property
    def server_ns(self):
        """The server's CPU time for a reply, in ns."""
        self._answered()
        return self._server["cpuNanosecondsPerRequest"]

    @property
    def stolen_percent(self):
        """The share of the processors' time that a hypervisor took meanwhile. One or two ticks of 10 ms say nothing."""
        if (self.phase["stolenMilliseconds"] or 0) < STOLEN_MS_MIN:
            return 0.0
        return 100.0 * self.phase["stolenShare"]

    @property
    def resident_kib(self):
        """The server's resident memory at the end."""
        return self._server["residentKib"]

    @property
    def _server(self):
        if not self.phase["server"]:
            raise Failure("the server to live", f"it ended; faults {self.faults}")
        return self.phase["server"]

    def latency(self, percentile):
        """Latency in µs."""
        return self._summary("latencyMicroseconds", percentile)

    def lateness(self, percentile):
        """How late the generator was, in µs."""
        return self._summary("latenessMicroseconds", percentile)

    def _summary(self, key, percentile):
        summary = self._answered()[key]
        if not summary:
            raise Failure(f"figures of {key}", f"none; faults {self.faults}")
        return summary[percentile]

    def _answered(self):
        if not self.replies:
            raise Failure("replies", f"none; faults {self.faults}")
        return self.measured


class Run:
    """A generator at work."""

    def __init__(self, options, pin, server, arguments, seconds, warm_up):
        self.folder = os.path.join(options.folder, "load", f"{next(_numbers):04}")
        self._ready = os.path.join(self.folder, "ready")
        self._seconds = seconds + warm_up
        argv = [options.loadgen, "--target", server.address, *arguments, "--duration", f"{seconds:g}",
                "--warm-up", f"{warm_up:g}", "--report", "json", "--server-pid", str(server.pid),
                "--ready-file", self._ready]
        self.proc = Proc("load generator", pin(argv), self.folder)

    def wait_ready(self):
        """Waits until its brokers have registered."""
        def ready():
            running = self.proc.running()
            if os.path.exists(self._ready):  # also when the run is over: what went on beside it may have taken longer
                return True
            if not running:
                raise Failure("the load generator to run", self.proc.tail(), self.proc.log)
            return False
        wait_for(ready, SETUP_LIMIT, "the brokers to register", every=0.002, log=self.proc.log)

    def wait(self):
        """Waits for its end and returns what it measured."""
        try:
            self.wait_ready()
            self.proc.popen.wait(self._seconds + END_LIMIT)
        except subprocess.TimeoutExpired:
            raise Failure("the load generator to end", self.proc.tail(), self.proc.log) from None
        finally:
            self.proc.kill()
        if self.proc.popen.returncode not in (0, 1):  # 1: not all replies were right, which the report tells
            raise Failure("the load generator to run", self.proc.tail(), self.proc.log)
        return Result(json.loads(self.proc.output()))

    def kill(self):
        """Ends it at once; the kernel closes its connections."""
        self.proc.kill()


class Load:
    """Makes runs."""

    def __init__(self, options, placement):
        self._options = options
        self._placement = placement

    def begin(self, server, arguments, seconds, warm_up):
        """Starts a measured run."""
        pin = functools.partial(self._placement.pin, self._placement.load)
        return Run(self._options, pin, server, arguments, seconds, warm_up)

    def run(self, server, arguments, seconds, warm_up=None):
        """Makes a measured run."""
        return self.begin(server, arguments, seconds, server.warm_up if warm_up is None else warm_up).wait()

    @contextlib.contextmanager
    def beside(self, server, arguments, seconds, gives_way=False):
        """A run beside what is done within; its brokers have registered when that begins, and leave when it ends."""
        pin = functools.partial(self._placement.pin_beside, gives_way=gives_way)
        run = Run(self._options, pin, server, arguments, seconds, 0)
        try:
            run.wait_ready()
            yield run
        finally:
            run.kill()


def wait_first_request(seconds):
    """Waits for a moment after the warm-up of a run that is ready: its threads start 0.05 s later."""
    time.sleep(0.05 + seconds)
