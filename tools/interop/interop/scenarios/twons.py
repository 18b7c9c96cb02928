"""Two servers side by side, restarted one after the other while messages flow: none may be lost."""

import time

from .. import wire
from ..checks import Failure, check, expect, wait_for
from ..job import Scenario
from ..peers import Broker, Driver, NameServer, numbers

BACK_LIMIT = 40  # seconds; a broker registers every 10 s
GAP_LIMIT = 5000  # milliseconds without an acknowledged message, for a loaded machine


class TwoServers(Scenario):
    """The broker and the clients know both servers; a message is sent about every 10 ms."""

    name = "twons"

    def prepare(self):
        job = self.job
        self.servers = [NameServer(job, name) for name in ("ns-a", "ns-b")]
        for server in self.servers:
            server.begin()
        self.driver = Driver(job)
        for server in self.servers:
            server.wait_up()
        self.addresses = ";".join(server.address for server in self.servers)
        self.broker = Broker(job, job.unique("c"), job.unique("b"), 0, self.addresses)
        self.broker.start()
        self._flow()

    def _flow(self):
        """Makes a topic and starts sending to it and collecting from it."""
        self.topic, group = self.job.topic("flow"), self.job.unique("g")
        text = self.driver.admin(self.addresses, "updateTopic", "-c", self.broker.settings["brokerClusterName"],
                                 "-t", self.topic, "-r", 4, "-w", 4)
        if "success" not in text:
            raise Failure("a topic to be made", text)
        for server in self.servers:
            self._routed(server, BACK_LIMIT)
        self.driver.ask("flow", self.addresses, self.topic, "f", 10)
        self.driver.ask("collect", self.addresses, self.topic, group, "f")
        wait_for(lambda: numbers(self.driver.ask("flowing"))["acknowledged"] > 50, 30, "messages to flow", every=0.2)

    @check("the first is stopped and started: the broker is back in it", {"103-swallowed": "routed by ns-a"})
    def first(self):
        self._restart(0, kill=False)

    @check("the second is killed and started: the broker is back in it", {"103-swallowed": "routed by ns-b"})
    def second(self):
        self._restart(1, kill=True)

    @check("a producer that starts while one of them is down sends", {"105-nowhere": "sent.*errors=[1-9]"})
    def late(self):
        down = self.servers[0]
        down.kill()
        try:
            self.driver.send(self.addresses, self.topic, 100, "late", self.job.limit(30))
        finally:
            down.start()

    @check("no acknowledged message was lost and no send failed", {"105-nowhere": "no failed send"}, once=True)
    def nothing_lost(self):
        before = 0
        if self.job.spoil_on:  # what the spoils of the checks before have done does not count
            before = numbers(self.driver.ask("flowing"))["errors"]
            time.sleep(4)  # the clients ask for their routes every second
        text = self.driver.ask("flowstop")
        found = numbers(text)
        expect(found["acknowledged"] > 100 and found["errors"] == before, "no failed send", text, self.driver.proc.log)
        expect(found["gap"] < GAP_LIMIT, f"no pause of {GAP_LIMIT} ms", text, self.driver.proc.log)
        text = self.driver.ask("collected", 60, limit=120)
        expect(numbers(text)["missing"] == 0, "every acknowledged message consumed", text, self.driver.proc.log)

    def _restart(self, number, kill):
        server = self.servers[number]
        if kill:
            server.kill()
        else:
            server.stop()
        server.start()
        self._routed(server, self.job.limit(BACK_LIMIT, 12))

    def _routed(self, server, limit):
        name = "ns-" + "ab"[self.servers.index(server)]
        wait_for(lambda: wire.members_of(wire.route(server.address, self.topic), self.broker.name), limit,
                 f"{self.topic} routed by {name}", log=self.broker.log)
