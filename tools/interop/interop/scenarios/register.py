"""A master and a slave register, and the slave learns where its master is."""

from .. import wire
from ..checks import check, expect, wait_for
from ..job import Scenario
from ..peers import numbers
from ..procs import connections


class Register(Scenario):
    """Master, slave, cluster table, route, replication."""

    name = "register"

    @check("the master is in the cluster table and in the route of the topic named like its cluster",
           {"103-swallowed": "in the cluster table"})
    def master(self):
        pair, ns = self.job.pair, self.job.ns
        if self.job.spoil_on:
            pair.kill()  # it has to register anew
        pair.need_master(registered=False)
        wait_for(lambda: wire.members(ns.address, pair.name) == {0: pair.master.address}, self.job.limit(30, 12),
                 f"{pair.name} with {{0: {pair.master.address}}} in the cluster table")
        found = wire.cluster(ns.address)["clusterAddrTable"]
        expect(pair.name in found.get(pair.cluster, []), f"{pair.name} in the cluster {pair.cluster}", found)
        found = wire.route(ns.address, pair.cluster)
        expect(wire.members_of(found, pair.name) == {0: pair.master.address}, "the master in the route of its cluster", found)

    @check("a slave registers, learns the master's replication address and copies its messages",
           {"103-without-haServerAddr": "connection of the slave"})
    def slave(self):
        pair, driver, ns = self.job.pair, self.job.driver, self.job.ns
        if self.job.spoil_on:
            pair.slave.kill()
        pair.need()
        wait_for(lambda: connections(pair.slave.proc.pid, pair.master.ha_port) > 0, self.job.limit(40, 15),
                 f"a connection of the slave to the master's replication port {pair.master.ha_port}", log=pair.slave.log)
        self.job.sync_topic = self.job.new_topic(kind="sync")
        driver.send(ns.address, self.job.sync_topic, 20, "r")

        def offsets():
            found = [numbers(self.job.admin("brokerStatus", "-b", broker.address).replace(" ", "").replace(":", "="))
                     .get("commitLogMaxOffset", 0) for broker in (pair.master, pair.slave)]
            return found[0] == found[1] > 0, found
        wait_for(offsets, self.job.limit(40), "the same commitLogMaxOffset at master and slave", every=0.2, log=pair.slave.log)

    @check("both are in the cluster table", {"106-without-slaves": "both in the cluster table"})
    def both(self):
        pair = self.job.pair
        both = {0: pair.master.address, 1: pair.slave.address}

        def seen():
            found = wire.members(self.job.ns.address, pair.name)
            return found == both, found
        wait_for(seen, self.job.limit(15, 1), "both in the cluster table")

    @check("both are in the route of the topic named like the cluster", {"105-without-slaves": "both in the route"})
    def route(self):
        pair = self.job.pair
        both = {0: pair.master.address, 1: pair.slave.address}

        def seen():
            found = wire.members_of(wire.route(self.job.ns.address, pair.cluster), pair.name)
            return found == both, found
        wait_for(seen, self.job.limit(15, 1), "both in the route")
