"""The servers that are compared: how each is fetched, started, paused and stopped."""

import os
import re
import shutil
import signal
import subprocess
import time

from interop import peers, setup, wire
from interop.checks import Failure
from interop.procs import HOST, Proc, port_block

from . import machine

JAVA_LINE = "5.5.0"
CRATE, CRATE_VERSION = "rocketmq-namesrv", "1.0.0"

# What bin/runserver.sh of the distribution starts the name server with (its log of collections is left out).
DISTRIBUTION_OPTIONS = [
    "-server", "-Xms4g", "-Xmx4g", "-XX:MetaspaceSize=128m", "-XX:MaxMetaspaceSize=320m", "-XX:+UseG1GC",
    "-XX:G1HeapRegionSize=16m", "-XX:G1ReservePercent=25", "-XX:InitiatingHeapOccupancyPercent=30",
    "-XX:SoftRefLRUPolicyMSPerMB=0", "-XX:-OmitStackTraceInFastThrow", "-XX:-UseLargePages"]

# The null server's answers to 206 and 106: what ours has in case 13 (its rows `answer to` show both).
LONG_REPLY_BYTES = (3_220_000, 724_000)

BUILD_LIMIT = 3600
START_LIMIT = 90


class Server:
    """A server that can be started again and again; at most one process at a time."""

    name = title = ""
    warm_up = 1.0  # seconds of load before anything is measured
    answers = True  # whether it knows the protocol

    def __init__(self, options, placement):
        self.options = options
        self.placement = placement
        self.proc = self.address = None

    def prepare(self, report):
        """Fetches or builds the server; fails when that cannot be done."""

    def argv(self, folder, port):
        """The command line."""
        raise NotImplementedError

    def environment(self, folder):
        """What is added to the environment."""
        return {"HOME": folder, "ROCKETMQ_HOME": folder}

    def start(self, folder):
        """Starts the server, waits until it answers, and returns the seconds from the one to the other."""
        port = port_block(1)
        self.address = f"{HOST}:{port}"
        os.makedirs(folder, exist_ok=True)
        argv = self.placement.pin(self.placement.server, self.argv(folder, port))
        environment = self.environment(folder)
        begin = time.monotonic()
        self.proc = Proc(self.title, argv, folder, env=environment)
        while not self._serves():
            if not self.proc.running():
                raise Failure(f"{self.title} to start", self.proc.tail(), self.proc.log)
            if time.monotonic() - begin > START_LIMIT:
                raise Failure(f"{self.title} to answer within {START_LIMIT} s", self.proc.tail(), self.proc.log)
            time.sleep(0.0005)
        return time.monotonic() - begin

    def _serves(self):
        try:
            return wire.ask(self.address, wire.ROUTE, {"topic": "none"}) is not None
        except OSError:
            return False

    @property
    def pid(self):
        return self.proc.pid

    @property
    def long_address(self):
        """Where it is asked for lists of everything."""
        return self.address

    def resident_kib(self):
        """Resident memory."""
        return machine.resident_kib(self.pid)

    def pause(self):
        """Keeps a server that is not measured from using a processor."""
        if self.proc:
            self.proc.signal(signal.SIGSTOP)

    def resume(self):
        """Ends what `pause` began."""
        if self.proc:
            self.proc.signal(signal.SIGCONT)

    def stop(self):
        """Ends the process."""
        if self.proc:
            self.proc.kill()
            self.proc = None


class Null(Server):
    """Reads frames by their length and answers each with the same bytes: what the machine can do at most."""

    name, title = "null", "null server"
    answers = False

    def __init__(self, options, placement):
        super().__init__(options, placement)
        self.reply_bytes = 1024

    def argv(self, folder, port):
        return [self.options.loadgen, "null", "--listen", f"{HOST}:{port}", "--reply-bytes", str(self.reply_bytes),
                "--long-reply-bytes", ",".join(map(str, LONG_REPLY_BYTES))]

    @property
    def long_address(self):
        return re.search(r"long replies at ([0-9.:]+),", self.proc.output())[1]

    def fit(self, reply_bytes, folder):
        """Starts it anew when its replies have another length."""
        if reply_bytes != self.reply_bytes:
            self.stop()
            self.reply_bytes = reply_bytes
            self.start(folder)

    def _serves(self):
        return "null server at" in self.proc.output()


class Java(Server):
    """The Java name server, with the options that its distribution starts it with."""

    name, title = "java", f"Java {JAVA_LINE}"
    warm_up = 20.0  # what is hot has to be compiled, on the processor of the server

    def prepare(self, report):
        os.makedirs(setup.WORK, exist_ok=True)
        setup.setup(report, [JAVA_LINE], grpc=False, go=False)

    def argv(self, folder, port):
        conf = _settings(folder, port)
        argv = peers.java(JAVA_LINE, folder, "org.apache.rocketmq.namesrv.NamesrvStartup", "-c", conf)
        # A test's peers get a small heap and a quick compiler; here the server is to be as fast as it can be.
        kept = [word for word in argv[1:] if not word.startswith(("-Xm", "-XX:"))]
        return [argv[0], *DISTRIBUTION_OPTIONS, *kept]


class Crate(Server):
    """The published Rust name server."""

    name, title = "crate", f"{CRATE} {CRATE_VERSION}"

    def __init__(self, options, placement):
        super().__init__(options, placement)
        self._root = os.path.join(options.work, "crate", CRATE_VERSION)
        self._binary = os.path.join(self._root, "bin", "rocketmq-namesrv-rust")

    def prepare(self, report):
        if os.access(self._binary, os.X_OK):
            return
        cargo = shutil.which("cargo")
        if not cargo:
            raise Failure("cargo on the PATH", "it is not")
        report.note(f"building {self.title}, which takes minutes")
        argv = [cargo, "install", CRATE, "--version", CRATE_VERSION, "--locked", "--root", self._root]
        target = {"CARGO_TARGET_DIR": os.path.join(self.options.work, "crate", "build")}
        proc = Proc("cargo install", argv, os.path.join(self.options.work, "crate"), env=target)
        try:
            proc.popen.wait(BUILD_LIMIT)
        except subprocess.TimeoutExpired:
            pass
        finally:
            proc.kill()
        if not os.access(self._binary, os.X_OK):
            raise Failure(f"{self.title} to build", proc.tail(300), proc.log)

    def argv(self, folder, port):
        return [self._binary, "--listenPort", str(port), "--bindAddress", HOST, "--rocketmqHome", folder,
                "--kvConfigPath", os.path.join(folder, "kvConfig.json")]


class Waypost(Server):
    """Ours."""

    name, title = "waypost", "waypost"

    def argv(self, folder, port):
        return [self.options.server, "-c", _settings(folder, port)]


KINDS = (Null, Java, Crate, Waypost)  # in the order in which they take their turns


def _settings(folder, port):
    path = os.path.join(folder, "ns.conf")
    peers.properties(path, {"listenPort": port, "bindAddress": HOST,
                            "kvConfigPath": os.path.join(folder, "kvConfig.json")})
    return path


def commit(folder):
    """The commit of a work tree, marked when something in it has changed since."""
    git = shutil.which("git")
    if not git:
        return "unknown commit"
    asked = subprocess.run([git, "-C", folder, "describe", "--always", "--dirty"], capture_output=True, text=True,
                           timeout=30, check=False)
    return asked.stdout.strip() or "unknown commit"
