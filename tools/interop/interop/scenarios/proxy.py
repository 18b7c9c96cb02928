"""The 5.x proxy takes its routes from the server and serves a gRPC client and, on its other port, the old protocol."""

from ..checks import Failure, check
from ..job import Scenario
from ..peers import Grpc, Proxy as Process, numbers

MESSAGES = 100


class Proxy(Scenario):
    """One proxy beside the shared pair of brokers."""

    name = "proxy"
    lines = ("5.5.0",)

    def prepare(self):
        self.job.pair.need()
        self.proxy = Process(self.job, self.job.pair.cluster, self.job.ns.address)
        self.proxy.begin()
        self.proxy.wait_up()

    @check("a gRPC client sends 100 messages and receives them", {"105-nowhere": "sent and received"})
    def grpc(self):
        topic, group = self.job.topic("grpc"), self.job.unique("g")
        cluster = self.job.pair.cluster
        text = self.job.admin("updateTopic", "-c", cluster, "-t", topic, "-r", 4, "-w", 4, "-a", "+message.type=NORMAL")
        text += self.job.admin("updateSubGroup", "-c", cluster, "-g", group)
        if text.count("success") < 2:
            raise Failure("a topic and a group to be made", text)
        text = Grpc.send_and_receive(self.job, self.proxy.grpc, topic, group, MESSAGES, self.job.limit(90, 12))
        last = text.strip().splitlines()[-1] if text.strip() else "nothing"
        found = numbers(last)
        if (found.get("sent"), found.get("distinct")) != (MESSAGES, MESSAGES):
            raise Failure(f"{MESSAGES} messages sent and received through the proxy", last, self.proxy.proc.log)

    @check("a Java producer sends 100 messages through the proxy's remoting port, and they arrive",
           {"105-nowhere": "sent.*errors=[1-9]"})
    def remoting(self):
        topic = self.job.new_topic(4)
        self.job.driver.send(self.proxy.remoting, topic, MESSAGES, "p", self.job.limit(60))
        self.job.driver.consume(self.job.ns.address, topic, self.job.unique("g"), "p", MESSAGES, self.job.limit(60))
