"""The command line: chooses scenarios, spreads them over lanes, counts."""

import argparse
import os
import queue
import shutil
import sys
import threading
import time

from . import procs, setup
from .checks import Failure, Report, checks_of
from .job import Job, QuietJob, Server, remove_stores
from .scenarios import acting, admin, container, crash, go, java, proxy, register, slavesync, twons
from .spoils import SPOILS

DEFAULT_SERVER = os.path.join(setup.HERE, "..", "..", "target", "release", "mqnamesrv")

# What shares a server and peers, the longest first: (name of the job, its class, its scenarios).
PLAN = (
    ("quiet", QuietJob, (register.Register, java.Java, go.Go, proxy.Proxy, admin.Admin, slavesync.SlaveSync)),
    ("acting", Job, (acting.Acting,)),
    ("acting904", Job, (acting.Acting904,)),
    ("twons", Job, (twons.TwoServers,)),
    ("crash", Job, (crash.Crash,)),
    ("container", Job, (container.Container,)),
)


def main(arguments=None):
    """Runs the suite; returns the exit status."""
    options = _parse(arguments)
    if options.list:
        _list()
        return 0
    procs.guard()
    report = Report()
    os.makedirs(setup.WORK, exist_ok=True)
    jobs = _jobs(options, report)
    try:
        _setup(report, options, jobs)
    except Failure as error:
        report.line("FAIL", "setup", "peers", 0, error, error.log)
        jobs = []
    if not options.setup:
        _run(jobs, options.jobs)
        _close(report, options)
    return 1 if report.failed else 0


def _parse(arguments):
    parser = argparse.ArgumentParser(prog="run", description="Real RocketMQ peers against a name server on loopback.")
    parser.add_argument("--server", default=DEFAULT_SERVER, help="path of mqnamesrv, or java:5.5.0, java:4.9.7")
    parser.add_argument("--only", help="names of scenarios, separated by commas")
    parser.add_argument("--line", choices=setup.LINES, help="peers of one line only")
    parser.add_argument("--spoil", action="store_true", help="spoil the server for each check: the check must fail")
    parser.add_argument("--jobs", type=int, default=2, help="how many groups of scenarios run at a time")
    parser.add_argument("--keep", action="store_true", help="keep the logs of a run that passed")
    parser.add_argument("--list", action="store_true", help="list the scenarios, their checks and the spoils of each")
    parser.add_argument("--setup", action="store_true", help="only fetch and build the peers")
    options = parser.parse_args(arguments)
    known = {scenario.name for _, _, scenarios in PLAN for scenario in scenarios}
    options.only = set(options.only.split(",")) if options.only else known
    if options.only - known:
        parser.error(f"no scenario {', '.join(sorted(options.only - known))}; there are {', '.join(sorted(known))}")
    options.server = Server(options.server)
    if options.server.java and options.server.java not in setup.LINES:
        parser.error(f"a Java server is one of {', '.join('java:' + line for line in setup.LINES)}")
    if options.server.path and not (options.list or options.setup) and not os.access(options.server.path, os.X_OK):
        parser.error(f"no server at {options.server.path}; build it, or name one with --server")
    options.folder = os.path.join(setup.WORK, time.strftime("run-%m%d-%H%M%S-") + str(os.getpid()))
    return options


def _jobs(options, report):
    jobs = []
    for name, kind, scenarios in PLAN:
        for line in setup.LINES:
            chosen = [s for s in scenarios if s.name in options.only and line in s.lines]
            if chosen and options.line in (None, line):
                jobs.append(kind(name, line, chosen, options, report))
    return jobs


def _setup(report, options, jobs):
    everything = options.setup and not options.line
    lines = setup.LINES if everything else {job.line for job in jobs} | {options.server.java} - {None}
    names = {scenario.name for job in jobs for scenario in job.scenarios}
    setup.setup(report, sorted(lines, reverse=True), grpc="proxy" in names, go="go" in names)


def _run(jobs, lanes):
    """Runs the jobs over some lanes; a lane is a thread, and what it starts ends with it."""
    waiting = queue.SimpleQueue()
    for job in jobs:
        waiting.put(job)

    def lane():
        while True:
            try:
                job = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                job.run()
            finally:
                procs.end_mine()

    threads = [threading.Thread(target=lane, name=f"lane-{number}", daemon=True) for number in range(lanes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _close(report, options):
    report.note("time by scenario, preparation included:")
    for name, seconds in sorted(report.seconds.items(), key=lambda item: -item[1]):
        report.note(f"  {seconds:6.0f} s  {name}")
    for failure in report.failures:
        report.note(f"failed: {failure}")
    remove_stores(options.folder)
    if report.failed or options.keep:
        report.note(f"logs: {options.folder}")
    else:
        shutil.rmtree(options.folder, ignore_errors=True)
    if report.passed + report.failed == 0:
        report.line("FAIL", "suite", "at least one check ran", 0)
    if report.skipped:
        report.note(f"{report.skipped} skipped")
    report.note(f"{report.passed} passed, {report.failed} failed")


def _list():
    for _, _, scenarios in PLAN:
        for scenario in scenarios:
            print(f"{scenario.name} ({', '.join(scenario.lines)})")
            for method in checks_of(scenario):
                print(f"  {method.check['title']}")
                print(f"      must fail with: {', '.join(method.check['spoils'])}")


def _complete():
    """Every check has a spoil that exists: what cannot fail is no check."""
    for _, _, scenarios in PLAN:
        for scenario in scenarios:
            for method in checks_of(scenario):
                names = [*method.check["spoils"], *method.check["also"]]
                assert method.check["spoils"], f"{scenario.name}: {method.check['title']} has no spoil"
                assert all(name in SPOILS for name in names), f"{scenario.name}: unknown spoil in {names}"


_complete()

if __name__ == "__main__":
    sys.exit(main())
