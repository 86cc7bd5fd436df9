"""Traces as CSV: a header with the columns of `COLUMNS`, in any order, and a row for each job."""

import csv
import math
from collections.abc import Mapping
from io import StringIO
from typing import Final

from ....config.errors import InvalidValue
from .times import NO_ZONE, duration, timestamp
from .trace import Trace, TracedJob, TraceProblem, UnreadableTrace, traced

COLUMNS: Final = {
    "team": "the team whose quota it counts against",
    "submitted": "when it was submitted: 2027-01-04T08:00:00Z, or seconds since any beginning",
    "duration": "how long it ran: seconds, 90m, 1.5h or 1-12:00:00",
    "job": "its name; row-N unless it has one",
    "pods": "how many pods it has; 1 unless it says so",
    "accelerators": "GPUs or Neuron devices of each pod; 0 unless it says so",
    "vcpu": "vCPUs of each pod; the share that belongs to its accelerators unless it says so",
    "memory_gib": "GiB of each pod; as with vCPUs",
    "priority": "a priority of the environment; none unless it says so",
    "group": "the instance group or type that it asks for; any unless it says so",
    "least_pods": "pods with which it starts as well where all do not fit (partial admission)",
    "startup": "how long until its pods are ready, such as 10m; as --startup says unless it says so",
    "topology": "a node label within one value of which all its pods have to lie",
}
"""The columns and what stands in them. The first three have to be there."""
_REQUIRED: Final = ("team", "submitted", "duration")
_HINT: Final = f"the columns are {', '.join(COLUMNS)}; docs/user/simulation.md explains them"


def read_csv(text: str) -> Trace:
    """The jobs of a CSV file. Raises UnreadableTrace where it has not the columns of one."""
    rows = csv.DictReader(StringIO(text), strict=True)
    try:
        names = [name.strip() for name in rows.fieldnames or ()]
        _check_header(names)
        rows.fieldnames = names
        jobs, problems = list[TracedJob](), list[TraceProblem]()
        for row in rows:
            try:
                jobs.append(_job(row, rows.line_num))
            except InvalidValue as error:
                problems.append(TraceProblem(rows.line_num, "unreadable", str(error)))
    except csv.Error as error:
        raise UnreadableTrace(rows.reader.line_num, f"this is not CSV: {error}", _HINT) from None
    valid = [job for job in jobs if job.seconds >= 0]
    problems += [negative(job) for job in jobs if job.seconds < 0]
    return traced("CSV", valid, problems, assumptions=[NO_ZONE])


def negative(job: TracedJob) -> TraceProblem:
    """The problem of a job that ended before it began."""
    return TraceProblem(job.line, "negative duration", f"{job.name} would have run for {job.seconds:g} seconds")


def _check_header(names: list[str]) -> None:
    unknown = [name for name in names if name not in COLUMNS]
    missing = [name for name in _REQUIRED if name not in names]
    repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if unknown or missing or repeated:
        parts = [f"no column is called {unknown[0]!r}"] if unknown else []
        parts += [f"without {' and '.join(missing)}"] if missing else []
        parts += [f"{repeated[0]} is there twice"] if repeated else []
        raise UnreadableTrace(1, f"the header is not that of a trace: {'; '.join(parts)}", _HINT)


def _job(row: Mapping[str | None, str | list[str] | None], line: int) -> TracedJob:
    """The job of a row. Raises InvalidValue."""
    if None in row or None in row.values():
        raise InvalidValue("the row has another number of fields than the header")
    values = {str(name): str(value).strip() for name, value in row.items()}
    if not values["team"]:
        raise InvalidValue("team is empty")
    pods = _count(values, "pods", 1)
    least = _count(values, "least_pods", pods)
    if not 0 < least <= pods:
        raise InvalidValue(f"least_pods is {least}; it is at least 1 and at most pods, {pods}")
    return TracedJob(
        line=line,
        name=values.get("job") or f"row-{line}",
        team=values["team"],
        submitted=_finite("submitted", timestamp(values["submitted"])),
        seconds=_finite("duration", duration(values["duration"])),
        pods=pods,
        accelerators=_count(values, "accelerators", 0),
        vcpu=_amount(values, "vcpu"),
        memory_gib=_amount(values, "memory_gib"),
        priority=values.get("priority", ""),
        group=values.get("group", ""),
        least_pods=least if least < pods else None,
        topology=values.get("topology", ""),
        startup=_startup(values.get("startup", "")),
    )


def _startup(text: str) -> float | None:
    if not text:
        return None
    seconds = _finite("startup", duration(text))
    if seconds < 0:
        raise InvalidValue(f"startup is {text}; it is 0 or more")
    return seconds


def _finite(name: str, value: float) -> float:
    if not math.isfinite(value):
        raise InvalidValue(f"{name} is {value}; it is a number")
    return value


def _count(values: Mapping[str, str], name: str, default: int) -> int:
    text = values.get(name, "")
    if not text:
        return default
    if not text.isdecimal():
        raise InvalidValue(f"{name} is {text!r}; it is a whole number")
    return int(text)


def _amount(values: Mapping[str, str], name: str) -> float | None:
    text = values.get(name, "")
    if not text:
        return None
    try:
        amount = float(text)
    except ValueError:
        raise InvalidValue(f"{name} is {text!r}; it is a number") from None
    if not 0 <= amount < math.inf:
        raise InvalidValue(f"{name} is {text}; it is 0 or more")
    return amount
