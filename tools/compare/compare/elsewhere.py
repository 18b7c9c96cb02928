"""What is measured elsewhere: by benches, of which is read what they have left behind, and by tests, which are run."""

import datetime
import json
import os
import subprocess

_TEST_LIMIT = 1200  # seconds: the first one compiles


class Row:
    """A row of the summary that no case here measures."""

    def __init__(self, number, title, wanted, measured, reached=None):
        self.number = number
        self.title = title
        self.wanted = wanted
        self.measured = measured  # in words
        self.reached = reached


class Bench:
    """A median of criterion's."""

    def __init__(self, target, command, path):
        self.command = f"`cargo bench --bench {command}`"
        self._file = os.path.join(target, "criterion", path, "new", "estimates.json")

    def median_ns(self):
        """What was estimated the last time."""
        with open(self._file) as estimates:
            return json.load(estimates)["median"]["point_estimate"]

    def made(self):
        """When that was, in seconds since 1970."""
        return os.path.getmtime(self._file)


def rows(root, target):
    """All rows."""
    return [*(_compared(root, target, *ratio) for ratio in _RATIOS), *(_tested(root, *test) for test in _TESTS)]


def _of(group, *names):
    """The paths of benches."""
    return [f"{group}/{name}" for name in names]


_UNCHANGED = (7, "registration of 10,000 topics of which none changes")

# Number, title, what is wanted, its bound, the bench, medians of which the sum is divided by that of the others.
_RATIOS = (
    *((*_UNCHANGED, f"read and applied / read, {form}", 1.2, "codec -- unchanged_registration",
       _of("unchanged_registration", f"{form}_read", f"{form}_applied"),
       _of("unchanged_registration", f"{form}_read", f"{form}_dropped")) for form in ("plain", "compressed")),
    (8, "publish one changed topic, 1,000 → 1,000,000 topic-broker entries", "time", 1.5, "publish",
     _of("publish/one_topic", "1000000_entries"), _of("publish/one_topic", "1000_entries")),
)


def _changed(root):
    """When the sources were last written to, and what they are built of."""
    folders = [os.walk(os.path.join(root, name)) for name in ("src", "benches", "tools/loadgen/src")]
    files = [os.path.join(folder, name) for walk in folders for folder, _, names in walk for name in names]
    return max(map(os.path.getmtime, [*files, os.path.join(root, "Cargo.toml"), os.path.join(root, "Cargo.lock")]))


def _compared(root, target, number, title, metric, bound, command, over, under):
    wanted = f"{metric} ≤ {bound:g}"
    over, under = ([Bench(target, command, path) for path in paths] for paths in (over, under))
    try:
        sums = [[bench.median_ns() / 1000 for bench in benches] for benches in (over, under)]
        made = min(bench.made() for bench in (*over, *under))
    except (OSError, ValueError, KeyError):
        return Row(number, title, wanted, f"no estimates of criterion in target/criterion: {over[0].command} makes them")
    ratio = sum(sums[0]) / sum(sums[1])
    words = " / ".join(" + ".join(f"{median:.3g}" for median in medians) for medians in sums)
    words = words if len(over) == 1 else " / ".join(f"({part})" for part in words.split(" / "))
    date = datetime.datetime.fromtimestamp(made).strftime("%Y-%m-%d %H:%M")
    is_old = made < _changed(root)
    measured = f"{ratio:.3g} (criterion's medians {words} µs of {date}, by {over[0].command}"
    return Row(number, title, wanted, measured + (", before the sources changed: run it again)" if is_old else ")"),
               None if is_old else ratio <= bound)


# Number, title, what is wanted, the test that fails otherwise.
_TESTS = (
    (*_UNCHANGED, "publications 0",
     "faults::c17_unchanged_registrations_and_heartbeats_publish_nothing"),
    (9, "heartbeats of 16 brokers, depth 16", "commands to the writer for a heartbeat 0",
     "rules::a_heartbeat_over_a_connection_that_its_broker_lives_by_is_no_business_of_the_writer"),
    (15, "allocations of a route query", "allocations 0", "allocations::"),
)


def _tested(root, number, title, wanted, test):
    words = f"`cargo test --test it {test}`"
    try:
        run = subprocess.run(["cargo", "test", "--quiet", "--locked", "--test", "it", test], cwd=root, timeout=_TEST_LIMIT,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Row(number, title, wanted, f"{words} was not run: {error}")
    if " 0 passed" in run.stdout:  # there is no such test, or it does not compile
        return Row(number, title, wanted, f"{words} ran no test")
    return Row(number, title, wanted, f"{words} {'passed' if run.returncode == 0 else 'FAILED'}", run.returncode == 0)


NUMBERS = {str(number) for number, *_ in (*_RATIOS, *_TESTS)}
