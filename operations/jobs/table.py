"""Jobs as a table for people: what each is doing, where it waits, and for what."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from ...planning.quota.amounts import CPU, is_accelerator
from ..output.console import write_line
from ..output.tables import coloured, new_table
from .cluster_jobs import Cluster, ClusterJob
from .conditions import preemption

_GOOD: Final = ("running", "succeeded")


def write_jobs(jobs: list[dict[str, Any]], title: str, now: datetime) -> None:
    """Print jobs as `job_rows` has them. Columns that no job has a value for are left out."""
    columns: dict[str, Callable[[dict[str, Any]], Any]] = {
        "team": lambda row: row["team"],
        "job": lambda row: row["name"],
        "kind": lambda row: row["kind"],
        "state": lambda row: coloured(row["state"], _GOOD) if row["state"] != "failed" else coloured("Failed"),
        "queue": lambda row: queue_words(row["position"]),
        "size": size_words,
        "GPUs": _accelerators,
        "vCPUs": lambda row: _held(row, CPU.__eq__),
        "age": lambda row: age(row["created"], now),
        "why": lambda row: row["reason"],
    }
    cells = {name: list(map(cell, jobs)) for name, cell in columns.items()}
    names = [name for name, column in cells.items() if any(column) or name not in ("size", "GPUs", "vCPUs")]
    rows = zip(*(cells[name] for name in names), strict=True)
    # Of jobs without accelerators their vCPUs are the amount that counts.
    optional = [name for name in ("kind", "queue", "age", *["vCPUs"] * ("GPUs" in names), "size") if name in names]
    write_line(new_table(title, names, rows, right=("GPUs", "vCPUs", "age"), optional=optional))


def size_words(row: dict[str, Any]) -> str:
    """A job's pods and their bounds: `2 of 2..8`; empty for a job that has its only size, or nothing."""
    pods, least, most = row["size"].values() if row.get("size") else (0, 0, 0)
    if least == most and pods in (0, most):
        return ""
    return f"{pods} of {most}" if least == most else f"{pods} of {least}..{most}"


def _accelerators(row: dict[str, Any]) -> str:
    # Slurm and AWS Batch say how many a job asks for, and nothing else.
    if "asks" in row:
        return _held(row, is_accelerator)
    return f"{row['accelerators']:,}" if row["accelerators"] else ""


def _held(row: dict[str, Any], is_counted: Callable[[str], bool]) -> str:
    """The amounts of some resources that a job holds, of those that it requests: `16 of 64`, `8`."""
    holds = sum(amount for name, amount in row.get("holds", {}).items() if is_counted(name))
    asks = sum(amount for name, amount in row.get("asks", {}).items() if is_counted(name))
    if not asks:
        return ""
    return f"{asks:,.9g}" if holds == asks else f"{holds:,.9g} of {asks:,.9g}"


def job_rows(cluster: Cluster) -> Iterator[dict[str, Any]]:
    """Each job as plain data, with its position in its queue and who preempted it."""
    for job in cluster.jobs:
        position = cluster.position(job)
        by = preempted_by(cluster, job)
        reason = job.reason
        if by and job.state == "preempted":
            reason = f"preempted by {by}: {reason}"
        elif by and job.growth and reason:
            reason = f"{reason}; preempted by {by}"
        yield job.to_json() | {"position": list(position) if position else None, "preempted_by": by, "reason": reason}


def preempted_by(cluster: Cluster, job: ClusterJob) -> str:
    """Who took the quota of a job that waits for it again: the job's name, else its team's or what Kueue calls it."""
    causes = [cause for workload in job.waiting if (cause := preemption(workload))]
    if not causes:
        return ""
    last = max(causes, key=lambda cause: cause.time)
    names = {other.item["metadata"]["uid"]: other.name for other in cluster.jobs}
    return names.get(last.job_uid) or (f"a job of queue {last.queue}" if last.queue else "another job")


def queue_words(position: list[int] | None) -> str:
    """A position in a queue: `2 of 5`."""
    return f"{position[0]} of {position[1]}" if position else ""


def age(created: str | None, now: datetime) -> str:
    """How long ago something was made, in its two largest units."""
    if created is None:
        return ""
    return duration(now - datetime.fromisoformat(created))


def duration(time: timedelta) -> str:
    """A time in its two largest units: `3 d 4 h`, `12 min`."""
    seconds = max(int(time.total_seconds()), 0)
    days, hours, minutes = seconds // 86400, seconds // 3600 % 24, seconds // 60 % 60
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min" if minutes else f"{seconds} s"
