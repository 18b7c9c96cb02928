"""A frame-aware forwarder that stands between peers and a name server.

It passes frames on as they are, until a spoil is switched on: then it alters, swallows or answers some of them, so
that the server looks wrong from the outside in one way. It can also turn into a black hole: both sockets of every
connection stay open and nothing passes.
"""

import socket
import threading

from . import wire
from .procs import HOST, port_block


class Forwarder:
    """Listens on a port of its own (`address`) and forwards to `upstream`."""

    def __init__(self, upstream):
        self._upstream = wire.split(upstream)
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind((HOST, port_block(1)))
        self._listener.listen(128)
        self.address = "%s:%d" % self._listener.getsockname()
        self._open = threading.Event()  # cleared while the forwarder is a black hole
        self._open.set()
        self.spoils = ()
        self._kept = []
        self._links = set()
        self._lock = threading.Lock()
        _thread(self._accept)

    def black_hole(self, on):
        """Stops (or goes on) reading and forwarding, with every socket left open."""
        if on:
            self._open.clear()
        else:
            self._open.set()

    def spoil(self, spoils):
        """Replaces the spoils that are on. What an earlier one kept open is closed."""
        self.spoils = tuple(spoils)
        with self._lock:
            kept, self._kept = self._kept, []
        for sock in kept:
            _close(sock)

    def close(self):
        """Ends the forwarder and all of its connections."""
        self.spoil(())
        _close(self._listener)
        self._open.set()
        with self._lock:
            links = list(self._links)
        for link in links:
            _close(link.peer)
            _close(link.server)

    def _accept(self):
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            self._open.wait()
            try:
                server = socket.create_connection(self._upstream, timeout=5)
            except OSError:
                _close(peer)
                continue
            server.settimeout(None)
            for sock in (peer, server):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            link = _Link(peer, server)
            with self._lock:
                self._links.add(link)
            _thread(self._requests, link)
            _thread(self._responses, link)

    def _requests(self, link):
        try:
            while raw := wire.read_raw(link.peer):
                self._open.wait()
                self._request(link, raw)
        except (OSError, ConnectionError):
            pass
        if link.registered and any(spoil.keeps_open for spoil in self.spoils):
            with self._lock:
                self._kept.append(link.server)
            _close(link.peer)
        else:
            self._drop(link)

    def _request(self, link, raw):
        frame = wire.decode(raw)
        if frame is None:
            link.server.sendall(raw)
            return
        link.registered = link.registered or frame.code == wire.REGISTER
        link.asked[frame.header.get("opaque")] = frame
        for spoil in self.spoils:
            answer = spoil.answer(frame)
            if answer is not None:
                if not frame.header.get("flag", 0) & wire.ONE_WAY_BIT:
                    answer.header.update(opaque=frame.header.get("opaque"), flag=wire.RESPONSE_BIT)
                    link.to_peer(answer.encode())
                return
        link.server.sendall(raw)

    def _responses(self, link):
        try:
            while raw := wire.read_raw(link.server):
                self._open.wait()
                link.to_peer(self._response(link, raw))
        except (OSError, ConnectionError):
            pass
        self._open.wait()
        self._drop(link)

    def _response(self, link, raw):
        frame = wire.decode(raw)
        asked = link.asked.pop(frame.header.get("opaque"), None) if frame else None
        if asked is None or not self.spoils:
            return raw
        changed = False
        for spoil in self.spoils:
            changed = spoil.alter(asked, frame) or changed
        return frame.encode() if changed else raw

    def _drop(self, link):
        _close(link.peer)
        _close(link.server)
        with self._lock:
            self._links.discard(link)


class _Link:
    """A connection of a peer and the one to the server that belongs to it."""

    def __init__(self, peer, server):
        self.peer = peer
        self.server = server
        self.asked = {}
        self.registered = False
        self._lock = threading.Lock()

    def to_peer(self, raw):
        with self._lock:  # answers of the server and answers of a spoil
            self.peer.sendall(raw)


def _thread(target, *args):
    threading.Thread(target=target, args=args, daemon=True).start()


def _close(sock):
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    sock.close()
