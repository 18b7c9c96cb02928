"""The cases: what is done to a server, what is measured, what is to be reached."""

import statistics
import time

from interop.checks import Failure

from . import clients, machine
from .load import wait_first_request

ALL = ("null", "java", "crate", "waypost")
SPEAKING = ALL[1:]  # those that know the protocol

# Queries for 1,000 topics of 4 brokers over 16 connections; for 100,000.
HOT = ("--workload", "route-hot", "--topics", "1000", "--brokers", "4", "--connections", "16")
COLD = ("--workload", "route-cold", "--topics", "100000", "--brokers", "4", "--connections", "16")

# What runs beside the queries has topics and brokers of its own.
_ASIDE = ("--first-number", "20000")


def _registrations(topics, brokers, kind, rate=None):
    """Registrations that list all topics of a broker, at a rate or as fast as they are answered."""
    pace = ("--mode", "open", "--rate", str(rate)) if rate else ("--mode", "closed")
    return (*_ASIDE, "--workload", "register-storm", "--topics", str(topics), "--topics-per-broker", str(topics),
            "--register-topics", str(topics), "--brokers", str(brokers), "--register-kind", kind, *pace)


def _brokers(topics, topics_per_broker, brokers_per_topic):
    """Brokers that do nothing but stay, with a heartbeat now and then."""
    return (*_ASIDE, "--workload", "heartbeat", "--topics", str(topics), "--topics-per-broker", str(topics_per_broker),
            "--brokers", str(brokers_per_topic), "--mode", "open", "--rate", "50")


STAY = 900  # seconds that such brokers stay at most


class Reach:
    """What is to be reached: a bound for a metric of ours, or for its ratio to another server's."""

    def __init__(self, metric, relation, bound, than=None, unit=""):
        self.metric = metric
        self.relation = relation
        self.bound = bound
        self.than = than
        self.unit = unit

    def holds(self, value):
        """Whether a value is on the right side of the bound."""
        return value >= self.bound if self.relation == ">=" else value <= self.bound


class Case:
    """One case. `measure` returns {metric: value}; a unit is part of a metric's name."""

    number = 0
    title = ""
    servers = ALL
    fresh = False  # whether each measurement starts the server itself
    rounds_max = 1000
    reaches = ()
    note = ""
    shows_tails = False  # whether a few stolen milliseconds are seen in what is measured

    def measure(self, bench, server, turn):
        """Measures a server once."""
        raise NotImplementedError


class Throughput(Case):
    """A closed loop, as fast as it goes."""

    arguments = ()

    def measure(self, bench, server, turn):
        result = bench.run(server, (*self.arguments, "--mode", "closed"))
        return _costs(result)


def _costs(result, name=""):
    return {
        f"{name}requests/s": result.rate,
        f"{name}server CPU, µs a request": result.server_ns / 1000,
        f"{name}p99, µs": result.latency("p99"),
        f"{name}resident, MB": result.resident_kib / 1024,
    }


class RouteDepth1(Throughput):
    number, title = 1, "route query, 1,000 hot topics, 16 connections, depth 1"
    arguments = (*HOT, "--depth", "1")
    reaches = (Reach("requests/s", ">=", 0.85, "null"), Reach("requests/s", ">=", 4, "java"))


class RouteHot(Throughput):
    number, title = 2, "route query, 1,000 hot topics, 16 connections, depth 16"
    arguments = (*HOT, "--depth", "16")
    reaches = (Reach("requests/s", ">=", 0.70, "null"), Reach("requests/s", ">=", 12, "java"))


class RouteCold(Throughput):
    number, title = 3, "route query, 100,000 topics alike, 4 brokers each, 16 connections, depth 16"
    arguments = (*COLD, "--depth", "16")
    reaches = (Reach("requests/s", ">=", 0.55, "null"),)


LATENESS = "generator late p99.9, µs"
REGISTERED_LATE = "registrations late p99, ms"


class Disturbed(Case):
    """Queries in an open loop, quiet and with something going on; which comes first changes from round to round."""

    shows_tails = True
    note = ("The ratio of the null server, which does nothing with what arrives beside the queries, is what the "
            "generators do to each other.")

    def measure(self, bench, server, turn):
        rate = bench.half_rate(server, HOT)
        quiet, busy = {}, {}
        if turn % 2:
            busy = self.busy(bench, server, rate)
        quiet = self.quiet(bench, server, rate)
        if not turn % 2:
            busy = self.busy(bench, server, rate)
        values = {"queries/s, open loop": rate}
        for metric in quiet:
            values[metric + ", quiet"] = quiet[metric]
            values[metric + ", busy"] = busy.pop(metric)
            if metric != LATENESS:
                values[metric + ", busy / quiet"] = values[metric + ", busy"] / quiet[metric]
        return {**values, **busy}

    def quiet(self, bench, server, rate):
        """Measures while nothing else goes on."""
        return _tail(bench.run(server, _open(rate)))

    def busy(self, bench, server, rate):
        """The same beside something; may add metrics."""
        raise NotImplementedError


def _open(rate):
    return (*HOT, "--mode", "open", "--rate", f"{rate:.0f}")


def _tail(result):
    return {"p99, µs": result.latency("p99"), "p99.9, µs": result.latency("p99.9"),
            LATENESS: result.lateness("p99.9"), "server CPU, µs a request": result.server_ns / 1000,
            "resident, MB": result.resident_kib / 1024}


class Registering(Disturbed):
    """Queries beside registrations."""

    note = (Disturbed.note + " What registers gives way to that of the queries where they share a processor: times of registrations have these "
            "waits in them, `registrations late` says how long they were.")
    registrations = ()
    runs = 1

    def busy(self, bench, server, rate):
        seconds = self.runs * (bench.seconds + bench.warm_up(server) + 1) + 1
        with bench.load.beside(server, self.registrations, seconds, gives_way=True) as beside:
            values = self.quiet(bench, server, rate)
            registered = bench.count(beside.wait(), "registration: ")
        values["registrations/s"] = registered.rate
        values["registration p50, ms"] = registered.latency("p50") / 1000
        values[REGISTERED_LATE] = registered.lateness("p99") / 1000
        return values


class ChangesBeside(Registering):
    number, title = 4, "as 2, beside 200 registrations/s of 500 topics on 20 brokers, one topic of each changed"
    registrations = _registrations(500, 20, "one", 200)
    runs = 2
    reaches = (Reach("requests/s, busy / quiet", ">=", 0.9), Reach("p99.9, µs, busy / quiet", "<=", 1.25))

    def quiet(self, bench, server, rate):
        closed = bench.run(server, (*HOT, "--depth", "16", "--mode", "closed"))
        return {"requests/s": closed.rate, **super().quiet(bench, server, rate)}


class WholeBrokersBeside(Registering):
    number, title = 5, "as 2, beside 20 registrations/s that change all 2,000 topics of a broker"
    registrations = _registrations(2000, 4, "changed", 20)
    reaches = (Reach("p99.9, µs, busy / quiet", "<=", 2), Reach("p99, µs, busy / quiet", "<=", 1.25))


class RegistrationReply(Case):
    number, title = 6, "registration of 5,000 topics of which one changes, 20 brokers, 10 registrations/s"
    reaches = (Reach("p50, ms", "<=", 0.25, "java"),)

    def measure(self, bench, server, turn):
        result = bench.run(server, _registrations(5000, 20, "one", 10), max(bench.seconds, 2))
        return {"p50, ms": result.latency("p50") / 1000, "p99, ms": result.latency("p99") / 1000,
                "server CPU, ms a registration": result.server_ns / 1e6, "resident, MB": result.resident_kib / 1024}


class UnchangedRegistration(Case):
    number, title = 7, "registration of 10,000 topics of which none changes"
    rounds_max = 3
    count = 1000
    limit = 60  # seconds for so many: the original needs 15
    forms = (("plain", "unchanged"), ("compressed", "unchanged-compressed"))
    reaches = (Reach("resident after 1,000 / before", "<=", 1.1),)
    note = ("`before` is after a few registrations, brokers gone again. The null server's CPU time is what it takes to "
            "receive so many bytes.")

    def measure(self, bench, server, turn):
        values = {}
        for form, kind in self.forms:
            arguments = _registrations(10_000, 4, kind)
            bench.run(server, arguments, 0.3)
            time.sleep(1)
            before = server.resident_kib()
            done, cpu = 0, 0.0
            deadline = time.monotonic() + self.limit
            while done < self.count:
                if time.monotonic() > deadline:
                    raise Failure(f"{self.count:,} registrations, {form}, within {self.limit} s",
                                  f"{done} of them, each {cpu / done / 1e6:,.0f} ms of its CPU time")
                result = bench.run(server, arguments, max(bench.seconds, 2))
                done += result.replies
                cpu += result.replies * result.server_ns
            time.sleep(1)
            values[f"server CPU, ms a registration, {form}"] = cpu / done / 1e6
            values[f"resident, MB, before, {form}"] = before / 1024
            values[f"resident, MB, after 1,000, {form}"] = server.resident_kib() / 1024
            ratio = server.resident_kib() / before
            worst = values.get("resident after 1,000 / before", 0)
            values["resident after 1,000 / before"] = max(ratio, worst)
        return values


class Heartbeats(Case):
    number, title = 9, "heartbeats of 16 brokers, depth 16"
    codes = ("322", "904")
    reaches = tuple(Reach(f"{code}: requests/s", ">=", 0.6, "null") for code in codes)

    def measure(self, bench, server, turn):
        values = {}
        for code in self.codes:
            arguments = ("--workload", "heartbeat", "--topics", "80", "--topics-per-broker", "20", "--brokers", "4",
                         "--depth", "16", "--heartbeat-code", code, "--mode", "closed")
            values |= _costs(bench.run(server, arguments), f"{code}: ")
        return values


class Memory(Case):
    number, title = 10, "resident memory, idle and with 100,000 topics on 8 brokers each"
    servers = SPEAKING
    fresh = True
    rounds_max = 3
    reaches = (Reach("with topics, MB", "<=", 80, unit="MB"), Reach("with topics, MB", "<=", 0.1, "java"),
               Reach("idle, MB", "<=", 8, unit="MB"))

    def measure(self, bench, server, turn):
        bench.start(server)
        time.sleep(1)
        idle = server.resident_kib()
        with bench.load.beside(server, _brokers(100_000, 2000, 8), STAY):
            time.sleep(2)
            return {"idle, MB": idle / 1024, "with topics, MB": server.resident_kib() / 1024}


class Connections(Case):
    number, title = 11, "as many connections as the descriptor limit allows, idle, then at once"
    servers = SPEAKING
    fresh = True
    rounds_max = 3
    limit = 60  # seconds
    reaches = (Reach("KiB a connection, each used once", "<=", 4, unit="KiB"), Reach("not served", "<=", 0))

    def measure(self, bench, server, turn):
        bench.start(server)
        time.sleep(1)
        before = server.resident_kib()
        size, files = clients.crowd_size(server), machine.open_files(server.pid)
        values = {"connections": size}
        with clients.crowd(server, size) as crowd:
            crowd.establish(self.limit)
            time.sleep(1)
            values["KiB a connection, never used"] = (server.resident_kib() - before) / size
            answered = crowd.ask(self.limit)
            time.sleep(1)
            values["KiB a connection, each used once"] = (server.resident_kib() - before) / size
            missing = size - answered
        clients.wait_closed(server, files, self.limit)
        begin = time.monotonic()
        with clients.crowd(server, size) as crowd:
            answered = crowd.ask(self.limit)
            values["all at once: s until served"] = time.monotonic() - begin
            values["not served"] = missing + size - answered
        return values


class MassDisconnect(Disturbed):
    number, title = 12, "5,000 registered brokers lose their connections at once"
    servers = ALL
    reaches = (Reach("gone after, s", "<=", 1, unit="s"), Reach("replies wrong or missing", "<=", 0),
               Reach("p99, µs, busy / quiet", "<=", 1.5))
    window = 1.0  # seconds from just before the loss: in a longer one it would not show

    def quiet(self, bench, server, rate):
        return _tail(bench.run(server, _open(rate), self.window))

    def busy(self, bench, server, rate):
        with bench.load.beside(server, _brokers(25_000, 20, 4), STAY) as brokers:
            run = bench.load.begin(server, _open(rate), self.window, 1.0)
            try:
                run.wait_ready()
                wait_first_request(1.0 + 0.05)
                begin = time.monotonic()
                brokers.kill()
                lost = {}
                if server.answers:
                    clients.wait_brokers(server, 4, 60)  # those of the queried topics
                    lost["gone after, s"] = time.monotonic() - begin
                result = bench.count(run.wait())
                return {**_tail(result), **lost, "replies wrong or missing": sum(result.faults.values())}
            finally:
                run.kill()


class LongAnswers(Disturbed):
    number, title = 13, "206 with 200,000 topics and 106 with 5,000 brokers, 10 of each a second, beside queries"
    servers = ALL
    reaches = (Reach("p99, µs, busy / quiet", "<=", 1.5),)
    note = Disturbed.note + " The answers are read on the processor of the load; the null server has the same bytes at hand."
    rate = 20

    def measure(self, bench, server, turn):
        with bench.load.beside(server, _brokers(200_000, 160, 4), STAY):
            return super().measure(bench, server, turn)

    def busy(self, bench, server, rate):
        asker = clients.LongAnswers(server, self.rate)
        begin = time.monotonic()
        with asker.at_work():
            values = self.quiet(bench, server, rate)
        values["long answers/s"] = asker.answered / (time.monotonic() - begin)
        for code, length in asker.bytes.items():
            values[f"answer to {code}, MB"] = length / 1e6
        return values


class Start(Case):
    number, title = 14, "process start to first answer"
    servers = SPEAKING
    fresh = True
    starts = 5
    reaches = (Reach("ms to the first answer", "<=", 30, unit="ms"),)

    def measure(self, bench, server, turn):
        seconds = []
        for _ in range(self.starts):
            seconds.append(bench.start(server))
            server.stop()
        return {"ms to the first answer": statistics.median(seconds) * 1000}


CASES = (RouteDepth1, RouteHot, RouteCold, ChangesBeside, WholeBrokersBeside, RegistrationReply, UnchangedRegistration,
         Heartbeats, Memory, Connections, MassDisconnect, LongAnswers, Start)
