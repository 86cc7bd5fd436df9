"""Traces from podwright's own metrics: what recordings say of each job's pods and GPUs, sample by sample."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from .trace import Trace, TracedJob, TraceProblem, UnreadableTrace, traced

QUERIES: Final = {
    "running": "namespace_job:pods_running:sum{$cluster}",
    "waiting": "namespace_job:pods_waiting:sum{$cluster}",
    "accelerators": "namespace_job:gpus:sum{$cluster}",
}
"""What to ask of Prometheus over the time of the trace."""
STEP_SECONDS: Final = 300.0
"""Between two samples: how exact the times of such a trace are."""
MOST_DAYS: Final = 38
"""As many as 11,000 samples of a series are, which is the most that Prometheus answers."""
Series = Sequence[Mapping[str, Any]]
"""Series as Prometheus answers them, each with `metric` and `values`."""


def read_series(series: Mapping[str, Series], teams: Mapping[str, str], end: float) -> Trace:
    """The jobs that metrics show.

    Args:
        series: What Prometheus answers, by the keys of `QUERIES`.
        teams: Teams by their namespace; other namespaces are none of theirs.
        end: The last sample, in seconds since 1970.

    Raises:
        UnreadableTrace: no pods of jobs were measured.
    """
    samples = {name: _by_job(answer) for name, answer in series.items()}
    running = samples["running"]
    if not running:
        raise UnreadableTrace(
            1, "no pods of jobs were measured in that time", "observability.metrics: advanced measures them"
        )
    jobs, problems = list[TracedJob](), list[TraceProblem]()
    for line, (key, values) in enumerate(sorted(running.items()), 1):
        namespace, name = key
        held = [time for time, pods in values if pods > 0]
        if namespace not in teams or not held:
            continue
        pods = int(max(amount for _, amount in values))
        waited = [time for time, amount in samples["waiting"].get(key, ()) if amount > 0]
        accelerators = max((amount for _, amount in samples["accelerators"].get(key, ())), default=0.0)
        if held[-1] >= end - STEP_SECONDS:
            problems.append(TraceProblem(line, "no duration", f"{namespace}/{name} still runs"))
            continue
        jobs.append(
            TracedJob(
                line=line,
                name=name,
                team=teams[namespace],
                submitted=min([*waited, held[0]]),
                seconds=len(held) * STEP_SECONDS,
                pods=pods,
                accelerators=round(accelerators / pods),
            )
        )
    jobs.sort(key=lambda job: job.submitted)
    assumption = (
        f"times are as exact as samples every {STEP_SECONDS / 60:g} minutes, and a job that Kueue holds back has no "
        "pods: it is taken to be submitted when its first pod appears"
    )
    return traced("metrics of podwright", jobs, problems, assumptions=[assumption])


def _by_job(series: Series) -> dict[tuple[str, str], list[tuple[float, float]]]:
    """Samples by namespace and job, in order."""
    jobs: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for item in series:
        key = item["metric"].get("namespace", ""), item["metric"].get("job_name", "")
        jobs.setdefault(key, []).extend((float(time), float(value)) for time, value in item["values"])
    return {key: sorted(values) for key, values in jobs.items()}
