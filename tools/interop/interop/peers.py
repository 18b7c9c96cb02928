"""The parts of a RocketMQ installation: name server, broker, container, proxy, and the drivers of the clients."""

import json
import os
import queue
import re
import shutil
import threading
import time

from . import setup, wire
from .checks import Failure, wait_for
from .forwarder import Forwarder
from .procs import HOST, Proc, port_block

BOOT_LIMIT = 90
REGISTER_LIMIT = 30

_LOGBACK = """<configuration>
  <appender name="F" class="ch.qos.logback.core.FileAppender"><file>${user.home}/rocketmq.log</file>
    <encoder><pattern>%d{HH:mm:ss.SSS} %p %c{0} %t - %m%n</pattern></encoder></appender>
  <root level="INFO"><appender-ref ref="F"/></root>
</configuration>
"""


def java(line, folder, main, *args, heap="512m", props=()):
    """The command line of a JVM of a line; everything it writes goes below `folder`."""
    home = os.path.join(folder, "home")
    os.makedirs(os.path.join(home, "conf"), exist_ok=True)
    # 4.9 dies without the file of its part; 5.x takes the one that is named.
    for name in ("logback", "logback_namesrv", "logback_broker", "logback_tools", "logback_proxy"):
        with open(os.path.join(home, "conf", name + ".xml"), "w") as conf:
            conf.write(_LOGBACK)
    opens = ["java.lang", "java.nio", "sun.nio.ch", "jdk.internal.ref"]
    return [
        shutil.which("java"), "-Xms64m", "-Xmx" + heap, "-XX:MaxDirectMemorySize=512m", "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1", "-Duser.home=" + home, "-Djava.io.tmpdir=" + home, "-Drocketmq.home.dir=" + home,
        "-Drmq.logback.configurationFile=" + os.path.join(home, "conf", "logback.xml"),
        "-Drocketmq.client.logRoot=" + home,
        "-Dtls.server.mode=disabled",  # else each listener makes itself a certificate, which takes seconds
        *[f"-D{prop}" for prop in props],
        *["--add-opens=java.base/%s=ALL-UNNAMED" % (p if "." in p else p) for p in opens],
        "-cp", setup.classes(line) + ":" + setup.jars(line), main, *args]


def properties(path, settings):
    """Writes a properties file."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as conf:
        conf.writelines(f"{key}={value}\n" for key, value in settings.items())


class NameServer:
    """The server under test, whichever it is: the `-c` file is the same for the Java one and ours.

    `address` is where peers and questions go; in a spoiled run that is a forwarder before the server.
    """

    def __init__(self, job, name="ns", **settings):
        self.job = job
        self.folder = os.path.join(job.folder, name)
        port = port_block(1)
        self.direct = self.address = f"{HOST}:{port}"
        self._conf = os.path.join(self.folder, "ns.conf")
        properties(self._conf, {"listenPort": port, "bindAddress": HOST,
                                "kvConfigPath": os.path.join(self.folder, "kvConfig.json"), **settings})
        self.proc = None
        self.forwarder = None
        if job.spoiling:
            self.forwarder = Forwarder(self.direct)
            self.address = self.forwarder.address
        job.servers.append(self)

    def start(self):
        """Starts the server and waits until it serves."""
        self.begin()
        self.wait_up()
        return self

    def begin(self):
        """Starts the server."""
        server = self.job.server
        if server.java:
            argv = java(server.java, self.folder, "org.apache.rocketmq.namesrv.NamesrvStartup", "-c", self._conf)
        else:
            argv = [server.path, "-c", self._conf]
        self.proc = Proc("name server", argv, self.folder, env={"HOME": self.folder, "ROCKETMQ_HOME": self.folder})

    def wait_up(self):
        """Waits until the server says that it serves, and does."""
        self.proc.wait_output("The Name Server boot success", BOOT_LIMIT)
        wait_for(lambda: wire.cluster(self.direct), BOOT_LIMIT, "an answer to 106 after the boot line", log=self.proc.log)

    def stop(self):
        """Ends the server in order."""
        self.proc.stop()

    def kill(self):
        """Ends the server at once."""
        self.proc.kill()


class Broker:
    """A broker of the job's line. `begin` starts it, `wait_up` waits for its boot line."""

    def __init__(self, job, cluster, name, ident, servers, role="ASYNC_MASTER", **settings):
        self.job = job
        self.name = name
        self.folder = os.path.join(job.folder, f"{name}-{ident}")
        self.store = os.path.join(self.folder, "store")
        port = port_block(6) + 2  # the broker listens on the port two below as well
        self.port, self.ha_port = port, port + 1
        self.address, self.ha_address = f"{HOST}:{port}", f"{HOST}:{port + 1}"
        self.conf = os.path.join(self.folder, "broker.conf")
        self.settings = {
            "brokerClusterName": cluster, "brokerName": name, "brokerId": ident, "brokerRole": role,
            "brokerIP1": HOST, "brokerIP2": HOST, "listenPort": port, "haListenPort": port + 1, "bindAddress": HOST,
            "namesrvAddr": servers, "storePathRootDir": self.store,
            "storePathCommitLog": os.path.join(self.store, "commitlog"),
            "mappedFileSizeCommitLog": 16777216, "mappedFileSizeConsumeQueue": 300000, "mappedFileSizeTimerLog": 1048576,
            "maxIndexNum": 100000, "maxHashSlotNum": 20000, "autoCreateTopicEnable": "true", "defaultTopicQueueNums": 4,
            "registerNameServerPeriod": 10000,  # the least that a broker takes
            "diskMaxUsedSpaceRatio": 99,
            "waitTimeMillsInSendQueue": 10000, "osPageCacheBusyTimeOutMills": 10000,  # a slow machine is no busy broker
            "sendMessageThreadPoolNums": 4, "pullMessageThreadPoolNums": 4, **settings}
        self.write()
        self.proc = None

    def write(self, **settings):
        """Writes the settings, with some replaced."""
        self.settings.update(settings)
        properties(self.conf, self.settings)

    def begin(self):
        """Starts the broker."""
        argv = java(self.job.line, self.folder, "org.apache.rocketmq.broker.BrokerStartup", "-c", self.conf)
        self.proc = Proc(f"broker {self.name}-{self.settings['brokerId']}", argv, self.folder)

    def wait_up(self):
        """Waits for the boot line."""
        self.proc.wait_output("boot success", BOOT_LIMIT)

    def wait_registered(self):
        """Waits until every server has the broker.

        A 5.x broker that boots before it has found a server reachable registers only in its next round, 10 s later.
        """
        for server in self.settings["namesrvAddr"].split(";"):
            wait_for(lambda: wire.members(server, self.name).get(self.settings["brokerId"]) == self.address,
                     REGISTER_LIMIT, f"{self.name} with the id {self.settings['brokerId']} in the cluster table",
                     log=self.log)

    def start(self, registered=True):
        """Starts the broker, waits for its boot line and, unless told otherwise, for its registration."""
        self.begin()
        self.wait_up()
        if registered:
            self.wait_registered()

    def running(self):
        """Whether the broker's process is there."""
        return self.proc is not None and self.proc.running()

    def kill(self):
        """Ends the broker with SIGKILL."""
        if self.proc:
            self.proc.kill()

    @property
    def log(self):
        """The broker's own log file."""
        return os.path.join(self.folder, "home", "rocketmq.log")


class Pair:
    """A master and its slave, started when they are first needed; shared by the scenarios that leave them alone."""

    def __init__(self, job, servers, **settings):
        self.cluster, self.name = job.unique("c"), job.unique("b")
        self.master = Broker(job, self.cluster, self.name, 0, servers, **settings)
        self.slave = Broker(job, self.cluster, self.name, 1, servers, role="SLAVE", **settings)

    def need_master(self, registered=True):
        """Starts the master unless it runs."""
        if not self.master.running():
            self.master.start(registered)

    def need(self):
        """Starts what of the two does not run."""
        self.need_master()
        if not self.slave.running():
            self.slave.start()

    def kill(self):
        """Ends both."""
        self.slave.kill()
        self.master.kill()


class Driver:
    """The JVM with the Java clients and mqadmin of the job's line (java/Driver.java)."""

    def __init__(self, job):
        self.job = job
        self._answers = queue.Queue()
        folder = os.path.join(job.folder, "driver")
        argv = java(job.line, folder, "Driver", props=("rocketmq.client.logUseSlf4j=false",))
        self.proc = Proc("java driver", argv, folder, talk=True)
        self._transcript = os.path.join(folder, "transcript.log")
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        text = []
        for line in self.proc.popen.stdout:
            line = line.decode(errors="replace").rstrip("\n")
            if line.startswith("@@END "):
                self._answers.put((line.split()[1] == "ok", "\n".join(text)))
                text = []
            else:
                text.append(line)
        self._answers.put((False, "the driver ended"))

    def ask(self, *words, limit=BOOT_LIMIT):
        """Gives a command and returns the text of its answer; fails when the command threw."""
        begin = time.monotonic()
        try:
            self.proc.popen.stdin.write(("\t".join(str(word) for word in words) + "\n").encode())
            self.proc.popen.stdin.flush()
            good, text = self._answers.get(timeout=limit)
        except queue.Empty:
            self.proc.kill()  # its answer would be taken for that of the next command
            raise Failure(f"an answer of the Java driver to {' '.join(map(str, words))} within {limit} s", "none",
                          self.proc.log) from None
        except OSError as error:
            raise Failure("a running Java driver", error, self.proc.log) from None
        with open(self._transcript, "a") as transcript:
            transcript.write(f"> {' '.join(map(str, words))}\n{text}\n< {time.monotonic() - begin:.2f} s\n")
        if not good:
            raise Failure(f"{words[0]} to work", text[:600], self._transcript)
        return text

    def admin(self, servers, *words, limit=60):
        """Runs an mqadmin command and returns what it printed."""
        return self.ask("admin", *words, "-n", servers, limit=limit)

    def send(self, servers, topic, count, prefix, limit=60, ordered=False):
        """Sends messages one after another. Returns {queue: number of messages}; fails unless all were acknowledged."""
        text = self.ask("send", servers, topic, count, prefix, int(limit), str(ordered).lower(), limit=limit + 60)
        if numbers(text)["sent"] != count:
            raise Failure(f"{count} messages sent to {topic} in {limit} s", text, self.proc.log)
        return {name: int(many) for name, many in re.findall(r"([^,=\s]+:\d+)=(\d+)", text)}

    def consume(self, servers, topic, group, prefix, count, limit=60, ordered=False):
        """Consumes with a push consumer until `count` different messages came; returns the counters."""
        text = self.ask("consume", servers, topic, group, prefix, count, int(limit), str(ordered).lower(),
                        limit=limit + 60)
        found = numbers(text)
        if found["distinct"] != count:
            raise Failure(f"{count} messages consumed from {topic} in {limit} s", text, self.proc.log)
        return found


def numbers(text):
    """The `word=number` pairs of a text as a dict."""
    return {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", text)}


class Proxy:
    """The 5.x proxy in cluster mode."""

    def __init__(self, job, cluster, servers):
        self.job = job
        self.folder = os.path.join(job.folder, "proxy")
        base = port_block(2)
        self.grpc, self.remoting = f"{HOST}:{base + 1}", f"{HOST}:{base}"
        threads = ("grpcThreadPoolNums", "grpcProducerThreadPoolNums", "grpcConsumerThreadPoolNums",
                   "grpcRouteThreadPoolNums", "grpcClientManagerThreadPoolNums", "grpcTransactionThreadPoolNums")
        self._conf = {
            "rocketMQClusterName": cluster, "namesrvAddr": servers, "proxyMode": "CLUSTER",
            "grpcServerPort": base + 1, "remotingListenPort": base, "localServeAddr": HOST,
            "useEndpointPortFromRequest": True, "enablePrintJstack": False, "grpcBossLoopNum": 1, "grpcWorkerLoopNum": 2,
            **{name: 4 for name in threads}}
        self.proc = None

    def begin(self):
        """Starts the proxy; its cluster must have a broker already."""
        os.makedirs(self.folder, exist_ok=True)
        path = os.path.join(self.folder, "proxy.json")
        with open(path, "w") as conf:
            json.dump(self._conf, conf)
        argv = java(self.job.line, self.folder, "org.apache.rocketmq.proxy.ProxyStartup", "-pc", path)
        self.proc = Proc("proxy", argv, self.folder)

    def wait_up(self):
        """Waits for the boot line."""
        self.proc.wait_output("rocketmq-proxy startup successfully", BOOT_LIMIT)


class Container:
    """A 5.x broker container with several brokers in one process."""

    def __init__(self, job, servers, brokers):
        self.job = job
        self.folder = os.path.join(job.folder, "container")
        self._conf = os.path.join(self.folder, "container.conf")
        properties(self._conf, {"listenPort": port_block(3) + 2, "namesrvAddr": servers, "brokerContainerIP": HOST,
                                "bindAddress": HOST,
                                "brokerConfigPaths": ":".join(broker.conf for broker in brokers)})
        self.proc = None

    def start(self):
        """Starts the container and waits for its boot line."""
        argv = java(self.job.line, self.folder, "org.apache.rocketmq.container.BrokerContainerStartup", "-c", self._conf,
                    heap="768m")
        self.proc = Proc("container", argv, self.folder)
        self.proc.wait_output("boot success", BOOT_LIMIT)


class Grpc:
    """The Java gRPC client, one process a call (java/GrpcDriver.java)."""

    @staticmethod
    def send_and_receive(job, endpoint, topic, group, count, limit):
        """Sends and receives messages; returns the counters."""
        folder = os.path.join(job.folder, "grpc")
        argv = java("grpc", folder, "GrpcDriver", endpoint, topic, group, str(count), str(int(limit)))
        return run_to_end(Proc("gRPC client", argv, folder), limit + 60)


class Go:
    """The Go client, one process a call (go/main.go)."""

    @staticmethod
    def call(job, command, servers, limit=60, **flags):
        """Runs a command of the client; returns what it printed, fails when it says so."""
        folder = os.path.join(job.folder, "go")
        argv = [setup.GO_CLIENT, command, "-n", servers, f"-limit={int(limit)}s"]
        argv += [f"-{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in flags.items()]
        proc = Proc("Go client", argv, folder, env={"HOME": folder})
        text = run_to_end(proc, limit + 30)
        if proc.popen.returncode:
            raise Failure(f"goclient {command} to work", text, proc.log)
        return text


def run_to_end(proc, limit):
    """Waits for a process that ends by itself; returns what it printed."""
    try:
        proc.popen.wait(limit)
    except Exception:  # it did not end: the text tells how far it got
        pass
    finally:
        proc.kill()
    return proc.output()
