"""A Java producer and a push consumer: topics that make themselves, that are made, that are ordered."""

from .. import wire
from ..checks import check, expect, wait_for
from ..job import Scenario

MESSAGES = 1000


class Java(Scenario):
    """1000 messages a topic, all of them consumed."""

    name = "java"

    def prepare(self):
        self.job.pair.need()

    @check("a topic that nobody made does not exist (17)", {"105-17-to-1": "17"})
    def unknown(self):
        code = wire.ask(self.job.ns.address, wire.ROUTE, {"topic": self.job.topic()}).code
        expect(code == wire.NO_TOPIC, "code 17", f"code {code}")

    @check("an auto-created topic: 1000 sent over 4 queues, 1000 consumed",
           {"105-no-template": "No route info", "105-nowhere": "sent.*errors=[1-9]"})
    def auto(self):
        topic, group = self.job.topic("auto"), self.job.unique("g")
        queues = self._send(topic, "a")
        expect(len(queues) == 4, "4 queues used", queues)
        found = wire.queues_of(wire.route(self.job.ns.address, topic), self.job.pair.name)
        expect(found and found["perm"] == 6, "perm 6 in the route", found)
        self._consume(topic, group, "a")

    @check("a topic made by mqadmin with 8 queues: 1000 sent over 8 queues, 1000 consumed",
           {"105-half-the-queues": "8 queues", "105-nowhere": "sent.*errors=[1-9]"})
    def made(self):
        topic, group = self.job.new_topic(8), self.job.unique("g")

        def eight():
            found = wire.queues_of(wire.route(self.job.ns.address, topic), self.job.pair.name)
            return found and (found["readQueueNums"], found["writeQueueNums"]) == (8, 8), found
        wait_for(eight, self.job.limit(10, 1), "8 queues in the route")
        queues = self._send(topic, "m")
        expect(len(queues) == 8, "8 queues used", queues)
        self._consume(topic, group, "m")

    @check("an ordered topic: 1000 sent by key, 1000 consumed with every key in its order",
           {"105-without-orderTopicConf": "orderTopicConf"})
    def ordered(self):
        topic, group = self.job.new_topic(4, ordered=True), self.job.unique("g")
        pattern = f"{self.job.pair.name}:4"

        def ordered():
            found = wire.route(self.job.ns.address, topic)
            return (found or {}).get("orderTopicConf") == pattern, found
        wait_for(ordered, self.job.limit(10, 1), f"orderTopicConf {pattern} in the route")
        self._send(topic, "o", ordered=True)
        found = self._consume(topic, group, "o", ordered=True)
        expect(found["disorder"] == 0, "no message before an earlier one of its key", found)

    def _send(self, topic, prefix, ordered=False):
        return self.job.driver.send(self.job.ns.address, topic, MESSAGES, prefix, self.job.limit(60), ordered)

    def _consume(self, topic, group, prefix, ordered=False):
        return self.job.driver.consume(self.job.ns.address, topic, group, prefix, MESSAGES, self.job.limit(60), ordered)
