"""The gate `nccl`: bandwidth of an all-reduce over several nodes, against the line for their type and number."""

from dataclasses import asdict
from typing import Any, Final

from ...config.settings.jobs.kinds import NcclTest
from ...planning.delivery.gate_table import nccl_groups, nccl_image
from ...planning.node.collective_thresholds import Threshold, all_reduce_threshold, thresholds_version
from ..kubernetes.kubectl import Refused
from .gate import Context, Observation, Result
from .jobs import Run, submitted, team_for
from .nccl_table import Row, parsed
from .slurm import all_reduce

_LAUNCHER: Final = "mpi-launcher"
_KEEP_SECONDS: Final = 3600
# NCCL over TCP between instances of this kind; field notes on p5e measured 3.2.
_TCP: Final = 15.0


def run(context: Context) -> Result:
    """Measure every group with every number of nodes, one after the other."""
    environment, settings = context.environment, context.settings.nccl
    context.asked["thresholds_version"] = thresholds_version()
    if skipped := context.without_scheduler:
        return skipped
    if environment.cluster.orchestrator == "slurm" and context.account.endpoint:
        return Result(True, "nothing is proved: nodes of the sandbox have no GPUs", skipped=True)
    whole = Observation()
    for name in nccl_groups(environment, context.types):
        group = environment.instance_groups[name]
        for nodes in sorted({min(count, group.count) for count in settings.nodes}):
            rows, messages = _measured(context, name, nodes)
            result = f"{name} over {nodes} nodes"
            if rows is None:
                return Result(
                    False,
                    f"{result}: {messages.reason}",
                    [*whole.checks, *messages.checks],
                    messages.next_step,
                    messages.answers,
                )
            whole.answers[result] = {"rows": [asdict(row) for row in rows], **messages.answers}
            _judge(context, name, nodes, rows, whole)
            if whole.missing:
                return Result(False, _shown(whole.missing[0]), whole.checks, _next(context, name, rows), whole.answers)
    return Result(True, "; ".join(map(_shown, whole.checks)), whole.checks, "", whole.answers)


def _shown(check: Any) -> str:
    return f"{check.about} {check.seen}, wanted {check.wanted}"


def _measured(context: Context, group: str, nodes: int) -> tuple[list[Row] | None, Result]:
    """The table of one run; None, with why, where there is none."""
    if context.environment.cluster.orchestrator == "slurm":
        return all_reduce(context, group, nodes)
    with submitted(context, f"nccl-{nodes}", _job(context, group, nodes)) as made:
        result = context.wait(made.ended)
        log = _launcher_log(made)
    # Read before the job is deleted, which takes its log away.
    rows = parsed(log)
    if not result.passed:
        result.answers["launcher"] = log
        return None, result
    if not rows:
        step = "the image's program printed no table: `podwright image` checks what the image brings"
        return None, Result(False, "the launcher's log has no result", result.checks, step, {"launcher": log})
    return rows, Result(True, "", result.checks, "", {"launcher": log})


def _job(context: Context, group: str, nodes: int) -> NcclTest:
    """The test as a job of the environment, which Kubernetes ends a minute after the gate stops waiting."""
    environment, settings = context.environment, context.settings.nccl
    return NcclTest.model_validate(
        {
            "kind": "nccl_test",
            "team": settings.team or team_for(environment, context.types, group),
            "group": group,
            "image": nccl_image(environment),
            "folder": settings.folder,
            "nodes": nodes,
            # From 8 MB on; below it the time of a message is latency and says nothing of bandwidth.
            "min_bytes": "8M",
            "max_bytes": settings.max_bytes,
            "keep_seconds": _KEEP_SECONDS,
            "active_deadline_seconds": int(context.seconds) + 60,
        }
    )


def _launcher_log(made: Run) -> str:
    """What mpirun printed; why there is nothing, where there is nothing."""
    for pod in made.pods():
        if any(container["name"] == _LAUNCHER for container in pod["spec"]["containers"]):
            try:
                return made.log(pod["metadata"]["name"], _LAUNCHER)
            except Refused as refused:
                return f"no log: {refused}"
    return "no launcher was started"


def _judge(context: Context, group: str, nodes: int, rows: list[Row], observation: Observation) -> None:
    """Compare the largest message with the line; wrong results fail whatever the speed is."""
    wrong = sum(row.wrong or 0 for row in rows)
    observation.check(
        f"{group} over {nodes} nodes, results", "right", f"{wrong} wrong" if wrong else "right", not wrong
    )
    # busbw grows with the message until it is flat, so the largest message is the node's bandwidth.
    best = max(rows, key=lambda row: row.bytes)
    types = context.environment.instance_groups[group].types
    # A group of several types is as fast as its slowest.
    lines = [all_reduce_threshold(instance_type, nodes) for instance_type in types]
    threshold = min(lines, key=lambda item: item.expected if item.expected is not None else float("inf"))
    least, desired = _least(context, group, threshold)
    observation.answers[f"{group} over {nodes} nodes"]["line"] = {**asdict(threshold), "least": least}
    observed = f"{best.busbw:g} GB/s at {_size(best.bytes)}"
    observation.check(f"{group} over {nodes} nodes", desired, observed, least is None or best.busbw >= least)


def _least(context: Context, group: str, threshold: Threshold) -> tuple[float | None, str]:
    """The bandwidth below which the gate fails, and the line in words; None where it only reports."""
    settings = context.settings.nccl
    if own := settings.minimum_gb_per_second.get(group):
        return own, f"at least {own:g} GB/s, as the file says"
    if settings.minimum_percent and threshold.expected is not None:
        least = round(threshold.expected * settings.minimum_percent / 100, 1)
        return least, f"at least {least:g} GB/s, {settings.minimum_percent} % of the expected {threshold.expected:g}"
    if threshold.fails_below is not None:
        return (
            threshold.fails_below,
            f"at least {threshold.fails_below:g} GB/s (expected {threshold.expected or threshold.fails_below:g})",
        )
    if threshold.expected is not None:
        return None, f"nothing published backs a line; {threshold.expected:g} GB/s expected, and reported only"
    return None, "nothing is published for this type; reported only"


def _next(context: Context, group: str, rows: list[Row]) -> str:
    best = max(row.busbw for row in rows)
    # NCCL falls back to TCP without a word where it does not find EFA's plug-in.
    if best < _TCP:
        return (
            "that is TCP, not EFA: the image lacks aws-ofi-nccl, or pods have no vpc.amazonaws.com/efa; "
            "`podwright image` checks an image, `podwright doctor` the security groups"
        )
    name = context.environment.name
    return (
        f"find the slow node: run `podwright bench show --environment {name}`, then `podwright node health-check "
        f"{name}` with the connectivity check on the nodes of {group}, and replace it"
    )


def _size(count: int) -> str:
    for unit, bytes_ in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= bytes_:
            return f"{count / bytes_:g} {unit}"
    return f"{count} B"
