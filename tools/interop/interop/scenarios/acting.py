"""A slave acts as master while its master is away, and gives the place back."""

import os
import queue
import re
import socket
import threading

from .. import wire
from ..checks import check, expect, wait_for
from ..job import Scenario
from ..peers import Broker, Driver, NameServer
from ..procs import HOST, connections, port_block

HEARTBEAT_TIMEOUT = 6  # seconds; a starved machine flaps with less
AT_ONCE = 3            # seconds; below the timeout: the closed connection is what shows
MESSAGES = 200
LISTENER_ID = 7


class Listener:
    """A third member of the broker group, played by the suite, to read the notices (905) that the server sends.

    It registers like a broker of the highest id, with an address where the server can reach it, and sends heartbeats.
    """

    def __init__(self, server, cluster, broker):
        self._names = {"clusterName": cluster, "brokerName": broker}
        self._inbox = queue.Queue()
        self._listener = socket.create_server((HOST, port_block(1)))
        self.address = "%s:%d" % self._listener.getsockname()
        self._ending = threading.Event()
        self._sock = socket.create_connection(wire.split(server), timeout=10)
        body = (b'{"filterServerList":[],"topicConfigSerializeWrapper":{"dataVersion":{"counter":1,"stateVersion":0,'
                b'"timestamp":1},"topicConfigTable":{}}}')
        fields = {**self._names, "brokerAddr": self.address, "brokerId": LISTENER_ID, "haServerAddr": HOST + ":1",
                  "enableActingMaster": "true", "heartbeatTimeoutMillis": 20000, "compressed": "false", "bodyCrc32": 0}
        self._sock.sendall(wire.request(wire.REGISTER, fields, body).encode())
        answer = wire.decode(wire.read_raw(self._sock))
        expect(answer.code == wire.SUCCESS, "the third member to be registered", answer.header)
        threading.Thread(target=self._beat, daemon=True).start()
        threading.Thread(target=self._accept, daemon=True).start()

    def notices(self):
        """The header fields of the notices that came since the last call."""
        found = []
        while not self._inbox.empty():
            found.append(self._inbox.get())
        return found

    def close(self):
        """Lets the member go."""
        self._ending.set()
        self._listener.close()
        self._sock.close()

    def _beat(self):
        fields = {**self._names, "brokerAddr": self.address}
        while not self._ending.wait(1):
            try:
                self._sock.sendall(wire.request(wire.HEARTBEAT, fields, one_way=True).encode())
            except OSError:
                return

    def _accept(self):
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._read, args=(sock,), daemon=True).start()

    def _read(self, sock):
        try:
            while raw := wire.read_raw(sock):
                frame = wire.decode(raw)
                if frame and frame.code == wire.MIN_ID_CHANGED:
                    self._inbox.put(frame.ext)
        except (OSError, ConnectionError):
            pass


class Acting(Scenario):
    """The broker sends its heartbeats as 322 and asks for its group through 105 (compatible with old servers)."""

    name = "acting"
    lines = ("5.5.0",)
    wants_5 = True
    compatible = "true"

    def prepare(self):
        job = self.job
        job.ns = NameServer(job, supportActingMaster="true", notifyMinBrokerIdChanged="true").start()
        self.driver = Driver(job)
        self.cluster, self.name_ = job.unique("c"), job.unique("b")
        settings = {
            "enableSlaveActingMaster": "true", "enableRemoteEscape": "true",
            "slaveReadEnable": "true",  # without it the slave sends every consumer back to the master
            "brokerNotActiveTimeoutMillis": HEARTBEAT_TIMEOUT * 1000, "compatibleWithOldNameSrv": self.compatible,
            "syncBrokerMemberGroupPeriod": 600000,  # or the slave would find out by itself and hide a missing notice
        }
        self.master = Broker(job, self.cluster, self.name_, 0, job.ns.address, **settings)
        self.slave = Broker(job, self.cluster, self.name_, 1, job.ns.address, role="SLAVE", **settings)
        self.master.start()
        self.topic = job.topic()
        text = self.driver.admin(job.ns.address, "updateTopic", "-c", self.cluster, "-t", self.topic, "-r", 4, "-w", 4)
        expect("success" in text, "a topic to be made", text)
        self._copy_topics()
        self.slave.start()
        wait_for(lambda: connections(self.slave.proc.pid, self.master.ha_port) > 0, 40, "the slave to replicate",
                 log=self.slave.log)
        self.driver.send(job.ns.address, self.topic, MESSAGES, "k")
        wait_for(lambda: self._offset(self.master) == self._offset(self.slave) > 0, 40, "the slave to have all messages",
                 every=0.2, log=self.slave.log)
        self.listener = Listener(job.ns.address, self.cluster, self.name_)
        wait_for(lambda: self._members() == self._all(), 20, "all three members registered")

    def _copy_topics(self):
        """Gives the slave the master's topic table: it would fetch its own only a minute after its start."""
        source = os.path.join(self.master.store, "config", "topics.json")
        target = os.path.join(self.slave.store, "config", "topics.json")

        def written():
            with open(source) as table:
                text = table.read()
            return self.topic in text and text
        text = wait_for(written, 20, f"{self.topic} in {source}")
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "w") as table:
            table.write(text)

    @check("when the master dies the slave stands in its place in the routes, readable only, and nowhere else",
           {"105-no-acting-master": "as id 0"}, once=True, also=("no-notices",))
    def takeover(self):
        self.listener.notices()
        self.master.kill()
        self._route({0: self.slave.address, LISTENER_ID: self.listener.address}, 4, AT_ONCE,
                    "the slave as id 0 with perm 4 in the route")
        raw = {1: self.slave.address, LISTENER_ID: self.listener.address}
        expect(self._members() == raw, f"the raw ids {raw} in the cluster table", self._members())
        found = wire.loads(wire.ask(self.job.ns.address, wire.MEMBERS,
                                    {"clusterName": self.cluster, "brokerName": self.name_}).body)
        found = {int(key): value for key, value in found["brokerMemberGroup"]["brokerAddrs"].items()}
        expect(found == raw, f"the raw ids {raw} in the member group", found)

    @check("the members are told that the master went (905), and the slave becomes active",
           {"no-notices": "notice"}, once=True)
    def told_gone(self):
        want = {"minBrokerId": "1", "minBrokerAddr": self.slave.address, "offlineBrokerAddr": self.master.address}
        self._notice(want)
        self._active(True)

    @check("a consumer reads all 200 messages from the slave", {"105-nowhere": "consumed"})
    def reads(self):
        self.driver.consume(self.job.ns.address, self.topic, self.job.unique("g"), "k", MESSAGES, self.job.limit(90, 20))

    @check("when the master comes back it has its place and the write permission again",
           {"105-perm-6-to-4": "the master as id 0"}, once=True, also=("no-notices",))
    def handback(self):
        self.listener.notices()
        self.master.start(registered=False)
        self._route(self._all(), 6, self.job.limit(30, 15), "the master as id 0 with perm 6 in the route")

    @check("the members are told that the master is back (905), and the slave is quiet again",
           {"no-notices": "notice"}, once=True)
    def told_back(self):
        want = {"minBrokerId": "0", "minBrokerAddr": self.master.address, "haBrokerAddr": self.master.ha_address}
        self._notice(want)
        self._active(False)
        self.listener.close()

    def _all(self):
        return {0: self.master.address, 1: self.slave.address, LISTENER_ID: self.listener.address}

    def _members(self):
        return wire.members(self.job.ns.address, self.name_)

    def _route(self, want, perm, limit, expected):
        def seen():
            found = wire.route(self.job.ns.address, self.topic)
            data = wire.queues_of(found, self.name_)
            return wire.members_of(found, self.name_) == want and data and data["perm"] == perm, found
        wait_for(seen, limit, expected, log=self.job.ns.proc.log)

    def _notice(self, want):
        came = []

        def seen():
            came.extend(self.listener.notices())
            return want in came, came
        wait_for(seen, self.job.limit(10, 1), f"a notice {want}", log=self.job.ns.proc.log)

    def _active(self, want):
        def seen():
            text = self.driver.admin(self.job.ns.address, "brokerStatus", "-b", self.slave.address)
            found = re.search(r"brokerActive\s*: (\w+)", text)
            return found and found[1] == str(want).lower(), found and found[0]
        wait_for(seen, self.job.limit(20), f"brokerActive {want} of the slave", every=0.3, log=self.slave.log)

    def _offset(self, broker):
        text = self.driver.admin(self.job.ns.address, "brokerStatus", "-b", broker.address)
        found = re.search(r"commitLogMaxOffset\s*: (\d+)", text)
        return int(found[1]) if found else -1


class Acting904(Acting):
    """The broker sends its heartbeats as 904 and asks for its group with 901."""

    name = "acting904"
    compatible = "false"
