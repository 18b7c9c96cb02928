"""Processes and ports: started in sessions of their own, remembered by pid, ended whatever happens."""

import atexit
import os
import random
import shutil
import signal
import socket
import subprocess
import threading
import time

from .checks import Failure

HOST = "127.0.0.1"
PORT_FIRST, PORT_LAST = 20000, 32000  # all below the range that the kernel takes outgoing ports from
PORT_BLOCK = 10

_alive = set()
_lock = threading.RLock()
_ports_used = set()
_closing = False


def port_block(size=3):
    """Returns the first port of a block of ten whose first `size` ports could be bound just now."""
    while True:
        base = random.randrange(PORT_FIRST, PORT_LAST, PORT_BLOCK)
        with _lock:
            if base in _ports_used:
                continue
            _ports_used.add(base)
        if all(_bindable(base + i) for i in range(size)):
            return base


def _bindable(port):
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((HOST, port))
        except OSError:
            return False
    return True


class Proc:
    """A process with its folder and its log. Start it from a thread that outlives it: see `_leash`."""

    def __init__(self, name, argv, folder, talk=False, env=None):
        self.name = name
        self.folder = folder
        os.makedirs(folder, exist_ok=True)
        self.log = os.path.join(folder, "output.log")
        self._mark = os.path.getsize(self.log) if os.path.exists(self.log) else 0
        with open(self.log, "ab") as log, _lock:
            if _closing:
                raise SystemExit(1)
            self.popen = subprocess.Popen(
                _leash(argv), cwd=folder, env={**clean_environment(), **(env or {})}, start_new_session=True,
                stdin=subprocess.PIPE if talk else subprocess.DEVNULL,
                stdout=subprocess.PIPE if talk else log, stderr=log)
            self._owner = threading.get_ident()
            _alive.add(self)

    @property
    def pid(self):
        return self.popen.pid

    def running(self):
        """Whether the process has not ended yet."""
        return self.popen.poll() is None

    def output(self):
        """What this process has written so far (not what an earlier one wrote to the same log)."""
        with open(self.log, "rb") as log:
            log.seek(self._mark)
            return log.read().decode(errors="replace")

    def wait_output(self, text, limit):
        """Waits until the process has written `text`; fails when it ends before, or the time is over."""
        deadline = time.monotonic() + limit
        while text not in self.output():
            if not self.running():
                raise Failure(f"{self.name} to start", f"it ended with {self.popen.returncode}: {self.tail()}", self.log)
            if time.monotonic() > deadline:
                raise Failure(f"{self.name} to print {text!r} within {limit:g} s", self.tail(), self.log)
            time.sleep(0.05)

    def tail(self, count=400):
        """The end of what the process has written."""
        return self.output()[-count:]

    def signal(self, number):
        """Sends a signal to the process (not to its group: a stopped shell would not pass it on)."""
        if self.running():
            os.kill(self.pid, number)

    def kill(self):
        """Ends the process with SIGKILL and waits for it."""
        if self.running():
            self.popen.kill()
        self.popen.wait()
        _release(self)

    def stop(self, limit=20):
        """Ends the process with SIGTERM, and with SIGKILL when that takes too long."""
        self.signal(signal.SIGTERM)
        try:
            self.popen.wait(limit)
        except subprocess.TimeoutExpired:
            pass
        self.kill()


def _leash(argv):
    """Has the kernel end the process with the thread that started it: not even SIGKILL of the suite leaves an orphan."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", "--", *argv] if setpriv else argv


def _release(proc):
    with _lock:
        _alive.discard(proc)
    for pipe in (proc.popen.stdin, proc.popen.stdout):
        if pipe:
            try:
                pipe.close()
            except OSError:
                pass


def clean_environment():
    """The environment without what a peer would read from it."""
    return {key: value for key, value in os.environ.items()
            if not key.startswith(("ROCKETMQ_", "NAMESRV_ADDR", "JAVA_TOOL_OPTIONS", "JAVA_OPT"))}


def end_all():
    """Ends every process that is still there, and lets no other one start."""
    global _closing
    with _lock:
        _closing = True
        left = list(_alive)
    for proc in left:
        if proc.running():
            try:
                os.kill(proc.pid, signal.SIGKILL)  # ends a stopped one too
            except ProcessLookupError:
                pass
    for proc in left:
        proc.popen.wait()


def end_mine():
    """Ends every process that this thread has started and that is still there."""
    with _lock:
        mine = [proc for proc in _alive if proc._owner == threading.get_ident()]
    for proc in mine:
        proc.kill()


def guard(last_words=None):
    """Makes sure that nothing outlives the suite: at its end, after an error, after a signal (then `last_words` are called)."""
    atexit.register(end_all)

    def give_up(number, _frame):
        try:
            end_all()
            if last_words:
                last_words(signal.Signals(number).name)
        finally:  # nobody may be there to be told, or it was in the middle of a line
            os._exit(128 + number)  # lanes may hang in a wait; nothing is left to tidy up
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, give_up)


def connections(pid, port):
    """How many established TCP connections a process has to a port of this machine."""
    inodes = set()
    for entry in os.listdir(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(f"/proc/{pid}/fd/{entry}")
        except OSError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    return sum(1 for remote, inode in established() if remote == port and inode in inodes)


def established():
    """(remote port, inode) of every established TCP connection of this machine."""
    found = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(table) as lines:
                rows = lines.readlines()[1:]
        except OSError:
            continue
        for row in rows:
            fields = row.split()
            if fields[3] == "01":
                found.append((int(fields[2].rsplit(":", 1)[1], 16), fields[9]))
    return found
