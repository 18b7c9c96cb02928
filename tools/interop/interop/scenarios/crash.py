"""A broker that dies, and brokers that only fall silent: stopped, or behind a network that swallows everything."""

import signal
import time

from .. import wire
from ..checks import Skip, check, expect, wait_for
from ..forwarder import Forwarder
from ..job import Scenario
from ..peers import Broker, NameServer

HEARTBEAT_TIMEOUT = 5  # seconds, told by a 5.x broker; a starved machine flaps with less
IDLE_TIMEOUT = 15      # seconds; what a 4.9 broker's silence takes to show, must exceed its 10 s between registrations
SCAN = 5               # seconds between two looks at the heartbeats
AT_ONCE = 2            # seconds; far below every timeout
SLACK = 8              # seconds, for a loaded machine


class Crash(Scenario):
    """One master; a 4.9 broker has no heartbeat, so there the idle time of the connection decides."""

    name = "crash"

    def prepare(self):
        job = self.job
        job.ns = NameServer(job, serverChannelMaxIdleTimeSeconds=120 if job.is_5 else IDLE_TIMEOUT).start()
        settings = {"enableSlaveActingMaster": "true", "brokerNotActiveTimeoutMillis": HEARTBEAT_TIMEOUT * 1000}
        self.cluster, name = job.unique("c"), job.unique("b")
        self.broker = Broker(job, self.cluster, name, 0, job.ns.address, **(settings if job.is_5 else {}))
        self.hole = None
        self.broker.start()

    @check("a broker killed with -9 leaves the cluster table and the routes at once", {"connections-kept-open": "at once"})
    def killed(self):
        if not self.broker.running():
            self.broker.start()
        self._routed(30)
        self.broker.kill()
        self._gone(AT_ONCE, f"at once ({AT_ONCE} s)")

    @check("started again on its port it is routed again", {"103-swallowed": "routed"})
    def back(self):
        self.broker.kill()
        if self.hole is None:  # from here on the broker reaches the server through a network that can be cut
            self.hole = Forwarder(self.job.ns.address)
            self.broker.write(namesrvAddr=self.hole.address)
        self.broker.start(registered=False)
        self._routed(self.job.limit(30, 12))

    @check("a stopped broker (SIGSTOP) leaves at its timeout, not before, and comes back when it goes on",
           {"stale-answers": "timeout"})
    def stopped(self):
        self._routed(30)
        self.broker.proc.signal(signal.SIGSTOP)
        try:
            self._silent()
        finally:
            self.broker.proc.signal(signal.SIGCONT)
        if not self.job.spoil_on:
            self._routed(30)

    @check("a broker in a black hole (sockets open, nothing passes) leaves at its timeout, not before, and comes back",
           {"stale-answers": "timeout"})
    def black_holed(self):
        self._routed(30)
        self.hole.black_hole(True)
        try:
            self._silent()
        finally:
            self.hole.black_hole(False)
        if not self.job.spoil_on:
            self._routed(30)

    def _silent(self):
        if self.job.is_5 and not self.job.server.is_5:
            raise Skip("a 4.9 server does not take the timeout of a 5.x broker: it would last 120 s")
        begin = time.monotonic()
        timeout = HEARTBEAT_TIMEOUT + SCAN if self.job.is_5 else IDLE_TIMEOUT
        least = HEARTBEAT_TIMEOUT - 2 if self.job.is_5 else IDLE_TIMEOUT - 11  # since its last sign of life
        self._gone(timeout + SLACK, f"at its timeout (at most {timeout} s and {SLACK} s for a slow machine)")
        took = time.monotonic() - begin
        expect(took >= least, f"not to leave before its timeout ({least} s)", f"gone after {took:.1f} s")

    def _seen(self):
        address = self.job.ns.address
        return (wire.members(address, self.broker.name),
                wire.members_of(wire.route(address, self.cluster), self.broker.name))

    def _routed(self, limit):
        want = {0: self.broker.address}
        wait_for(lambda: (self._seen() == (want, want), self._seen()), limit, "the broker in the cluster table and routed",
                 log=self.broker.log)

    def _gone(self, limit, how):
        wait_for(lambda: (self._seen() == ({}, {}), self._seen()), limit, f"the broker to leave {how}",
                 log=self.job.ns.proc.log)
