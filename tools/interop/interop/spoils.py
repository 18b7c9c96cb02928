"""What a spoiled server can be: each entry of SPOILS is wrong in one way that a check must notice."""

import json

from . import wire

NOWHERE = "127.0.0.1:1"  # nothing listens there


class Spoil:
    """Base: forwards everything as it is. A spoil is made anew each time it is switched on."""

    keeps_open = False

    def answer(self, asked):
        """A frame to answer the request with instead of passing it on, or None."""
        return None

    def alter(self, asked, answer):
        """Changes the server's answer in place; says whether it did."""
        return False


class Swallow(Spoil):
    """Answers success to a request and never lets the server see it."""

    def __init__(self, code, body=b"", **ext):
        self._code, self._body, self._ext = code, body, ext

    def answer(self, asked):
        if asked.code != self._code:
            return None
        return reply(wire.SUCCESS, self._ext, self._body)


class Ext(Spoil):
    """Replaces header fields of the answers to a code (None: takes the field away)."""

    def __init__(self, code, **ext):
        self._code, self._ext = code, ext

    def alter(self, asked, answer):
        if asked.code != self._code or not any(key in answer.ext for key in self._ext):
            return False
        answer.set_ext(**self._ext)
        return True


class Code(Spoil):
    """Turns one result code of a request into another."""

    def __init__(self, code, before, after):
        self._code, self._before, self._after = code, before, after

    def alter(self, asked, answer):
        if (asked.code, answer.code) != (self._code, self._before):
            return False
        answer.header["code"] = self._after
        return True


class Body(Spoil):
    """Changes the parsed JSON body of the answers to a code with a function of (data, request)."""

    def __init__(self, code, change):
        self._code, self._change = code, change

    def alter(self, asked, answer):
        if asked.code != self._code or not answer.body:
            return False
        data = wire.loads(answer.body)
        self._change(data, asked)
        answer.body = json.dumps(data, separators=(",", ":")).encode()
        return True


class Text(Spoil):
    """Replaces a piece of the text body of the answers to a code."""

    def __init__(self, code, before, after):
        self._code, self._before, self._after = code, before.encode(), after.encode()

    def alter(self, asked, answer):
        if asked.code != self._code or self._before not in answer.body:
            return False
        answer.body = answer.body.replace(self._before, self._after)
        return True


class NotFound(Spoil):
    """Answers 17 to routes of topics that a function of the name picks."""

    def __init__(self, picks):
        self._picks = picks

    def answer(self, asked):
        if asked.code != wire.ROUTE or not self._picks(asked.ext.get("topic", "")):
            return None
        return reply(wire.NO_TOPIC, remark="No topic route info in name server for the topic")


class KeepOpen(Spoil):
    """Keeps the connection to the server when a broker's connection closes."""

    keeps_open = True


class Stale(Spoil):
    """Answers routes and the cluster table for ever with the first answer that was seen."""

    def __init__(self):
        self._known = {}

    @staticmethod
    def _key(asked):
        return (asked.code, asked.ext.get("topic")) if asked.code in (wire.ROUTE, wire.CLUSTER) else None

    def answer(self, asked):
        known = self._known.get(self._key(asked))
        return wire.Frame(dict(known.header), known.body) if known else None

    def alter(self, asked, answer):
        if self._key(asked) and answer.code == wire.SUCCESS:
            self._known.setdefault(self._key(asked), wire.Frame(dict(answer.header), answer.body))
        return False


class Setting(Spoil):
    """Not a spoiled frame but a spoiled server: a setting is off while the spoil is on."""

    def __init__(self, key, bad, good):
        self.key, self.bad, self.good = key, bad, good


def reply(code, ext=None, body=b"", remark=None):
    """Makes an answer; the forwarder fills in the opaque."""
    header = {"code": code, "flag": wire.RESPONSE_BIT, "language": "JAVA", "version": wire.VERSION,
              "serializeTypeCurrentRPC": "JSON", "extFields": ext or {}}
    if remark:
        header["remark"] = remark
    return wire.Frame(header, body)


def ordinary(topic):
    """Whether a topic is one of the suite's own, in contrast to the topics that brokers make for themselves."""
    return topic.startswith("wp_")


def _brokers(change):
    """A change of every {id: address} table in a route or in the cluster table."""
    def apply(data, _asked):
        groups = data.get("brokerDatas") or list(data.get("brokerAddrTable", {}).values())
        for group in groups:
            group["brokerAddrs"] = change(group["brokerAddrs"])
    return apply


def _queues(change):
    def apply(data, asked):
        if ordinary(asked.ext.get("topic", "")):
            for queue in data.get("queueDatas", []):
                change(queue)
    return apply


def _half(queue):
    for key in ("readQueueNums", "writeQueueNums"):
        queue[key] = max(1, queue[key] // 2)


def _write_bit(queue):
    queue["perm"] |= 2


def _no_write_bit(queue):
    queue["perm"] &= ~2


def _without_slaves(table):
    return {key: value for key, value in table.items() if key == "0"}


def _raw_ids(table):
    """Undoes the acting master: the id 0 of a group that has lost its master becomes 1 again."""
    return table if len(table) > 1 and "1" in table else {"1" if key == "0" else key: value for key, value in table.items()}


def _one_broker_less(data, _asked):
    gone = sorted(data["brokerAddrTable"])[-1:]
    for name in gone:
        del data["brokerAddrTable"][name]
        for names in data["clusterAddrTable"].values():
            if name in names:
                names.remove(name)


def _drop_key(key):
    return lambda data, _asked: data.pop(key, None)


def _no_own_topics(data, _asked):
    data["topicList"] = [topic for topic in data["topicList"] if not ordinary(topic)]


SPOILS = {
    "100-swallowed": lambda: Swallow(wire.PUT_KV),
    "101-altered": lambda: Ext(wire.GET_KV, value="altered"),
    "102-swallowed": lambda: Swallow(wire.DELETE_KV),
    "103-swallowed": lambda: Swallow(wire.REGISTER),
    "103-without-haServerAddr": lambda: Ext(wire.REGISTER, haServerAddr=None),
    "103-without-masterAddr": lambda: Ext(wire.REGISTER, masterAddr=None),
    "105-17-to-1": lambda: Code(wire.ROUTE, wire.NO_TOPIC, 1),
    "105-half-the-queues": lambda: Body(wire.ROUTE, _queues(_half)),
    "105-no-acting-master": lambda: Body(wire.ROUTE, _brokers(_raw_ids)),
    "105-not-found": lambda: NotFound(lambda topic: topic != "TBW102"),
    "105-no-template": lambda: NotFound(lambda topic: topic == "TBW102"),
    # Of every topic: a client keeps one address for a broker name, the one of the route that it saw last.
    "105-nowhere": lambda: Body(wire.ROUTE, _brokers(lambda table: {key: NOWHERE for key in table})),
    "105-perm-4-to-6": lambda: Body(wire.ROUTE, _queues(_write_bit)),
    "105-perm-6-to-4": lambda: Body(wire.ROUTE, _queues(_no_write_bit)),
    "105-without-orderTopicConf": lambda: Body(wire.ROUTE, _drop_key("orderTopicConf")),
    "105-without-slaves": lambda: Body(wire.ROUTE, _brokers(_without_slaves)),
    "106-without-a-broker": lambda: Body(wire.CLUSTER, _one_broker_less),
    "106-without-slaves": lambda: Body(wire.CLUSTER, _brokers(_without_slaves)),
    "205-swallowed": lambda: Swallow(wire.WIPE, wipeTopicCount="20"),
    "206-without-topics": lambda: Body(wire.TOPICS, _no_own_topics),
    "216-swallowed": lambda: Swallow(wire.DELETE_TOPIC),
    "318-refusal-to-0": lambda: Code(wire.SET_CONFIG, wire.NO_PERMISSION, wire.SUCCESS),
    "318-swallowed": lambda: Swallow(wire.SET_CONFIG),
    "319-altered": lambda: Text(wire.GET_CONFIG, "listenPort=", "listenPort=1"),
    "327-swallowed": lambda: Swallow(wire.ADD_WRITE, addTopicCount="20"),
    "connections-kept-open": KeepOpen,
    "no-notices": lambda: Setting("notifyMinBrokerIdChanged", "false", "true"),
    "stale-answers": Stale,
}
