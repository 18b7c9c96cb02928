"""The command line: chooses cases and servers, runs them, prints the table."""

import argparse
import json
import os
import resource
import sys
import time

from interop import procs
from interop.checks import Failure

from . import elsewhere, machine, servers, table
from .cases import CASES
from .measure import Bench, run_case

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "..", "..", ".."))
TARGET = os.path.join(ROOT, "target")
RELEASE = os.path.join(TARGET, "release")
KNOWN = {kind.name: kind for kind in servers.KINDS}


class Report:
    """What a run found."""

    def __init__(self, options):
        self.options = options
        self.machine = machine.describe()
        self.placement = ""
        self.commit = servers.commit(ROOT)
        self.unavailable = {}  # why servers were not there
        self.outcomes = []
        self.elsewhere = elsewhere.rows(ROOT, TARGET)

    @staticmethod
    def note(text):
        """Says how far the run is."""
        print(text, file=sys.stderr, flush=True)

    def stopped_by(self, signal_name):
        """Says what is left of a run that is stopped."""
        done = len(self.outcomes)
        kept = f"; the table of those is {self.options.folder}/table.md" if done else ""
        self.note(f"stopped by {signal_name} after {done} of {len(self.options.cases)} cases{kept}")

    def save(self):
        """Writes what there is so far."""
        with open(os.path.join(self.options.folder, "table.md"), "w") as out:
            out.write(table.markdown(self))
        for path in filter(None, (os.path.join(self.options.folder, "table.json"), self.options.json)):
            with open(path, "w") as out:
                json.dump(table.as_json(self), out, indent=1)

    def lack(self, outcome, name):
        """Why a server has no figures in a case, or not of all rounds."""
        if name not in outcome.case.servers:
            return "takes no part"
        if name not in self.options.servers:
            return "left out by --servers"
        if name in self.unavailable:
            return f"cannot be had: {self.unavailable[name]}"
        if name in outcome.errors:
            return f"failed in round {len(outcome.samples.get(name, [])) + 1}: {outcome.errors[name]}"
        return None

    def is_served(self):
        """Whether our server did all it was asked to, and rightly."""
        return not any(outcome.errors.get("waypost") or outcome.faults("waypost") for outcome in self.outcomes)


def main(arguments=None):
    """Runs the cases; returns the exit status."""
    options = _parse(arguments)
    procs.guard()  # for the tests that the report runs
    _raise_limit()
    os.makedirs(options.folder)
    report = Report(options)
    procs.guard(report.stopped_by)
    placement = machine.Placement()
    report.placement = placement.text()
    ready = {}
    for name in options.servers:
        server = KNOWN[name](options, placement)
        try:
            server.prepare(report)
            ready[name] = server
        except Failure as error:
            report.unavailable[name] = " ".join(str(error).split())
            report.note(f"{server.title}: {error}; log: {error.log}")
    bench = Bench(options, placement, ready)
    for case in options.cases:
        report.outcomes.append(run_case(bench, case(), options.rounds, report))
        report.save()
    print(table.markdown(report))
    report.note(f"table, figures of all rounds and logs: {options.folder}")
    return 0 if report.is_served() else 1


def _parse(arguments):
    parser = argparse.ArgumentParser(prog="run", description="Name servers side by side on loopback.")
    parser.add_argument("--cases", default=",".join(str(case.number) for case in CASES), help="numbers, separated by commas")
    parser.add_argument("--servers", default=",".join(KNOWN), help="names, separated by commas; their order is fixed")
    parser.add_argument("--rounds", type=int, default=5, help="how often each server is measured (5)")
    parser.add_argument("--seconds", type=float, default=5, help="length of a measured run (5)")
    parser.add_argument("--warm-up-max", type=float, default=60, help="bound for the warm-up of a run, for quick tests")
    parser.add_argument("--foreign-max", type=float, default=8,
                        help="percent of the processors that others may have before a measurement is repeated (8)")
    parser.add_argument("--stolen-max", type=float, default=0.3,
                        help="percent of the processors that a hypervisor may take from a run that measures a tail "
                             "(%(default)s)")
    parser.add_argument("--server", default=os.path.join(RELEASE, "mqnamesrv"), help="path of mqnamesrv")
    parser.add_argument("--loadgen", default=os.path.join(RELEASE, "loadgen"), help="path of loadgen")
    parser.add_argument("--json", help="write the figures of all rounds to this file too")
    parser.add_argument("--list", action="store_true", help="list the cases")
    options = parser.parse_args(arguments)
    numbers = {str(case.number): case for case in CASES}
    if options.list:
        for number, case in numbers.items():
            print(f"{number:>3}  {case.title}")
        sys.exit(0)
    chosen = options.cases.split(",")
    names = options.servers.split(",")
    if there := [word for word in chosen if word in elsewhere.NUMBERS and word not in numbers]:
        parser.error(f"{' and '.join(there)}: measured by a bench or a test, which README.md names; the table has what they said last")
    if unknown := [word for word in chosen if word not in numbers] + [word for word in names if word not in KNOWN]:
        parser.error(f"unknown: {', '.join(unknown)}; there are the cases {', '.join(numbers)} and the servers {', '.join(KNOWN)}")
    if not 1 <= options.rounds <= 100 or not 0.1 <= options.seconds <= 600:
        parser.error("rounds are 1 to 100, seconds 0.1 to 600")
    for path in (options.loadgen, *([options.server] if "waypost" in names else [])):
        if not os.access(path, os.X_OK):
            parser.error(f"no program at {path}; `cargo build --release --workspace` makes it")
    options.server, options.loadgen = os.path.abspath(options.server), os.path.abspath(options.loadgen)
    options.cases = [numbers[number] for number in dict.fromkeys(chosen)]
    options.servers = [name for name in KNOWN if name in names]
    options.work = os.path.join(TARGET, "compare")
    options.folder = os.path.join(options.work, time.strftime("run-%m%d-%H%M%S-") + str(os.getpid()))
    return options


def _raise_limit():
    """Takes all the descriptors that the system allows; the servers inherit it."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
