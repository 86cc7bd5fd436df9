"""Jobs as a table for people: what each is doing, where it waits, and for what."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from ..output.console import write_line
from ..output.tables import coloured, new_table
from .cluster_jobs import Cluster, ClusterJob
from .conditions import preemption

_GOOD: Final = ("running", "succeeded")


def write_jobs(jobs: list[dict[str, Any]], title: str, now: datetime) -> None:
    """Print jobs as `job_rows` has them."""
    rows = (
        (
            row["team"],
            row["name"],
            row["kind"],
            coloured(row["state"], _GOOD) if row["state"] != "failed" else coloured("Failed"),
            queue_words(row["position"]),
            f"{row['accelerators']:,}" if row["accelerators"] else "",
            age(row["created"], now),
            row["reason"],
        )
        for row in jobs
    )
    names = ("team", "job", "kind", "state", "queue", "GPUs", "age", "why")
    write_line(new_table(title, names, rows, right=("GPUs", "age"), optional=("kind", "queue", "age")))


def job_rows(cluster: Cluster) -> Iterator[dict[str, Any]]:
    """Each job as plain data, with its position in its queue and who preempted it."""
    for job in cluster.jobs:
        position = cluster.position(job)
        by = preempted_by(cluster, job)
        reason = job.reason
        if by and job.state == "preempted":
            reason = f"preempted by {by}: {reason}"
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
