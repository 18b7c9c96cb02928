"""What a check is, how it says that it failed, and how it is reported."""

import threading
import time


class Failure(Exception):
    """A check did not see what it must see."""

    def __init__(self, expected, seen, log=None):
        super().__init__(expected, seen)
        self.expected = expected
        self.seen = str(seen)
        self.log = log

    def __str__(self):
        return f"expected {self.expected}; seen: {self.seen}"


class Skip(Exception):
    """A check that cannot be made against this server; the text says why."""


def expect(condition, expected, seen, log=None):
    """Fails the check unless the condition holds."""
    if not condition:
        raise Failure(expected, seen, log)


def wait_for(probe, limit, expected, every=0.05, log=None):
    """Polls `probe` until it returns something true, and returns that.

    The probe may return `(False, seen)` to say what it saw. An exception counts as "not yet": a server that is
    starting refuses connections.
    """
    deadline = time.monotonic() + limit
    while True:
        try:
            value = probe()
        except Failure:
            raise
        except Exception as error:  # whatever a half-started peer makes of a question
            value = (False, repr(error))
        good, seen = (value[0], value[1]) if isinstance(value, tuple) else (value, value)
        if good:
            return value
        if time.monotonic() >= deadline:
            raise Failure(f"{expected} within {limit:g} s", seen, log)
        time.sleep(every)


def check(title, spoils, once=False, also=()):
    """Marks a method of a scenario as a check.

    title:  what is checked, in words
    spoils: {name of a spoil: pattern}: with that spoil the check must fail, and the text of its failure must match
    once:   the check's action cannot be made twice in a scenario (a control run is left out after the spoiled one)
    also:   spoils that are on as well while the check runs spoiled, for the checks after it that judge the same event
    """
    def mark(method):
        method.check = {"title": title, "spoils": spoils, "once": once, "also": tuple(also)}
        return method
    return mark


def checks_of(scenario):
    """The checks of a scenario class, in the order of their definition."""
    methods = {}
    for kind in reversed(scenario.__mro__):
        methods.update({name: method for name, method in vars(kind).items() if hasattr(method, "check")})
    return list(methods.values())


class Report:
    """Prints one line a check and keeps the count. Several lanes use it at once."""

    def __init__(self):
        self._lock = threading.Lock()
        self.passed = self.failed = self.skipped = 0
        self.failures = []
        self.seconds = {}

    def line(self, verdict, scenario, title, seconds, *details):
        """Prints a verdict (PASS, FAIL, SKIP) and, indented, its details."""
        with self._lock:
            if verdict == "PASS":
                self.passed += 1
            elif verdict == "FAIL":
                self.failed += 1
                self.failures.append(f"{scenario}: {title}")
            else:
                self.skipped += 1
            print(f"{verdict} {scenario}: {title} ({seconds:.1f} s)", flush=True)
            for detail in details:
                for text in str(detail).splitlines():
                    print(f"     {text}", flush=True)

    def spent(self, scenario, seconds):
        """Adds to the time that a scenario took, its preparation included."""
        with self._lock:
            self.seconds[scenario] = self.seconds.get(scenario, 0) + seconds

    def note(self, text):
        """Prints a line that is no verdict."""
        with self._lock:
            print(text, flush=True)
