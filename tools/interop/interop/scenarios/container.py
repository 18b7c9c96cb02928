"""A broker container: several brokers in one process, over one connection to the server."""

from .. import wire
from ..checks import Failure, Skip, check, expect, wait_for
from ..job import Scenario
from ..peers import Broker, Container as Process, Driver, NameServer
from ..procs import connections

HEARTBEAT_TIMEOUT = 5  # seconds
AT_ONCE = 2            # seconds
MESSAGES = 1000


class Container(Scenario):
    """Two brokers of one cluster in one container."""

    name = "container"
    lines = ("5.5.0",)

    def prepare(self):
        job = self.job
        job.ns = NameServer(job)
        job.ns.begin()
        self.driver = Driver(job)
        job.ns.wait_up()
        self.cluster = job.unique("c")
        self.brokers = [Broker(job, self.cluster, job.unique("b"), 0, job.ns.address, enableSlaveActingMaster="true",
                               brokerNotActiveTimeoutMillis=HEARTBEAT_TIMEOUT * 1000) for _ in range(2)]
        self.container = Process(job, job.ns.address, self.brokers)
        self.container.start()

    @check("both brokers are routed, over one connection; 1000 messages spread over both, 1000 consumed",
           {"106-without-a-broker": "both brokers"})
    def routed(self):
        job, ns = self.job, self.job.ns
        self._wait_both(self.job.limit(30, 12))
        port = int(ns.address.rsplit(":", 1)[1])
        count = connections(self.container.proc.pid, port)
        expect(count == 1, "one connection of the container to the server", count)
        topic, group = job.topic(), job.unique("g")
        text = self.driver.admin(ns.address, "updateTopic", "-c", self.cluster, "-t", topic, "-r", 4, "-w", 4)
        expect(text.count("success") == 2, "the topic made at both brokers", text)
        queues = self.driver.send(ns.address, topic, MESSAGES, "c")
        expect(len(queues) == 8, "4 queues of each broker used", queues)
        self.driver.consume(ns.address, topic, group, "c", MESSAGES)

    @check("killed with -9, all of its brokers leave at once", {"connections-kept-open": "at once"})
    def killed(self):
        if not self.container.proc.running():
            self.container.start()
        self._wait_both(30)
        self.container.proc.kill()
        try:
            wait_for(lambda: (self._seen() == [{}, {}], self._seen()), AT_ONCE,
                     f"all brokers of the container to leave at once ({AT_ONCE} s)", log=self.job.ns.proc.log)
        except Failure as failure:
            if self.job.server.java and not self.job.spoil_on:
                raise Skip(f"expected of the original, which lets only one go at once: {failure.seen}") from None
            raise

    def _seen(self):
        return [wire.members(self.job.ns.address, broker.name) for broker in self.brokers]

    def _wait_both(self, limit):
        want = [{0: broker.address} for broker in self.brokers]
        wait_for(lambda: (self._seen() == want, self._seen()), limit, "both brokers in the cluster table",
                 log=self.container.proc.log)
