"""The results as Markdown and as JSON."""

import statistics

from .measure import STOLEN_FROM_RATES
from .servers import CRATE, CRATE_VERSION, JAVA_LINE

OURS = "waypost"
TITLES = {"null": "null server", "java": "Java", "crate": "Rust crate", OURS: "waypost"}
RATIOS = {"null": "ours / null", "java": "ours / Java", "crate": "ours / crate"}
REASON_MAX = 300  # characters of why there are no figures


class Verdict:
    """What was measured for a reach."""

    def __init__(self, report, outcome, reach):
        self.reach = reach
        self.series = outcome.series(reach.metric, OURS, reach.than)
        self.median = statistics.median(self.series) if self.series else None
        self.reached = None if self.median is None else reach.holds(self.median)
        self._report = report
        self._outcome = outcome

    def wanted(self):
        """The bound in words."""
        sign = {">=": "≥", "<=": "≤"}[self.reach.relation]
        unit = f" x {TITLES[self.reach.than]}" if self.reach.than else self.reach.unit and " " + self.reach.unit
        return f"{self.reach.metric} {sign} {self.reach.bound:g}{unit}"

    def measured(self):
        """The figure, or why there is none."""
        if self.series:
            return _spread(self.series)
        for name in filter(None, (OURS, self.reach.than)):
            if reason := self._report.lack(self._outcome, name):
                return f"{TITLES[name]}: {_cell_text(reason)}"
        return "-"


def _answer(reached):
    return {None: "not measured", True: "yes", False: "**no**"}[reached]


def verdicts(report, outcome):
    """One for each reach of a case."""
    return [Verdict(report, outcome, reach) for reach in outcome.case.reaches]


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
        f"A measurement during which other processes had more than {options.foreign_max:g} % of the processors, or a "
        f"hypervisor took more than {options.stolen_max:g} % of them from one of its runs (where no tail is measured, "
        f"{STOLEN_FROM_RATES} times that), was repeated: {sum(outcome.repeated for outcome in report.outcomes)} times; "
        f"{sum(outcome.disturbed for outcome in report.outcomes)} measurements count although they were disturbed each time.",
        f"Work tree at {report.commit}; Java server {JAVA_LINE}, Rust crate {CRATE} {CRATE_VERSION}.", ""]
    lines += [f"{TITLES[name]}: not measured, {_cell_text(reason)}" for name, reason in report.unavailable.items()]
    return "\n".join(lines)


def _summary(report):
    rows = [(row.number, row.title, row.wanted, row.measured, _answer(row.reached)) for row in report.elsewhere]
    for outcome in report.outcomes:
        rows += [(outcome.case.number, outcome.case.title, verdict.wanted(), verdict.measured(), _answer(verdict.reached))
                 for verdict in verdicts(report, outcome)]
    rows.sort(key=lambda row: row[0])
    return "\n".join(["| # | case | reach | measured | reached |", "|---|---|---|---|---|", *map(_row, rows)]) + "\n"


def _details(outcome, report):
    case = outcome.case
    names = [name for name in report.options.servers if name in case.servers]
    others = [name for name in names if name != OURS] if OURS in names else []
    metrics = {}  # in the order in which they were measured
    for sample in outcome.all_samples():
        metrics |= dict.fromkeys(sample.values)
    head = ["", *(TITLES[name] for name in names), *(RATIOS[name] for name in others)]
    lines = [f"### {case.number}: {case.title}", "", _row(head), "|" + "---|" * len(head)]
    blank = [""] * len(others)
    if any(report.lack(outcome, name) for name in names):
        lines.append(_row(["what is missing", *(_cell_text(report.lack(outcome, name) or "") for name in names), *blank]))
    for metric in metrics:
        own = [_spread(outcome.series(metric, name)) for name in names]
        ratios = [_spread(outcome.series(metric, OURS, name)) for name in others]
        lines.append(_row([metric, *own, *ratios]))
    lines.append(_row(["stolen by a hypervisor, %", *(_spread(outcome.stolen(name)) for name in names), *blank]))
    if any(outcome.faults(name) for name in names):
        lines.append(_row(["wrong replies", *(_faults(outcome, name) for name in names), *blank]))
    lines.append("")
    if case.note:
        lines.append(case.note)
    lines.append(f"Repeated measurements: {outcome.repeated}; disturbed ones that count: {outcome.disturbed}.")
    return "\n".join(lines) + "\n"


def _row(cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def _faults(outcome, name):
    if name not in outcome.samples:
        return "-"
    return ", ".join(f"{kind}: {count}" for kind, count in outcome.faults(name).items()) or "none"


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
    return text.replace("|", "/")[:REASON_MAX]


def as_json(report):
    """The whole report, every round in it."""
    return {
        "machine": report.machine, "placement": report.placement, "commit": report.commit,
        "rounds": report.options.rounds, "seconds": report.options.seconds,
        "foreignPercentMax": report.options.foreign_max, "stolenPercentMax": report.options.stolen_max,
        "unavailable": report.unavailable,
        "cases": [_case_json(report, outcome) for outcome in report.outcomes],
        "elsewhere": [{"number": row.number, "title": row.title, "wanted": row.wanted, "measured": row.measured,
                       "reached": row.reached} for row in report.elsewhere],
    }


def _case_json(report, outcome):
    return {
        "number": outcome.case.number, "title": outcome.case.title,
        "repeated": outcome.repeated, "disturbed": outcome.disturbed, "errors": outcome.errors,
        "reaches": [{"wanted": verdict.wanted(), "measured": verdict.measured(), "median": verdict.median,
                     "rounds": verdict.series, "reached": verdict.reached} for verdict in verdicts(report, outcome)],
        "servers": {name: [{"round": sample.turn + 1, "values": sample.values, "faults": sample.faults,
                            "foreignPercent": sample.others.foreign, "stolenPercent": sample.others.stolen,
                            "tries": sample.tries} for sample in samples]
                    for name, samples in outcome.samples.items()},
    }
