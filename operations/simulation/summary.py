"""The summary of a simulation for a terminal: by team, and two policies beside each other where there are two."""

import math
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

from ..output.console import write_line
from ..output.tables import Block, Table, new_table
from .policies import UNDATED

_SHOWN_PROBLEMS: Final = 10
_SHOWN_STOPS: Final = 12
_NUMBERS: Final = (
    *(
        "jobs",
        "ran",
        "mean",
        "p50",
        "p90",
        "max",
        "in quota",
        "borrowed",
        "idle",
        "waiting",
        "stopped",
        "stops",
        "lost",
    ),
    *("times", "used", "fairness", "budget"),
)
REACHED: Final = {"warn": "warned", "demote": "all work as {}", "hold": "nothing more started"}
"""What a budget did once it was used, by `when_reached`."""
Document = dict[str, Any]


def print_summary(result: Document) -> None:
    """Print the summary of a document, as wide as the terminal is."""
    for text in _head(result):
        write_line(text)
    two = len(result["policies"]) > 1
    write_line()
    write_line(_waits(result, two))
    write_line()
    write_line(_hours(result, two))
    for policy in result["policies"]:
        if policy["preemptions"]:
            write_line()
            write_line(_stops(policy))
        if policy["budgets"]:
            write_line()
            write_line(_budgets(policy))
    for block in _tail(result):
        write_line(block)


def duration(seconds: float) -> str:
    """Seconds as people say them: `40 s`, `12 min`, `3.5 h`, `2.1 d`, `never`."""
    if seconds == math.inf:
        return "never"
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172800 else f"{seconds / 86400:.1f} d"


def _head(result: Document) -> Iterator[str]:
    days = max((policy["end"] - policy["start"]) / 86400 for policy in result["policies"])
    yield f"{result['jobs']:,} jobs ({result['work']}), {days:.1f} days"
    for policy in result["policies"]:
        fair = "" if policy["fairness"] is None else f", fairness {policy['fairness']:.2f}"
        yield (
            f"{policy['environment']}: {policy['accelerators']:,} accelerators, {policy['used']:.0%} used{fair}, "
            f"waits p50 {duration(policy['waits']['p50_seconds'])}, p90 {duration(policy['waits']['p90_seconds'])}"
        )


def _named(result: Document, two: bool) -> Iterator[tuple[list[str], Document]]:
    """Each team of each policy with the cells that name it; those of one team under each other."""
    names = list(dict.fromkeys(team["team"] for policy in result["policies"] for team in policy["teams"]))
    for name in names:
        for policy in result["policies"]:
            team = next((each for each in policy["teams"] if each["team"] == name), None)
            if team is not None:
                yield [name, *([policy["environment"]] if two else [])], team


def _waits(result: Document, two: bool) -> Table:
    rows = []
    for cells, team in _named(result, two):
        waits = team["waits"]
        # Jobs that still wait would wait longer yet.
        least = "≥ " if waits["started"] < waits["jobs"] else ""
        times = (duration(waits[f"{name}_seconds"]) for name in ("mean", "p50", "p90"))
        most = f"{least}{duration(waits['max_seconds'])}"
        rows.append((*cells, f"{waits['jobs']:,}", f"{waits['started']:,}", *times, most))
    names = ("team", *(["policy"] if two else []), "jobs", "ran", "mean", "p50", "p90", "max")
    return new_table("Waits until a job first started", names, rows, right=_NUMBERS)


def _hours(result: Document, two: bool) -> Table:
    rows = []
    for cells, team in _named(result, two):
        hours = team["accelerator_hours"]
        amounts = (f"{hours[name]:,.0f}" for name in ("in_quota", "borrowed", "idle", "waiting"))
        rows.append((*cells, *amounts, f"{team['stopped']:,}", f"{team['stops']:,}", f"{team['lost_hours']:,.0f}"))
    names = ("in quota", "borrowed", "idle", "waiting", "stopped", "stops", "lost")
    return new_table(
        "Accelerator-hours, and jobs that were stopped for others",
        ("team", *(["policy"] if two else []), *names),
        rows,
        right=_NUMBERS,
    )


def _stops(policy: Document) -> Table:
    counts = policy["preemptions"]
    rows = [
        (count["preemptor_team"], count["victim_team"], count["reason"], f"{count['count']:,}")
        for count in counts[:_SHOWN_STOPS]
    ]
    rest = sum(count["count"] for count in counts[_SHOWN_STOPS:])
    rows += [("others", "", "", f"{rest:,}")] if rest else []
    title = f"Preemptions under {policy['environment']}"
    return new_table(title, ("who", "stopped", "reason", "times"), rows, right=_NUMBERS)


def _budgets(policy: Document) -> Table:
    """By team and period: what was used of a budget, when nothing was left, and what happened then."""
    rows = [
        (
            use["team"],
            moment(use["end"], policy["start"]),
            f"{use['hours']:,.0f}",
            f"{use['limit']:,.0f}",
            "" if use["reached"] is None else moment(use["reached"], policy["start"]),
            "" if use["reached"] is None else REACHED[use["when_reached"]].format(use["demote_to"]),
        )
        for use in policy["budgets"]
    ]
    names = ("team", "period until", "used", "budget", "reached", "from then on")
    return new_table(f"Budgets of accelerator-hours under {policy['environment']}", names, rows, right=_NUMBERS)


def moment(time: float, start: float) -> str:
    """A time as a date, or as days from the beginning where the work has no real clock."""
    if start < UNDATED:
        return f"day {(time - start) / 86400:.1f}"
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M")


def _tail(result: Document) -> Iterator[Block]:
    """What was left out, and what was assumed."""
    for policy in result["policies"]:
        for key, words in (("never_admitted", "Never started"), ("never_finished", "Started and never finished")):
            if missing := policy[key]:
                yield ""
                yield f"{words} under {policy['environment']}: {len(missing):,} jobs, such as"
                yield new_table("", (), [(job["job"], job["why"]) for job in missing[:3]], indent=2)
    if result["left_out"]:
        counts = ", ".join(f"{count:,} × {kind}" for kind, count in result["left_out"].items())
        yield ""
        yield f"Left out of the work: {counts}"
        for problem in result["problems"][:_SHOWN_PROBLEMS]:
            yield f"  line {problem['line']}: {problem['message']}"
        more = sum(result["left_out"].values()) - min(len(result["problems"]), _SHOWN_PROBLEMS)
        if more > 0:
            yield f"  and {more:,} more; --json names them"
    yield ""
    yield "Assumed, because no policy says it:"
    for assumption in result["assumptions"]:
        yield f"  - {assumption}"
