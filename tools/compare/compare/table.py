"""The results as Markdown and as JSON."""

import statistics

from .cases import ELSEWHERE
from .servers import CRATE, CRATE_VERSION, JAVA_LINE

TITLES = {"null": "null server", "java": "Java", "crate": "Rust crate", "waypost": "waypost"}


class Verdict:
    """What was measured for a reach."""

    def __init__(self, outcome, reach):
        self.reach = reach
        self.series = outcome.series(reach.metric, "waypost", reach.than)
        self.median = statistics.median(self.series) if self.series else None
        self.reached = None if self.median is None else reach.holds(self.median)

    def wanted(self):
        """The bound in words."""
        sign = {">=": "≥", "<=": "≤"}[self.reach.relation]
        unit = f" x {TITLES[self.reach.than]}" if self.reach.than else self.reach.unit and " " + self.reach.unit
        return f"{self.reach.metric} {sign} {self.reach.bound:g}{unit}"

    def answer(self):
        """Whether it was reached, in a word."""
        return {None: "not measured", True: "yes", False: "**no**"}[self.reached]


def verdicts(outcome):
    """One for each reach of a case."""
    return [Verdict(outcome, reach) for reach in outcome.case.reaches]


def markdown(report):
    """The whole report."""
    parts = [_head(report), _summary(report)]
    parts += [_details(outcome, report) for outcome in report.outcomes]
    return "\n".join(parts)


def _head(report):
    options = report.options
    lines = [
        f"{report.machine}; {report.placement}.",
        f"{options.rounds} rounds, each server in its turn; {options.seconds:g} s a run. Figures are medians of the rounds "
        "(least..greatest); ratios to another server are those of the same round.",
        f"A measurement during which other processes had more than {options.foreign_max:g} % of the processors was "
        f"repeated: {sum(outcome.repeated for outcome in report.outcomes)} times; "
        f"{sum(outcome.disturbed for outcome in report.outcomes)} measurements count although they were disturbed each time.",
        f"Work tree at {report.commit}; Java server {JAVA_LINE}, Rust crate {CRATE} {CRATE_VERSION}.", ""]
    lines += [f"{TITLES[name]}: not measured, {_cell_text(reason)}" for name, reason in report.unavailable.items()]
    return "\n".join(lines)


def _summary(report):
    rows = ["| # | case | reach | measured | reached |", "|---|---|---|---|---|"]
    for outcome in report.outcomes:
        for verdict in verdicts(outcome):
            rows.append(f"| {outcome.case.number} | {outcome.case.title} | {verdict.wanted()} | "
                        f"{_spread(verdict.series)} | {verdict.answer()} |")
    rows += [f"| {number} | {text} | | | |" for number, text in ELSEWHERE.items()]
    return "\n".join(rows) + "\n"


def _details(outcome, report):
    case = outcome.case
    names = [name for name in report.names if name in case.servers]
    metrics = {}  # in the order in which they were measured
    for name in names:
        for sample in outcome.samples.get(name, []):
            metrics |= dict.fromkeys(sample.values)
    lines = [f"### {case.number}: {case.title}", "", "| | " + " | ".join(TITLES[name] for name in names) + " |",
             "|---|" + "---|" * len(names)]
    for metric in metrics:
        cells = [_spread(outcome.series(metric, name)) for name in names]
        lines.append(f"| {metric} | " + " | ".join(cells) + " |")
    if any(outcome.faults(name) for name in names):
        lines.append("| wrong replies | " + " | ".join(_faults(outcome.faults(name)) for name in names) + " |")
    lines.append("")
    if case.note:
        lines.append(case.note)
    lines += [f"{TITLES[name]}: {_cell_text(outcome.errors[name])}" for name in names if name in outcome.errors]
    lines.append(f"Repeated measurements: {outcome.repeated}; disturbed ones that count: {outcome.disturbed}.")
    return "\n".join(lines) + "\n"


def _faults(faults):
    return ", ".join(f"{kind}: {count}" for kind, count in faults.items()) or "none"


def _spread(series):
    if not series:
        return "-"
    middle = number(statistics.median(series))
    if len(series) == 1:
        return middle
    return f"{middle} ({number(min(series))}..{number(max(series))})"


def number(value):
    """A figure with three digits that matter."""
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _cell_text(text):
    return text.replace("|", "/")[:400]


def as_json(report):
    """The whole report, every round in it."""
    return {
        "machine": report.machine, "placement": report.placement, "commit": report.commit,
        "rounds": report.options.rounds, "seconds": report.options.seconds,
        "foreignPercentMax": report.options.foreign_max, "unavailable": report.unavailable,
        "cases": [_case_json(outcome) for outcome in report.outcomes],
    }


def _case_json(outcome):
    return {
        "number": outcome.case.number, "title": outcome.case.title,
        "repeated": outcome.repeated, "disturbed": outcome.disturbed, "errors": outcome.errors,
        "reaches": [{"wanted": verdict.wanted(), "median": verdict.median, "rounds": verdict.series,
                     "reached": verdict.reached} for verdict in verdicts(outcome)],
        "servers": {name: [{"round": sample.turn + 1, "values": sample.values, "faults": sample.faults,
                            "foreignPercent": sample.foreign_percent, "tries": sample.tries} for sample in samples]
                    for name, samples in outcome.samples.items()},
    }
