"""Say why a job waits or fails, by what its cluster says.

It prints the job's position in its queue, the arithmetic of its team's quota, who preempted it, what keeps its pods,
and the last events. With a team's role it says what that may read, and names what it may not.
"""

import argparse
import re
import textwrap
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from ...config.catalog.instance_types import environment_types
from ...config.settings.environment import Environment
from ...planning.jobs.plan import engine_of
from ...planning.quota.amounts import in_words, is_accelerator
from ...planning.quota.policy import environment_policy
from ..arguments import load
from ..doctor.bundle import moment
from ..output.columns import columns
from ..output.console import write_json, write_line
from ..output.tables import new_console
from .arithmetic import Sum, sums
from .cluster_jobs import Cluster, ClusterJob
from .conditions import condition, preemption
from .reach import add_job, command_for, kubectl_for, one_job
from .slurm_jobs import explain, is_slurm
from .table import duration, preempted_by

_EVENTS: Final = 8
_UIDS: Final = re.compile(r" \(UID: [^)]*\)|; preemptor path.*")
_INDENT: Final = "    "
_LOG_WIDTH: Final = 120
_NARROWEST: Final = 60


class Question(NamedTuple):
    """A job, its cluster as it was read, and the environment."""

    environment: Environment
    cluster: Cluster
    job: ClusterJob


class Part(NamedTuple):
    """A part of the answer: as data, and as lines for people below a title."""

    key: str
    title: str
    data: Any
    lines: list[str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright why`."""
    add_job(parser)


def run(args: argparse.Namespace) -> int:
    """Print the parts of the answer."""
    environment = load(args).environment
    if is_slurm(environment):
        return explain(args, environment)
    cluster, job = one_job(args, environment, kubectl_for(args, environment), "events", around=True)
    question = Question(environment, cluster, job)
    parts = [part for answer in ANSWERS if (part := answer(question))]
    if args.json:
        write_json(job.to_json() | {part.key: part.data for part in parts} | {"not_readable": list(cluster.hidden)})
        return 0
    width = max(new_console(_LOG_WIDTH).width, _NARROWEST)
    write_line(textwrap.fill(_head(question), width, subsequent_indent=_INDENT))
    write_line(textwrap.fill(_facts(question), width, initial_indent="  ", subsequent_indent=_INDENT))
    for part in parts:
        write_line()
        write_line(part.title)
        for text in part.lines:
            write_line(textwrap.fill(text, width, initial_indent="  ", subsequent_indent=_INDENT))
    if cluster.hidden:
        write_line(f"\nNot readable by you: {', '.join(cluster.hidden)}")
    write_line()
    write_line(_next(question, args))
    return 0


def _head(question: Question) -> str:
    """What it does, in a sentence."""
    job = question.job
    whose = f" of {job.team}" if job.team else ""
    return f"{job.name}{whose} is {job.state}" + (f": {job.reason}" if job.reason else "")


def _facts(question: Question) -> str:
    """What it is."""
    job = question.job
    facts = [job.kind, f"{job.running_pods} of {len(job.pods)} pods run" if job.pods else "no pods"]
    facts += [in_words(name, count) for name, count in job.asks.items() if count and is_accelerator(name)]
    facts += [f"submitted {duration(question.cluster.now - job.created)} ago"] if job.created else []
    return ", ".join(facts)


def _position(question: Question) -> Part | None:
    """Its position, and those before it."""
    position = question.cluster.position(question.job)
    if position is None:
        return None
    names = {item["metadata"]["uid"]: job.name for job in question.cluster.jobs for item in job.workloads}
    before = [
        (names.get(item["metadata"]["uid"], item["metadata"]["name"]), item["spec"].get("priority", 0))
        for item in question.cluster.line_up(question.job)[: position[0] - 1]
    ]
    lines = [f"{position[0]} of {position[1]} that wait in {question.job.queue}"]
    lines += [f"before it: {', '.join(f'{name} (priority {priority})' for name, priority in before)}"] if before else []
    data = {"position": position[0], "waiting": position[1], "before": [name for name, _ in before]}
    return Part("queue_position", "Queue", data, lines)


def _arithmetic(question: Question) -> Part | None:
    """Its team's quota, by resource."""
    environment = question.environment
    engine = engine_of(environment)
    if engine not in ("hyperpod", "kueue"):
        return None
    policy = environment_policy(environment, environment_types(environment.instance_types))
    items = sums(question.cluster, question.job, policy, engine)
    if not items:
        return None
    rows = [("of", "asks", "guaranteed", "at most", "holds", "others hold", "idle")]
    rows += [_row(item) for item in items]
    lines = [*columns(rows, right=range(1, 7)), *(text for item in items for text in item.sentences(question.job.team))]
    data = [item._asdict() | {"borrows": item.borrows, "idle": item.idle} for item in items]
    return Part("quota", f"Quota of {question.job.team}", data, lines)


def _row(item: Sum) -> tuple[str, ...]:
    amounts = (item.asks, item.guaranteed, item.most, item.holds, item.others, item.idle)
    words = ("not readable" if amount is None else in_words(item.resource, amount) for amount in amounts)
    return (item.flavor, *words)


def _preempted(question: Question) -> Part | None:
    """Who took its quota, when and why."""
    causes = [cause for workload in question.job.waiting if (cause := preemption(workload))]
    if not causes:
        return None
    last, by = max(causes, key=lambda cause: cause.time), preempted_by(question.cluster, question.job)
    team = next((job.team for job in question.cluster.jobs if job.item["metadata"]["uid"] == last.job_uid), "")
    data = {"by": by, "team": team, "queue": last.queue, "reason": last.reason, "time": last.time}
    whose = f" of {team}" if team else ""
    when = _ago(last.time, question.cluster.now)
    return Part("preemption", "Preempted", data, [f"{when} by {by}{whose}: {last.in_words} ({last.reason})"])


def _kueue(question: Question) -> Part | None:
    """Kueue's own words on each Workload that waits."""
    entries = [condition(item.get("status"), "QuotaReserved") for item in question.job.waiting]
    entries += [_eviction(item) for item in question.job.waiting if not preemption(item)]
    messages = list(dict.fromkeys(entry["message"] for entry in entries if entry.get("message")))
    return Part("kueue", "Kueue says", messages, messages) if messages else None


def _eviction(workload: dict[str, Any]) -> Mapping[str, Any]:
    """Why it lost its quota otherwise than by preemption."""
    entry = condition(workload.get("status"), "Evicted")
    return entry if entry.get("status") == "True" else {}


def _pods(question: Question) -> Part | None:
    """What keeps its pods from running."""
    lines = {f"{pod.name}: {text}" for pod in question.job.pods if not pod.started for text, _ in pod.texts()}
    return Part("pods", "Pods", sorted(lines), sorted(lines)) if lines else None


def _events(question: Question) -> Part | None:
    """The last events of the job, its Workloads and its pods, the newest last."""
    job = question.job
    parts = [job.item, *job.workloads]
    names = {(item["kind"], item["metadata"]["name"]) for item in parts} | {("Pod", pod.name) for pod in job.pods}
    events = [
        item
        for item in question.cluster.kind("Event")
        if item["metadata"]["namespace"] == job.namespace
        and (item["involvedObject"].get("kind"), item["involvedObject"].get("name")) in names
    ]
    # Of what was said again and again, the last time.
    last = list({(item.get("reason"), item.get("message")): item for item in sorted(events, key=_time)}.values())
    data = [
        {
            "time": _time(item),
            "object": f"{item['involvedObject']['kind']}/{item['involvedObject']['name']}",
            "reason": item.get("reason", ""),
            "message": item.get("message", ""),
        }
        for item in last[-_EVENTS:]
    ]
    now = question.cluster.now
    lines = [f"{_ago(row['time'], now)}  {row['object']} {row['reason']}: {row['message']}" for row in data]
    lines = [_UIDS.sub("", text) for text in lines]
    return Part("events", "Events", data, lines) if data else None


ANSWERS: Final[tuple[Callable[[Question], Part | None], ...]] = (
    _position,
    _arithmetic,
    _preempted,
    _kueue,
    _pods,
    _events,
)
"""What the answer is made of, in this order; each says nothing where it has nothing to say."""


def _time(event: dict[str, Any]) -> str:
    return event.get("lastTimestamp") or event.get("eventTime") or event["metadata"]["creationTimestamp"]


def _ago(time: str, now: datetime) -> str:
    since = moment(time)
    return f"{duration(now - since)} ago" if since else ""


def _next(question: Question, args: argparse.Namespace) -> str:
    """The next command to type."""
    name, job = question.environment.name, question.job
    if job.state in ("running", "stuck", "failed", "succeeded"):
        return f"Its log:          {command_for(args, 'logs', name, job.name)}"
    return f"To take it back:  {command_for(args, 'stop', name, job.name)}"
