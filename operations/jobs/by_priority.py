"""Jobs by their priority class: how many wait, run and were preempted, and for how long."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from ..output.console import write_line
from ..output.tables import new_table
from .table import age

_PENDING: Final = ("waiting", "paused", "stuck")
_RUNNING: Final = ("starting", "running")
_NONE: Final = "(none)"


def by_priority(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Priority classes, the highest first, with the number of jobs in each state; those without a class come last.

    A job whose Workloads have several classes counts once in each of them, with the part that has this class.
    `waiting_since` is the time at which the job was submitted that waits longest, preempted ones included, and `oldest`
    that of the oldest one.
    """
    classes: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        for part in _by_class(row):
            classes.setdefault(part["priority_class"] or _NONE, []).append(part)
    summaries = [_summary(name, jobs) for name, jobs in classes.items()]
    return sorted(summaries, key=lambda each: (each["class"] == _NONE, -(each["priority"] or 0), each["class"]))


def _by_class(row: dict[str, Any]) -> list[dict[str, Any]]:
    """A job as it is in each of its classes: the job itself where it has one class."""
    classes: dict[str, list[dict[str, Any]]] = {}
    for part in row.get("parts", ()):
        classes.setdefault(part["priority_class"], []).append(part)
    if len(classes) < 2:
        return [row]
    return [_in_class(row, name, parts) for name, parts in classes.items()]


def _in_class(row: dict[str, Any], name: str, parts: list[dict[str, Any]]) -> dict[str, Any]:
    """A job with its Workloads of one class alone."""
    having = [part for part in parts if part["has_quota"]]
    state = row["state"]
    if not having and state in _RUNNING:
        state = "preempted" if any(part["was_preempted"] for part in parts) else "waiting"
    held = sum(part["accelerators"] for part in having)
    return row | {"priority_class": name, "priority": parts[0]["priority"], "state": state, "accelerators": held}


def _summary(name: str, jobs: list[dict[str, Any]]) -> dict[str, Any]:
    waiting = [job for job in jobs if job["state"] in (*_PENDING, "preempted")]
    return {
        "class": name,
        "priority": max((job["priority"] for job in jobs if job["priority"] is not None), default=None),
        "pending": sum(job["state"] in _PENDING for job in jobs),
        "running": sum(job["state"] in _RUNNING for job in jobs),
        "preempted": sum(job["state"] == "preempted" for job in jobs),
        "accelerators": sum(job["accelerators"] for job in jobs if job["state"] in _RUNNING),
        "waiting_since": min((job["created"] for job in waiting if job["created"]), default=None),
        "oldest": min((job["created"] for job in jobs if job["created"]), default=None),
    }


def write_by_priority(classes: list[dict[str, Any]], title: str, now: datetime) -> None:
    """Print what `by_priority` has, as a table."""
    names = ("class", "weight", "pending", "running", "preempted", "GPUs running", "longest wait", "oldest")
    table = new_table(title, names, right=names[1:])
    for each in classes:
        weight = "" if each["priority"] is None else str(each["priority"])
        counts = [f"{each[key]:,}" for key in ("pending", "running", "preempted", "accelerators")]
        table.add_row(each["class"], weight, *counts, age(each["waiting_since"], now), age(each["oldest"], now))
    write_line(table)
