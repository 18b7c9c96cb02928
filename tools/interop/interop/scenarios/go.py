"""The Go client: the same as the Java clients, and its own administration."""

from .. import wire
from ..checks import check, expect, wait_for
from ..job import Scenario
from ..peers import Go as Client, numbers

MESSAGES = 1000


class Go(Scenario):
    """Every call is a short process of the Go client."""

    name = "go"

    def prepare(self):
        self.job.pair.need_master()

    @check("a topic made by the Go client: 1000 sent, 1000 consumed", {"105-nowhere": "send to work.*errors=[1-9]"})
    def made(self):
        topic = self._create()
        self._send_and_consume(topic, "m")

    @check("an auto-created topic: 1000 sent, 1000 consumed", {"105-no-template": "route info not found"})
    def auto(self):
        self._send_and_consume(self.job.topic("auto"), "a")

    @check("an ordered topic: 1000 sent by key, 1000 consumed with every key in its order",
           {"105-without-orderTopicConf": "orderTopicConf", "105-nowhere": "send to work.*errors=[1-9]"})
    def ordered(self):
        topic = self.job.new_topic(4, ordered=True)
        found = wire.route(self.job.ns.address, topic)
        expect("orderTopicConf" in found, "orderTopicConf in the route", found)
        text = self._send_and_consume(topic, "o", ordered=True)
        expect(numbers(text)["disorder"] == 0, "no message before an earlier one of its key", text)

    @check("the Go client lists a topic and deletes it", {"206-without-topics": "in the list", "216-swallowed": "deleted"})
    def list_and_delete(self):
        topic = self._create()
        names = self._call("list").split()
        expect(topic in names, f"{topic} in the list of topics", names)
        self._call("delete", t=topic, b=self.job.pair.master.address)
        wait_for(lambda: wire.route(self.job.ns.address, topic) is None, self.job.limit(5, 2),
                 "the route of a deleted topic to be gone")

    def _call(self, command, limit=60, **flags):
        return Client.call(self.job, command, self.job.ns.address, self.job.limit(limit), **flags)

    def _create(self):
        topic = self.job.topic("go")
        self._call("create", t=topic, b=self.job.pair.master.address)
        wait_for(lambda: wire.route(self.job.ns.address, topic), self.job.limit(10, 2), f"a route of {topic}")
        return topic

    def _send_and_consume(self, topic, prefix, ordered=False):
        group = self.job.unique("g")
        self._call("send", t=topic, g=group + "p", prefix=prefix, count=MESSAGES, ordered=ordered)
        return self._call("consume", t=topic, g=group, prefix=prefix, count=MESSAGES, ordered=ordered)
