"""The summary of a simulation for a terminal: by team, and two policies beside each other where there are two."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from ..output.columns import columns
from ..output.tables import new_console, new_table

if TYPE_CHECKING:
    from rich.table import Table

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
    *("times", "used", "fairness"),
)
Document = dict[str, Any]


def print_summary(result: Document) -> None:
    """Print the summary of a document, as wide as the terminal is."""
    console = new_console(120)
    for text in _head(result):
        console.print(text, soft_wrap=False)
    two = len(result["policies"]) > 1
    console.print()
    console.print(_waits(result, two))
    console.print()
    console.print(_hours(result, two))
    for policy in result["policies"]:
        if policy["preemptions"]:
            console.print()
            console.print(_stops(policy))
    for text in _tail(result):
        console.print(text)


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


def _waits(result: Document, two: bool) -> "Table":
    rows = []
    for cells, team in _named(result, two):
        waits = team["waits"]
        # Jobs that still wait would wait longer yet.
        least = "≥ " if waits["started"] < waits["jobs"] else ""
        times = (duration(waits[f"{name}_seconds"]) for name in ("mean", "p50", "p90"))
        most = f"{least}{duration(waits['max_seconds'])}"
        rows.append((*cells, f"{waits['jobs']:,}", f"{waits['started']:,}", *times, most))
    names = ("team", *(["policy"] if two else []), "jobs", "ran", "mean", "p50", "p90", "max")
    return new_table("Waits until a job first started", names, rows, right=_NUMBERS, wrapped=("team", "policy"))


def _hours(result: Document, two: bool) -> "Table":
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
        wrapped=("team", "policy"),
    )


def _stops(policy: Document) -> "Table":
    counts = policy["preemptions"]
    rows = [
        (count["preemptor_team"], count["victim_team"], count["reason"], f"{count['count']:,}")
        for count in counts[:_SHOWN_STOPS]
    ]
    rest = sum(count["count"] for count in counts[_SHOWN_STOPS:])
    rows += [("others", "", "", f"{rest:,}")] if rest else []
    title = f"Preemptions under {policy['environment']}"
    return new_table(title, ("who", "stopped", "reason", "times"), rows, right=_NUMBERS)


def _tail(result: Document) -> Iterator[str]:
    """What was left out, and what was assumed."""
    for policy in result["policies"]:
        if missing := policy["never_admitted"]:
            yield ""
            yield f"Never started under {policy['environment']}: {len(missing):,} jobs, such as"
            yield from columns([(f"  {job['job']}", job["why"]) for job in missing[:3]])
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
