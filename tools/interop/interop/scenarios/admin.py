"""mqadmin: what each command prints, and what it does to the answers of the server."""

import re
import time

from .. import wire
from ..checks import Failure, check, expect, wait_for
from ..job import Scenario

MESSAGES = 60
REGISTER_ROUND = 11  # a broker's registrations are 10 s apart
STATS_FRESH = 30     # seconds

CONFIG_KEYS_4 = set("""
    clusterTest configStorePath kvConfigPath listenPort orderMessageEnable productEnvName rocketmqHome
    serverAsyncSemaphoreValue serverCallbackExecutorThreads serverChannelMaxIdleTimeSeconds serverOnewaySemaphoreValue
    serverPooledByteBufAllocatorEnable serverSelectorThreads serverSocketBacklog serverSocketRcvBufSize
    serverSocketSndBufSize serverWorkerThreads useEpollNativeSelector writeBufferHighWaterMark writeBufferLowWaterMark
""".split())
CONFIG_KEYS_5 = CONFIG_KEYS_4 | set("""
    bindAddress clientRequestThreadPoolNums clientRequestThreadPoolQueueCapacity configBlackList defaultThreadPoolNums
    defaultThreadPoolQueueCapacity deleteTopicWithBrokerRegistration enableAllTopicList enableControllerInNamesrv
    enableShutdownGracefully enableTopicList needWaitForService notifyMinBrokerIdChanged returnOrderTopicConfigToBroker
    scanNotActiveBrokerInterval serverNettyWorkerGroupEnable shutdownWaitTimeSeconds supportActingMaster
    unRegisterBrokerQueueCapacity waitSecondsForService
""".split())


class Admin(Scenario):
    """One check a command. Each makes what it needs, so that each can be run alone."""

    name = "admin"

    def prepare(self):
        self.job.pair.need()
        self._make_stats()

    @check("clusterList", {"106-without-slaves": "a line for", "106-without-a-broker": "a line for"})
    def cluster_list(self):
        pair = self.job.pair
        text = self.job.admin("clusterList")
        expect("#Cluster Name" in text and "#Broker Name" in text and "#BID" in text, "the head line", text)
        version = "V" + self.job.line.replace(".", "_")
        rows = [line.split() for line in text.splitlines()]
        for broker in (pair.master, pair.slave):
            want = [pair.cluster, pair.name, str(broker.settings["brokerId"]), broker.address, version]
            found = [row for row in rows if row[:5] == want]
            expect(found, f"a line for {' '.join(want)}", text)
            if self.job.is_5:  # the last column is #ACTIVATED
                master = broker is pair.master
                expect(found[0][-1] == str(master).lower(), f"#ACTIVATED {master} for {broker.address}", text)

    @check("topicList, and with -c", {"206-without-topics": "in the list"})
    def topic_list(self):
        pair, topic = self.job.pair, self.stats_topic
        names = self.job.admin("topicList").split()
        for name in ("TBW102", "SELF_TEST_TOPIC", pair.cluster, pair.name, topic):
            expect(name in names, f"{name} in the list of topics", names)
        text = self.job.admin("topicList", "-c")
        rows = [line.split() for line in text.splitlines()]
        expect([pair.cluster, topic, self.stats_group] in rows, "a line with cluster, topic and group", text)

    @check("topicRoute", {"105-without-slaves": "both brokers", "105-half-the-queues": "4 queues"})
    def topic_route(self):
        pair, topic = self.job.pair, self.stats_topic
        text = self.job.admin("topicRoute", "-t", topic)
        found = wire.loads(text[text.index("{"):])
        both = {0: pair.master.address, 1: pair.slave.address}
        expect(wire.members_of(found, pair.name) == both, f"both brokers, {both}", text)
        queues = wire.queues_of(found, pair.name)
        expect(queues and (queues["readQueueNums"], queues["writeQueueNums"], queues["perm"]) == (4, 4, 6),
               "4 queues with perm 6", text)

    @check("topicStatus", {"105-nowhere": "#Broker Name", "105-not-found": "#Broker Name"})
    def topic_status(self):
        text = self.job.admin("topicStatus", "-t", self.stats_topic)
        expect("#Broker Name" in text and "#QID" in text and "#Max Offset" in text, "the head line with #Broker Name", text)
        rows = [line.split() for line in text.splitlines() if line.startswith(self.job.pair.name)]
        expect([row[1] for row in rows] == ["0", "1", "2", "3"], "a line for each of the queues 0 to 3", text)
        expect(sum(int(row[3]) for row in rows) == MESSAGES, f"{MESSAGES} as the sum of the maximal offsets", text)

    @check("updateTopic", {"105-half-the-queues": "6 queues", "106-without-a-broker": "updateTopic to say"})
    def update_topic(self):
        pair, topic = self.job.pair, self.job.topic()
        text = self.job.admin("updateTopic", "-c", pair.cluster, "-t", topic, "-r", 6, "-w", 6)
        expect(f"create topic to {pair.master.address} success." in text and f"topicName={topic}" in text,
               "updateTopic to say that it made the topic", text)
        self._queues(topic, 6, 6)
        self.job.admin("updateTopic", "-c", pair.cluster, "-t", topic, "-r", 7, "-w", 7)
        self._queues(topic, 7, 6)

    @check("updateTopicPerm", {"105-perm-4-to-6": "perm 4"})
    def update_topic_perm(self):
        address, topic = self.job.pair.master.address, self.job.new_topic()
        text = self.job.admin("updateTopicPerm", "-b", address, "-t", topic, "-p", 4)
        expect(f"update topic perm from 6 to 4 in {address} success." in text, "the change from 6 to 4", text)
        self._queues(topic, 4, 4)

    @check("deleteTopic", {"216-swallowed": "to be gone", "105-17-to-1": "CODE: 17|not answer code 17"})
    def delete_topic(self):
        topic = self.job.new_topic()
        text = self.job.admin("deleteTopic", "-c", self.job.pair.cluster, "-t", topic)
        expect(f"delete topic [{topic}] from cluster [{self.job.pair.cluster}] success." in text
               and f"delete topic [{topic}] from NameServer success." in text, "both lines of success", text)

        def gone():
            code = wire.ask(self.job.ns.address, wire.ROUTE, {"topic": topic}).code
            return code == wire.NO_TOPIC, f"not answer code 17 but {code}"
        wait_for(gone, self.job.limit(5, 2), "the route of a deleted topic to be gone")
        text = self.job.admin("topicRoute", "-t", topic)
        expect("CODE: 17" in text, "CODE: 17 from topicRoute", text)

    @check("updateOrderConf put, get, delete; a producer follows it",
           {"100-swallowed": "orderTopicConf", "101-altered": "get orderConf", "102-swallowed": "no orderTopicConf",
            "105-without-orderTopicConf": "orderTopicConf"})
    def update_order_conf(self):
        topic, value = self.job.new_topic(), f"{self.job.pair.name}:2"
        text = self.job.admin("updateOrderConf", "-t", topic, "-m", "put", "-v", value)
        expect(f"update orderConf success. topic=[{topic}], orderConf=[{value}]" in text, "the put to succeed", text)
        found = wire.route(self.job.ns.address, topic)
        expect(found.get("orderTopicConf") == value, f"orderTopicConf {value} in the route", found)
        text = self.job.admin("updateOrderConf", "-t", topic, "-m", "get")
        expect(f"get orderConf success. topic=[{topic}], orderConf=[{value}]" in text.replace(" ] ", "]"),
               f"get orderConf to print {value}", text)
        queues = self.job.driver.send(self.job.ns.address, topic, 40, "o", self.job.limit(30))
        expect({name.rsplit(":", 1)[1] for name in queues} == {"0", "1"}, "only the queues 0 and 1 used", queues)
        text = self.job.admin("updateOrderConf", "-t", topic, "-m", "delete")
        expect(f"delete orderConf success. topic=[{topic}]" in text, "the delete to succeed", text)
        found = wire.route(self.job.ns.address, topic)
        expect("orderTopicConf" not in found, "no orderTopicConf in the route", found)

    @check("updateKvConfig", {"100-swallowed": "v1", "101-altered": "v1"})
    def update_kv(self):
        space = self.job.unique("ns")
        for value in ("v1", "v2"):
            text = self.job.admin("updateKvConfig", "-s", space, "-k", "k", "-v", value)
            expect("create or update kv config to namespace success." in text, "the line of success", text)
            found = wire.get_kv(self.job.ns.address, space, "k")
            expect(found == value, f"{value} as the value", found)

    @check("deleteKvConfig", {"102-swallowed": "code 22"})
    def delete_kv(self):
        space = self.job.unique("ns")
        self.job.admin("updateKvConfig", "-s", space, "-k", "k", "-v", "v")
        text = self.job.admin("deleteKvConfig", "-s", space, "-k", "k")
        expect("delete kv config from namespace success." in text, "the line of success", text)
        code = wire.ask(self.job.ns.address, wire.GET_KV, {"namespace": space, "key": "k"}).code
        expect(code == wire.NOT_FOUND, "code 22 for the value", f"code {code}")

    @check("getNamesrvConfig", {"319-altered": "listenPort"})
    def get_config(self):
        ns = self.job.ns
        text = self.job.admin("getNamesrvConfig")
        expect(f"============{ns.address}============" in text, "the line with the server's address", text)
        found = dict(re.findall(r"^(\w+)\s+=\s*(.*?)\s*$", text, re.M))
        port = ns.direct.rsplit(":", 1)[1]
        expect(found.get("listenPort") == port, f"listenPort {port}", text)
        expect(found.get("orderMessageEnable") == "true", "orderMessageEnable true", text)
        missing = (CONFIG_KEYS_5 if self.job.server.is_5 else CONFIG_KEYS_4) - found.keys()
        expect(not missing, "all keys of the configuration", f"without {sorted(missing)}")

    @check("updateNamesrvConfig changes a setting", {"318-swallowed": "in 319", "319-altered": "in 319"})
    def update_config(self):
        ns = self.job.ns
        before = wire.config(ns.direct)
        for value in ("wp1", before["productEnvName"]):
            text = self.job.admin("updateNamesrvConfig", "-k", "productEnvName", "-v", value)
            expect(f"update name server config success![{ns.address}]" in text and f"productEnvName : {value}" in text,
                   "the lines of success", text)
            found = wire.config(ns.address)
            expect(found == {**before, "productEnvName": value}, f"productEnvName {value} in 319 and the rest as it was",
                   found)

    @check("updateNamesrvConfig may not change a path", {"318-refusal-to-0": "CODE: 16"})
    def update_config_refused(self):
        before = wire.config(self.job.ns.direct)
        text = self.job.admin("updateNamesrvConfig", "-k", "kvConfigPath", "-v", "elsewhere")
        expect("CODE: 16" in text, "CODE: 16", text)
        found = wire.config(self.job.ns.direct)
        expect(found == before, "the configuration as before", found)

    @check("consumerProgress", {"105-not-found": "a line for each queue", "105-nowhere": "a line for each queue"})
    def consumer_progress(self):
        text = self.job.admin("consumerProgress", "-g", self.stats_group)
        rows = [line.split() for line in text.splitlines() if line.startswith(self.stats_topic)]
        expect(sorted(row[2] for row in rows) == ["0", "1", "2", "3"], "a line for each queue", text)
        expect("Diff Total: 0" in text, "nothing left to consume", text)
        text = self.job.admin("consumerProgress")
        expect(any(line.startswith(self.stats_group) for line in text.splitlines()), "a line for the group", text)

    @check("brokerStatus by address and by cluster", {"106-without-a-broker": "-c to print"})
    def broker_status(self):
        version = "V" + self.job.line.replace(".", "_")
        for words in (("-b", self.job.pair.master.address), ("-c", self.job.pair.cluster)):
            text = self.job.admin("brokerStatus", *words)
            for pattern in (r"commitLogMaxOffset\s*: \d+", r"bootTimestamp\s*: \d+", rf"brokerVersionDesc\s*: {version}"):
                expect(re.search(pattern, text), f"brokerStatus {words[0]} to print {pattern}", text)
            if self.job.is_5:
                expect(re.search(r"brokerActive\s*: true", text), f"brokerStatus {words[0]} to print an active master", text)

    @check("wipeWritePerm", {"205-swallowed": "perm 4", "105-perm-4-to-6": "perm 4"})
    def wipe(self):
        self._wipe()

    @check("after a round of registrations a deleted topic is still gone and a wiped permission still wiped",
           {"216-swallowed": "still deleted", "105-perm-4-to-6": "perm 4"})
    def later(self):
        cluster, deleted = self.job.pair.cluster, self.job.new_topic()
        self.job.admin("deleteTopic", "-c", cluster, "-t", deleted)
        self.job.new_topic()  # so that the broker tells the server the version that its table has since the deletion
        self._make_stats()
        for last in (False, False, True):
            self._wipe()
            time.sleep(REGISTER_ROUND)
            found = wire.route(self.job.ns.address, deleted)
            expect(found is None, f"{deleted} still deleted", found)
            try:
                self._queues(self.stats_topic, 4, 4)
                return
            except Failure:  # the broker may have changed its table by itself: then it does write the permission anew
                if last:
                    raise

    @check("addWritePerm", {"327-swallowed": "perm 6"})
    def add(self):
        ns, name = self.job.ns, self.job.pair.name
        self._wipe()
        text = self.job.admin("addWritePerm", "-b", name)
        found = re.search(rf"add write perm of broker\[{name}\] in name server\[{ns.address}\] OK, (\d+)", text)
        expect(found and int(found[1]) > 5, "the number of topics", text)
        self._queues(self.stats_topic, 4, 6)

    @check("statsAll", {"206-without-topics": "a line with"})
    def stats_all(self):
        if time.monotonic() - self.stats_time > STATS_FRESH:
            self._make_stats()
        topic, group, many = self.stats_topic, self.stats_group, str(MESSAGES)

        def rows():
            text = self.job.admin("statsAll", "-t", topic)
            return [line.split() for line in text.splitlines()], text

        def consumed():  # the consumer commits without an answer, so the broker may still be at it
            lines, text = rows()
            return [topic, group, "0"] in [line[:3] for line in lines], text

        def counted():  # with the broker's next sample, within 10 s
            lines, text = rows()
            return any(line[:2] == [topic, group] and line[-2:] == [many, many] for line in lines), text
        wait_for(consumed, 10, f"a line with {topic}, {group} and nothing left", every=1)
        wait_for(counted, 45, f"{many} in and {many} out in the line of {topic}", every=1)

    def _make_stats(self):
        """Makes a topic with some traffic. The broker counts it for the next minute, and then only after ten."""
        self.stats_topic, self.stats_group = self.job.new_topic(4, "stats"), self.job.unique("g")
        self._traffic(self.stats_topic, self.stats_group)
        self.stats_time = time.monotonic()

    def _wipe(self):
        ns, name = self.job.ns, self.job.pair.name
        for last in (False, False, True):
            text = self.job.admin("wipeWritePerm", "-b", name)
            found = re.search(rf"wipe write perm of broker\[{name}\] in name server\[{ns.address}\] OK, (\d+)", text)
            expect(found and int(found[1]) > 5, "the number of wiped topics", text)
            try:
                self._queues(self.stats_topic, 4, 4)
                return
            except Failure:  # the broker may have changed its table just then: its registration writes the permission anew
                if last:
                    raise

    def _traffic(self, topic, group):
        ns = self.job.ns
        self.job.driver.send(ns.address, topic, MESSAGES, "s")
        self.job.driver.consume(ns.address, topic, group, "s", MESSAGES)

    def _queues(self, topic, queues, perm):
        """Waits for the number of queues and the permission in the route."""
        def seen():
            found = wire.queues_of(wire.route(self.job.ns.address, topic), self.job.pair.name)
            return found and (found["readQueueNums"], found["perm"]) == (queues, perm), found
        wait_for(seen, self.job.limit(5, 1), f"{queues} queues with perm {perm} in the route of {topic}")
