"""A tiny client of the name server's protocol: JSON header, one connection per question.

It answers in milliseconds and needs no JVM, so the suite can poll a server every few hundredths of a second and
measure how fast a route goes.
"""

import json
import re
import socket
import struct

PUT_KV, GET_KV, DELETE_KV = 100, 101, 102
REGISTER, UNREGISTER, ROUTE, CLUSTER = 103, 104, 105, 106
WIPE, TOPICS, DELETE_TOPIC, SET_CONFIG, GET_CONFIG = 205, 206, 216, 318, 319
DATA_VERSION, ADD_WRITE, MEMBERS, HEARTBEAT, MIN_ID_CHANGED = 322, 327, 901, 904, 905

SUCCESS, NO_PERMISSION, NO_TOPIC, NOT_FOUND = 0, 16, 17, 22

RESPONSE_BIT, ONE_WAY_BIT = 1, 2
VERSION = 513  # what a 5.5.0 peer says
FRAME_MAX = 16 * 1024 * 1024

_BARE_KEY = re.compile(r'"(?:\\.|[^"\\])*"|([{,]\s*)(-?\d+)(\s*:)')


def loads(text):
    """Parses JSON that may have bare integer keys, as the bodies of 106 and 901 do (`{0:"a"}`)."""
    if isinstance(text, bytes):
        text = text.decode()
    return json.loads(_BARE_KEY.sub(lambda m: f'{m[1]}"{m[2]}"{m[3]}' if m[1] else m[0], text))


class Frame:
    """One frame of the protocol: a header (a dict) and a body (bytes)."""

    def __init__(self, header, body=b""):
        self.header = header
        self.body = body

    @property
    def code(self):
        return self.header.get("code", 0)

    @property
    def ext(self):
        """The header fields of the command; a fresh dict becomes part of the header when changed through `set_ext`."""
        return self.header.get("extFields") or {}

    def set_ext(self, **fields):
        """Sets header fields of the command; None takes a field away."""
        ext = {**self.ext, **fields}
        self.header["extFields"] = {key: value for key, value in ext.items() if value is not None}

    @property
    def is_response(self):
        return bool(self.header.get("flag", 0) & RESPONSE_BIT)

    def encode(self):
        head = json.dumps(self.header, separators=(",", ":")).encode()
        return struct.pack(">II", 4 + len(head) + len(self.body), len(head)) + head + self.body


def read_exactly(sock, count):
    """Reads exactly count bytes, or None when the other end closed before the first of them."""
    parts, left = [], count
    while left:
        part = sock.recv(min(left, 1 << 16))
        if not part:
            if left == count:
                return None
            raise ConnectionError("closed within a frame")
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def read_raw(sock):
    """Reads one whole frame as bytes, or None at the end of the stream."""
    head = read_exactly(sock, 4)
    if head is None:
        return None
    (length,) = struct.unpack(">I", head)
    if length > FRAME_MAX:
        raise ConnectionError(f"not a frame: length {length}")
    rest = read_exactly(sock, length)
    if rest is None:
        raise ConnectionError("closed within a frame")
    return head + rest


def decode(raw):
    """Decodes a frame read by `read_raw`; None when its header is not JSON."""
    mark = struct.unpack(">I", raw[4:8])[0]
    if mark >> 24:
        return None
    length = mark & 0xFFFFFF
    return Frame(json.loads(raw[8:8 + length]), raw[8 + length:])


def request(code, ext=None, body=b"", one_way=False, opaque=1):
    """Makes a request frame."""
    header = {"code": code, "flag": ONE_WAY_BIT if one_way else 0, "language": "JAVA", "opaque": opaque,
              "serializeTypeCurrentRPC": "JSON", "version": VERSION}
    if ext:
        header["extFields"] = {key: str(value) for key, value in ext.items()}
    return Frame(header, body)


def split(address):
    """Splits `host:port`."""
    host, port = address.rsplit(":", 1)
    return host, int(port)


def ask(address, code, ext=None, body=b"", limit=5.0):
    """Asks one question over a connection of its own and returns the answering frame."""
    with socket.create_connection(split(address), timeout=limit) as sock:
        sock.sendall(request(code, ext, body).encode())
        raw = read_raw(sock)
    if raw is None:
        raise ConnectionError(f"{address} closed instead of answering code {code}")
    return decode(raw)


def route(address, topic):
    """The route of a topic as parsed JSON, or None when the server says it does not exist (17)."""
    answer = ask(address, ROUTE, {"topic": topic, "acceptStandardJsonOnly": "true"})
    if answer.code == NO_TOPIC:
        return None
    if answer.code != SUCCESS:
        raise AssertionError(f"105 of {topic} answered code {answer.code}: {answer.header.get('remark')}")
    return loads(answer.body)


def members_of(route_data, broker):
    """{id: address} of one broker name in a route (None counts as empty)."""
    for data in (route_data or {}).get("brokerDatas", []):
        if data["brokerName"] == broker:
            return {int(key): value for key, value in data["brokerAddrs"].items()}
    return {}


def queues_of(route_data, broker):
    """The queue data of one broker name in a route, or None."""
    for data in (route_data or {}).get("queueDatas", []):
        if data["brokerName"] == broker:
            return data
    return None


def cluster(address):
    """The answer of 106 as parsed JSON."""
    return loads(ask(address, CLUSTER).body)


def members(address, broker):
    """{id: address} of one broker name in the cluster table (106)."""
    data = cluster(address)["brokerAddrTable"].get(broker, {})
    return {int(key): value for key, value in data.get("brokerAddrs", {}).items()}


def config(address):
    """The settings of the server (319) as a dict."""
    lines = ask(address, GET_CONFIG).body.decode().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


def set_config(address, **settings):
    """Changes settings of the server (318); returns the answer's code."""
    text = "".join(f"{key}={value}\n" for key, value in settings.items())
    return ask(address, SET_CONFIG, body=text.encode()).code


def get_kv(address, namespace, key):
    """A value of the KV table, or None."""
    answer = ask(address, GET_KV, {"namespace": namespace, "key": key})
    return answer.ext.get("value") if answer.code == SUCCESS else None
