"""The rows that are measured elsewhere: a bench and a test. What the bench has left behind is read; neither is run here."""

import datetime
import json
import os

BENCH = "`cargo bench --bench publish`"
TEST = "`cargo test --test it allocations`"

_SMALL, _LARGE = "1000_entries", "1000000_entries"
_BOUND = 1.5


class Elsewhere:
    """A row of the summary."""

    def __init__(self, number, title, wanted, measured, reached=None):
        self.number = number
        self.title = title
        self.wanted = wanted
        self.measured = measured  # in words
        self.reached = reached


def rows(target):
    """The rows, with what is found in the folder that cargo builds in."""
    return [_publication(os.path.join(target, "criterion", "publish", "one_topic")),
            Elsewhere(15, "allocations of a route query", "allocations ≤ 0", f"{TEST} fails if there is one")]


def _publication(folder):
    row = Elsewhere(8, "publish one changed topic, 1,000 → 1,000,000 topic-broker entries", f"time ≤ {_BOUND:g} x",
                    f"no estimates of criterion in target/criterion: {BENCH} makes them")
    try:
        (small, made), (large, made_last) = (_median(os.path.join(folder, size)) for size in (_SMALL, _LARGE))
    except (OSError, ValueError, KeyError):
        return row
    day = datetime.datetime.fromtimestamp(min(made, made_last)).strftime("%Y-%m-%d %H:%M")
    row.measured = f"{large / small:.3g} (criterion's medians {large / 1000:.3g} / {small / 1000:.3g} µs of {day}, by {BENCH})"
    row.reached = large / small <= _BOUND
    return row


def _median(folder):
    """What criterion estimated the last time, in ns, and when."""
    path = os.path.join(folder, "new", "estimates.json")
    with open(path) as estimates:
        return json.load(estimates)["median"]["point_estimate"], os.path.getmtime(path)
