"""Explain why a job waits or fails.

The command prints the job's position in its queue, the arithmetic of its team's quota, which job preempted it, when it
would start if no other work arrives, what blocks its pods, how long image pulls took, and the last events. A team's
role is enough; the command names what the role may not read.
"""

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from ...config.catalog.instance_types import environment_types
from ...config.settings.environment import Environment
from ...config.settings.governance.teams import WaitForPods
from ...planning.jobs.plan import engine_of
from ...planning.kubernetes.measured_pulls import image_pulls, sentences
from ...planning.purchase.words import shown
from ...planning.quota.amounts import CPU, in_words, is_accelerator
from ...planning.quota.budgets import BEFORE_BUDGET, noted
from ...planning.quota.policy import environment_policy
from ..arguments import load
from ..doctor.bundle import moment
from ..kubernetes.kubectl import Kubectl
from ..output.console import write_json, write_line
from ..output.tables import Block, new_table
from .arithmetic import Holding, Sum, holdings, sums
from .cluster_jobs import Cluster, ClusterJob
from .conditions import condition, preemption
from .expected_start import expected_start
from .reach import add_job, command_for, kubectl_for, one_job
from .resources import in_units
from .slurm_jobs import explain, is_slurm
from .table import duration, preempted_by

_EVENTS: Final = 8
_UIDS: Final = re.compile(r" \(UID: [^)]*\)|; preemptor path.*")


class Question(NamedTuple):
    """A job, its cluster as it was read, and the environment."""

    environment: Environment
    cluster: Cluster
    job: ClusterJob
    kubectl: Kubectl
    """The way to the cluster."""


class Part(NamedTuple):
    """A part of the answer: as data, and as lines for people below a title."""

    key: str
    title: str
    data: Any
    lines: Sequence[Block]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright why`."""
    add_job(parser)


def run(args: argparse.Namespace) -> int:
    """Print the parts of the answer."""
    environment = load(args).environment
    if is_slurm(environment):
        return explain(args, environment)
    kubectl = kubectl_for(args, environment)
    cluster, job = one_job(args, environment, kubectl, "events", "nodes", around=True)
    question = Question(environment, cluster, job, kubectl)
    parts = [part for answer in ANSWERS if (part := answer(question))]
    if args.json:
        write_json(job.to_json() | {part.key: part.data for part in parts} | {"not_readable": list(cluster.hidden)})
        return 0
    write_line(_head(question))
    write_line(f"  {_facts(question)}")
    for part in parts:
        write_line()
        write_line(part.title)
        for block in part.lines:
            write_line(f"  {block}" if isinstance(block, str) else block)
    if cluster.hidden:
        write_line(f"\nNot readable by you: {', '.join(cluster.hidden)}")
    write_line()
    write_line(_next(question, args))
    return 0


def _head(question: Question) -> str:
    """What it does, in a sentence."""
    job = question.job
    whose = f" of {job.team}" if job.team else ""
    if job.growth and job.state == "running":
        return f"{job.name}{whose} runs {job.reason}"
    return f"{job.name}{whose} is {job.state}" + (f": {job.reason}" if job.reason else "")


def _facts(question: Question) -> str:
    """What it is."""
    job = question.job
    facts = [job.kind, f"{job.running_pods} of {len(job.pods)} pods run" if job.pods else "no pods"]
    holds = job.holds
    facts += [
        _of_requested(name, holds.get(name, 0), count)
        for name, count in sorted(job.asks.items(), key=lambda pair: pair[0] == CPU)
        if count and (is_accelerator(name) or name == CPU)
    ]
    facts += [f"submitted {duration(question.cluster.now - job.created)} ago"] if job.created else []
    return ", ".join(facts)


def _of_requested(resource: str, holds: int, asks: int) -> str:
    """The amounts that a job holds and requests: `16 of 64 GPUs`; one of them where it holds all or nothing."""
    words = in_words(resource, asks)
    return f"{in_words(resource, holds).split()[0]} of {words}" if 0 < holds != asks else words


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
    team = question.job.team
    items = sums(question.cluster, question.job, policy, environment)
    if not items:
        return _in_use(holdings(question.cluster, question.job, policy, engine), team)
    names = ("of", "asks", "guaranteed", "at most", "holds", "others hold", "idle")
    table = new_table("", names, map(_row, items), right=names[1:], indent=2)
    # Accelerators say it all, unless processors alone are short.
    leading = [item for item in items if item.resource == items[0].resource]
    short = [item for item in items if item.is_short]
    explained = leading if any(item.is_short for item in leading) else [*leading, *short]
    lines = [table, *(text for item in explained for text in item.sentences(team))]
    data = [_in_units(item._asdict() | {"borrows": item.borrows, "idle": item.idle}) for item in items]
    return Part("quota", f"Quota of {team}", data, lines)


def _in_use(items: Sequence[Holding], team: str) -> Part | None:
    """The quota that the team of a job holds now that does not wait."""
    lines = [f"{item.flavor}: {item.in_words}" for item in items]
    data = [_in_units(item._asdict()) for item in items]
    return Part("quota_in_use", f"Quota of {team}", data, lines) if items else None


def _in_units(row: dict[str, Any]) -> dict[str, Any]:
    """Amounts of a resource in the unit that Kubernetes shows."""
    return {key: in_units(row["resource"], value) if isinstance(value, int) else value for key, value in row.items()}


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


def _budget(question: Question) -> Part | None:
    """What the budget of its team does to it, as is noted at its queue and its Workloads."""
    job = question.job
    queues = [
        item
        for item in question.cluster.kind("LocalQueue")
        if (item["metadata"]["namespace"], item["metadata"]["name"]) == (job.namespace, job.queue)
    ]
    note = noted(queues[0]) if queues else {}
    if note.get("state") != "reached":
        return None
    used = f"{note['used']:,g} of {note['accelerator_hours']:,g} accelerator-hours of {note['team']} are used"
    until = f"until {_date(note['end'])}"
    lines = [f"{used}, as was counted {_date(note['at'])}"]
    if note.get("held"):
        lines.append(f"its queue is held {until}: nothing of {note['team']} starts before, and what runs keeps running")
    befores = [item["metadata"].get("annotations", {}).get(BEFORE_BUDGET) for item in job.workloads]
    lines += [
        f"it has priority {job.to_json()['priority']} instead of {before} {until}" for before in befores if before
    ]
    return Part("budget", f"Budget of {note['team']}", note, lines)


def _date(text: str) -> str:
    return shown(datetime.fromisoformat(text))


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


def _forecast(question: Question) -> Part | None:
    """When it starts if nobody submits more, and whom it stops."""
    expected = expected_start(question.kubectl, question.environment, question.cluster, question.job)
    return Part("forecast", "Forecast", *expected) if expected else None


def _pods(question: Question) -> Part | None:
    """What keeps its pods from running."""
    lines = {f"{pod.name}: {text}" for pod in question.job.pods if not pod.started for text, _ in pod.texts()}
    return Part("pods", "Pods", sorted(lines), sorted(lines)) if lines else None


def _pulls(question: Question) -> Part | None:
    """How long its images took, against the time in which its pods have to be ready."""
    pulls = image_pulls(_own_events(question))
    governance = question.environment.governance
    # What task governance's Kueue waits for is AWS's to say.
    limit = (governance.wait_for_pods or WaitForPods()).timeout_seconds if governance.engine == "kueue" else None
    data = {"pulls": [pull._asdict() for pull in pulls], "ready_within_seconds": limit}
    return Part("image_pulls", "Images", data, sentences(pulls, limit)) if pulls else None


def _own_events(question: Question) -> list[dict[str, Any]]:
    """The events of the job, its Workloads and its pods."""
    job = question.job
    parts = [job.item, *job.workloads]
    names = {(item["kind"], item["metadata"]["name"]) for item in parts} | {("Pod", pod.name) for pod in job.pods}
    return [
        item
        for item in question.cluster.kind("Event")
        if item["metadata"]["namespace"] == job.namespace
        and (item["involvedObject"].get("kind"), item["involvedObject"].get("name")) in names
    ]


def _events(question: Question) -> Part | None:
    """The last events of the job, its Workloads and its pods, the newest last."""
    events = _own_events(question)
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
    texts = (_UIDS.sub("", f"{row['object']} {row['reason']}: {row['message']}") for row in data)
    rows = list(zip([_ago(row["time"], now) for row in data], texts, strict=True))
    return Part("events", "Events", data, [new_table("", (), rows, indent=2)]) if data else None


ANSWERS: Final[tuple[Callable[[Question], Part | None], ...]] = (
    _position,
    _arithmetic,
    _preempted,
    _budget,
    _kueue,
    _forecast,
    _pods,
    _pulls,
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
