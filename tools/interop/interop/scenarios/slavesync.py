"""A slave copies the master's topic table, which it can only with `masterAddr` in the answer to its registration."""

import os

from ..checks import Failure, check, wait_for
from ..job import Scenario

ROUND_4, ROUND_5 = 10, 60  # how often a slave asks its master, in seconds


class SlaveSync(Scenario):
    """Runs last: the topic is made early and has had the time of the other scenarios to arrive."""

    name = "slavesync"

    @check("a topic made on the master appears in the slave's own table",
           {"103-without-masterAddr": "in the slave's topic table"})
    def table(self):
        pair = self.job.pair
        if self.job.spoil_on:
            pair.slave.kill()
        pair.need()
        topic, self.job.sync_topic = self.job.sync_topic, None
        if topic is None or self.job.spoil_on:
            topic = self.job.topic("sync")
            text = self.job.admin("updateTopic", "-b", pair.master.address, "-t", topic, "-r", 2, "-w", 2)
            if "success" not in text:
                raise Failure("updateTopic -b to make a topic", text)
        path = os.path.join(pair.slave.store, "config", "topics.json")

        def copied():
            with open(path) as table:
                return topic in table.read(), f"{path} without it"
        once = ROUND_5 if self.job.is_5 else ROUND_4
        wait_for(copied, self.job.limit(2 * once + 30, once + 15), f"{topic} in the slave's topic table", every=0.5,
                 log=pair.slave.log)
