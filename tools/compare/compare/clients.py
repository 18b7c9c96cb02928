"""Clients that the load generator does not have: thousands of idle connections, and questions with long answers."""

import contextlib
import resource
import selectors
import socket
import threading
import time

from interop import wire
from interop.checks import Failure, wait_for

from . import machine

_IP_BIND_ADDRESS_NO_PORT = 24
_PORTS_OF_AN_ADDRESS = 4000
_QUERY = wire.request(wire.ROUTE, {"topic": "none"}).encode()


class Crowd:
    """Connections that are opened all at once."""

    _count = 0

    def __init__(self, server, size):
        self.server = server
        self.size = size
        self.refused = 0
        self._socks = {}
        Crowd._count += 1
        self._number = 1 + Crowd._count % 250
        self._selector = selectors.EpollSelector()

    def connect(self):
        """Begins to connect."""
        host, port = wire.split(self.server.address)
        for index in range(self.size):
            sock = socket.socket()
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_IP, _IP_BIND_ADDRESS_NO_PORT, 1)
            sock.bind((self._source(index), 0))
            sock.connect_ex((host, port))
            self._selector.register(sock, selectors.EVENT_WRITE)
            self._socks[sock] = b""

    def _source(self, index):
        """Each crowd has addresses of its own, since the ports of the one before may still be taken, and several of
        them, since the kernel takes long to find a free port when most of an address's are taken."""
        return f"127.0.{self._number}.{1 + index // _PORTS_OF_AN_ADDRESS}"

    def establish(self, limit):
        """Waits until all are connected."""
        self._serve(limit, ask=False)

    def ask(self, limit):
        """Asks one question over each, as soon as it is connected; returns how many were answered."""
        for sock in self._socks:
            self._watch(sock, selectors.EVENT_WRITE)
        self._serve(limit, ask=True)
        return sum(1 for answer in self._socks.values() if answer)

    def _serve(self, limit, ask):
        deadline = time.monotonic() + limit
        waiting = set(self._socks)
        while waiting and time.monotonic() < deadline:
            for key, events in self._selector.select(0.1):
                sock = key.fileobj
                try:
                    done = self._step(sock, events, ask)
                except OSError:
                    self.refused += 1
                    done = True
                if done:
                    waiting.discard(sock)
                    self._selector.unregister(sock)

    def _step(self, sock, events, ask):
        if events & selectors.EVENT_WRITE:
            error = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if error:
                raise OSError(error, "not connected")
            if not ask:
                return True
            sock.send(_QUERY)
            self._watch(sock, selectors.EVENT_READ)
            return False
        answer = sock.recv(4096)
        if not answer:
            raise ConnectionError("closed instead of answering")
        self._socks[sock] = answer
        return True

    def _watch(self, sock, events):
        try:
            self._selector.modify(sock, events)
        except KeyError:
            self._selector.register(sock, events)

    def close(self):
        """Closes all."""
        for sock in self._socks:
            sock.close()
        self._selector.close()


@contextlib.contextmanager
def crowd(server, size):
    """A crowd that begins to connect, and is closed when what is done within ends."""
    people = Crowd(server, size)
    try:
        people.connect()
        yield people
    finally:
        people.close()


def wait_closed(server, files, limit):
    """Waits until the server has let go of a crowd: it has about as many descriptors as before."""
    def closed():
        now = machine.open_files(server.pid)
        return now <= files + 20, now
    wait_for(closed, limit, f"about {files} open descriptors")


def crowd_size(server):
    """As many connections as this process and the server may have, less what they need otherwise."""
    mine, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    theirs, _ = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
    return min(mine, theirs) - machine.open_files(server.pid) - 200


def brokers(server):
    """How many brokers the cluster table has."""
    return len(wire.cluster(server.address).get("brokerAddrTable") or {})


def wait_brokers(server, count, limit):
    """Waits until the cluster table has no more brokers than `count`; returns the seconds that took."""
    begin = time.monotonic()
    wait_for(lambda: (brokers(server) <= count, brokers(server)), limit, f"at most {count} brokers", every=0.02)
    return time.monotonic() - begin


class LongAnswers:
    """Asks 206 and 106 in turn over a connection of its own, at a rate."""

    def __init__(self, server, rate):
        self._server = server
        self._pause = 1 / rate
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.answered = 0
        self.bytes = {}
        self.error = None

    @contextlib.contextmanager
    def at_work(self):
        """Asks while what is done within lasts."""
        self._thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            self._thread.join()
        if self.error:
            raise Failure("answers to 206 and 106", self.error)

    def _run(self):
        try:
            with socket.create_connection(wire.split(self._server.long_address), timeout=30) as sock:
                due = time.monotonic()
                while not self._stop.wait(max(due - time.monotonic(), 0)):
                    due += self._pause
                    self._ask(sock, (wire.TOPICS, wire.CLUSTER)[self.answered % 2])
        except (OSError, ValueError) as error:
            self.error = repr(error)

    def _ask(self, sock, code):
        sock.sendall(wire.request(code).encode())
        raw = wire.read_raw(sock)
        answer = raw and wire.decode(raw)
        if not answer or answer.code != wire.SUCCESS or not answer.body:
            raise ValueError(f"{code} answered {answer and answer.header}")
        self.answered += 1
        self.bytes[code] = len(raw)
