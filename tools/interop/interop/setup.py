"""Fetches the peers by package name (Maven, the Go proxy) and compiles the drivers, once per machine."""

import glob
import hashlib
import os
import shutil
import time

from .checks import Failure
from .procs import Proc

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WORK = os.path.join(HERE, ".work")
LINES = ("5.5.0", "4.9.7")
GO_CLIENT = os.path.join(WORK, "bin", "goclient")

TRIES = 4
STEP_LIMIT = 900


def jars(name):
    """The class path entry with the jars of a line (or "grpc")."""
    return os.path.join(WORK, "jars", name, "*")


def classes(name):
    """The folder with the compiled driver of a line (or "grpc")."""
    return os.path.join(WORK, "classes", name)


def setup(report, lines, grpc, go):
    """Makes everything that the chosen scenarios need; what is there already and unchanged is left alone."""
    begin = time.monotonic()
    building = _start_go() if go and _stale("go", _go_sources()) else None
    for line in lines:
        profile = ["-P", "five"] if line.startswith("5") else []
        _fetch(line, "pom.xml", [f"-Dline={line}", *profile])
        _compile(line, "Driver.java")
    if grpc:
        _fetch("grpc", "grpc-pom.xml", [])
        _compile("grpc", "GrpcDriver.java")
    if building:
        _finish_go(building)
    report.note(f"peers ready after {time.monotonic() - begin:.0f} s")


def _go_sources():
    return sorted(glob.glob(os.path.join(HERE, "go", "*.go"))) + [os.path.join(HERE, "go", n) for n in ("go.mod", "go.sum")]


def _start_go():
    os.makedirs(os.path.dirname(GO_CLIENT), exist_ok=True)
    argv = [_tool("go"), "build", "-mod=readonly", "-o", GO_CLIENT, "."]
    return Proc("go build", ["env", "-C", os.path.join(HERE, "go"), *argv], os.path.join(WORK, "setup", "go"))


def _finish_go(proc):
    for _ in range(TRIES):
        if _wait(proc) == 0:
            _done("go", _go_sources())
            return
        time.sleep(3)
        proc = _start_go()
    raise Failure("go build to work", proc.tail(), proc.log)


def _fetch(name, pom, flags):
    pom = os.path.join(HERE, "java", pom)
    target = os.path.join(WORK, "jars", name)
    if not _stale("jars-" + name, [pom]):
        return
    shutil.rmtree(target, ignore_errors=True)
    argv = [_tool("mvn"), "-B", "-q", "-f", pom, *flags, "dependency:copy-dependencies", "-DoutputDirectory=" + target]
    _run("mvn " + name, argv)
    _done("jars-" + name, [pom])


def _compile(name, source):
    source = os.path.join(HERE, "java", source)
    if not _stale("classes-" + name, [source]):
        return
    target = classes(name)
    shutil.rmtree(target, ignore_errors=True)
    os.makedirs(target)
    _run("javac " + name, [_tool("javac"), "-nowarn", "-cp", jars(name), "-d", target, source], tries=1)
    _done("classes-" + name, [source])


def _run(name, argv, tries=TRIES):
    for number in range(tries):
        if number:
            time.sleep(3 * number)
        proc = Proc(name, argv, os.path.join(WORK, "setup", name.replace(" ", "-")))
        if _wait(proc) == 0:
            return
    raise Failure(f"{name} to work", proc.tail(1000), proc.log)


def _wait(proc):
    try:
        return proc.popen.wait(STEP_LIMIT)
    finally:
        proc.kill()


def _tool(name):
    path = shutil.which(name)
    if not path:
        raise Failure(f"{name} on the PATH", "it is not")
    return path


def _digest(files):
    total = hashlib.sha256()
    for path in files:
        with open(path, "rb") as data:
            total.update(data.read())
    return total.hexdigest()


def _mark(step):
    return os.path.join(WORK, "setup", step + ".done")


def _stale(step, files):
    try:
        with open(_mark(step)) as mark:
            return mark.read() != _digest(files)
    except OSError:
        return True


def _done(step, files):
    with open(_mark(step), "w") as mark:
        mark.write(_digest(files))
