"""A job: some scenarios that share one name server and its peers, run one after another in one thread."""

import contextlib
import os
import random
import re
import shutil
import time
import traceback

from . import wire
from .checks import Failure, Skip, checks_of
from .peers import Driver, NameServer, Pair
from .spoils import SPOILS, Setting

SPOILED_LIMIT = 6  # how long a spoiled check may wait for what cannot come


class Server:
    """Which server is tested: a path of ours, or `java:LINE`."""

    def __init__(self, text):
        self.java = text[5:] if text.startswith("java:") else None
        self.path = None if self.java else os.path.abspath(text)
        self.is_5 = not self.java or self.java.startswith("5")


class Scenario:
    """Base of the scenarios; its checks are run in the order of their definition."""

    name = ""
    lines = ("5.5.0", "4.9.7")  # lines of peers that it is made for
    wants_5 = False  # whether only a 5.x server can pass it

    def __init__(self, job):
        self.job = job

    def prepare(self):
        """Starts what all of its checks need."""


class Job:
    """Runs scenarios and keeps what they share: the server, names, folders, the spoil that is on."""

    def __init__(self, name, line, scenarios, options, report):
        self.name = f"{name}-{line}"
        self.line = line
        self.scenarios = scenarios
        self.server = options.server
        self.spoiling = options.spoil
        self.report = report
        self.folder = os.path.join(options.folder, self.name)
        self.servers = []  # name servers that the job has started
        self.spoil_on = False
        self._suffix = f"{random.randrange(16 ** 6):06x}"
        self._count = 0

    @property
    def is_5(self):
        """Whether the peers are of a 5.x line."""
        return self.line.startswith("5")

    def unique(self, kind):
        """A name that no other run uses."""
        self._count += 1
        return f"{kind}{self._suffix}x{self._count}"

    def topic(self, kind="t"):
        """A name for a topic; spoils know the suite's topics by their beginning."""
        return self.unique("wp_" + kind)

    def limit(self, seconds, spoiled=SPOILED_LIMIT):
        """How long to wait for something: less in a spoiled check, where it will not come."""
        return spoiled if self.spoil_on else seconds

    def open(self):
        """Starts what the scenarios share."""

    def run(self):
        """Runs the scenarios; everything that the job started is ended when it returns."""
        begin = time.monotonic()
        try:
            self.open()
        except Exception as error:
            self._verdict("FAIL", "-".join(s.name for s in self.scenarios), "preparation", begin, error)
            return
        for kind in self.scenarios:
            begin = time.monotonic()
            scenario = kind(self)
            try:
                if kind.wants_5 and not self.server.is_5:
                    raise Skip("needs a 5.x server")
                scenario.prepare()
                for method in checks_of(kind):
                    self._check(scenario, method)
            except Skip as why:
                self._verdict("SKIP", kind.name, "all", begin, why)
            except Exception as error:
                self._verdict("FAIL", kind.name, "preparation", begin, error)
            self.report.spent(f"{self.line}/{kind.name}", time.monotonic() - begin)
        for server in self.servers:
            if server.forwarder:
                server.forwarder.close()

    def _check(self, scenario, method):
        if self.spoiling:
            self._spoiled(scenario, method)
        else:
            self._plain(scenario, method)

    def _plain(self, scenario, method, quiet=False, title=None):
        begin, title = time.monotonic(), title or method.check["title"]
        try:
            method(scenario)
        except Skip as why:
            self._verdict("SKIP", scenario.name, title, begin, why)
        except Exception as error:
            self._verdict("FAIL", scenario.name, title, begin, error)
        else:
            if not quiet:
                self._verdict("PASS", scenario.name, title, begin)

    def _spoiled(self, scenario, method):
        """Runs the check with each of its spoils, where it must fail, and then without one, where it must pass."""
        about = method.check
        for name, pattern in about["spoils"].items():
            begin, title = time.monotonic(), f"{about['title']} [{name}]"
            try:
                with self._spoil([name, *about["also"]]):
                    method(scenario)
            except Failure as error:
                text = str(error)
                if re.search(pattern, text, re.S):
                    self._verdict("PASS", scenario.name, title, begin, f"failed as it must: {_short(text)}")
                else:
                    self._verdict("FAIL", scenario.name, title, begin,
                                  f"it failed for another reason than /{pattern}/: {text}")
            except Skip as why:
                self._verdict("SKIP", scenario.name, title, begin, why)
            except Exception as error:
                self._verdict("FAIL", scenario.name, title, begin, error)
            else:
                self._verdict("FAIL", scenario.name, title, begin, "it passed, though the server was spoiled")
        if not about["once"]:
            self._plain(scenario, method, quiet=True, title=f"{about['title']} [unspoiled]")

    @contextlib.contextmanager
    def _spoil(self, names):
        spoils = [SPOILS[name]() for name in names]
        settings = [spoil for spoil in spoils if isinstance(spoil, Setting)]
        frames = [spoil for spoil in spoils if not isinstance(spoil, Setting)]
        self.spoil_on = True
        try:
            for server in self.servers:
                server.forwarder.spoil(frames)
                for setting in settings:
                    wire.set_config(server.direct, **{setting.key: setting.bad})
            yield
        finally:
            self.spoil_on = False
            for server in self.servers:
                server.forwarder.spoil(())
                for setting in settings:
                    wire.set_config(server.direct, **{setting.key: setting.good})

    def _verdict(self, verdict, scenario, title, begin, problem=None):
        details = []
        if isinstance(problem, Failure):
            details = [f"expected: {problem.expected}", f"seen:     {problem.seen}",
                       f"read:     {problem.log or self.folder}"]
        elif isinstance(problem, (Skip, str)):
            details = [str(problem)]
        elif problem is not None:
            details = ["".join(traceback.format_exception(problem)).rstrip(), f"read:     {self.folder}"]
        self.report.line(verdict, f"{self.line}/{scenario}", title, time.monotonic() - begin, *details)


class QuietJob(Job):
    """Shares one server, one master with its slave and one driver over the scenarios that leave them alone."""

    def open(self):
        self.driver = Driver(self)  # its JVM starts while the server does
        self.ns = NameServer(self, orderMessageEnable="true").start()
        self.pair = Pair(self, self.ns.address)
        self.sync_topic = None

    def admin(self, *words, limit=60):
        """Runs an mqadmin command against the job's server."""
        return self.driver.admin(self.ns.address, *words, limit=limit)

    def new_topic(self, queues=4, kind="t", ordered=False):
        """Makes a topic with mqadmin and returns its name."""
        topic = self.topic(kind)
        words = ["updateTopic", "-c", self.pair.cluster, "-t", topic, "-r", queues, "-w", queues]
        text = self.admin(*words, *(["-o", "true"] if ordered else []))
        if f"create topic to {self.pair.master.address} success" not in text:
            raise Failure(f"updateTopic to say that it made {topic}", text)
        return topic


def _short(text):
    text = " ".join(text.split())
    return text if len(text) < 240 else text[:240] + " …"


def remove_stores(folder):
    """Takes the brokers' stores away, which are large, and leaves the logs."""
    for root, names, _ in os.walk(folder):
        if "store" in names:
            shutil.rmtree(os.path.join(root, "store"), ignore_errors=True)
            names.remove("store")
