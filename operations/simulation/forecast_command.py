"""Say when a job would start if it were submitted now, where, and whom it would stop; or why it never would.

Reads the cluster, or what a file of --snapshot holds of one, and continues from its state: no other work comes, and
what runs ends when it is taken to.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...config.errors import CommandError, InvalidValue
from ...config.settings.environment import Environment
from ...planning.simulation.assumptions import Assumptions
from ...planning.simulation.planned_workload import ONE_SET, planned_workload
from ...planning.simulation.snapshot import COMMAND, Snapshot, read_snapshot
from ...planning.simulation.summary.forecast import forecast
from ...planning.simulation.summary.outcome import Outcome
from ..arguments import account_for, add_name, add_sandbox, load
from ..kubernetes.job_manifests import planned_jobs
from ..kubernetes.kubectl import REAL_KUBERNETES, Refused, required_way
from ..output.console import write_answer
from .command import add_assumptions, as_time, assumptions_of
from .decisions import continued
from .forecast_lines import forecast_lines

Continue = Callable[[Snapshot, Environment, dict[str, Any], float, Assumptions], Outcome]
"""Continues from the state of an environment with one more Workload, which runs so many seconds, until nothing is left
to happen."""
_ENGINES = ("hyperpod", "kueue")
_CONFIGURED = "Kueue's manager is configured as the file says; a cluster does not show it"
_ALONE = "no other job is submitted from now on"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright forecast`."""
    add_name(parser)
    parser.add_argument("job", metavar="JOB", help="a key of its `jobs`")
    parser.add_argument("--snapshot", metavar="FILE", type=Path, help=f"read this instead: the output of `{COMMAND}`")
    parser.add_argument(
        "--duration",
        metavar="TIME",
        type=as_time,
        default=14400.0,
        help="of the job, and of queues without history (4h)",
    )
    add_assumptions(parser)
    add_sandbox(parser)
    parser.add_argument("--json", action="store_true", help="print it as JSON")


def run(args: argparse.Namespace) -> int:
    """Run the command. Raises CommandError."""
    return answer(args, continued)


def answer(args: argparse.Namespace, continued: Continue) -> int:
    """Print the forecast of a job. Returns 1 where it never starts. Raises CommandError."""
    loaded = load(args)
    environment = loaded.environment
    plan = planned_jobs(loaded, [args.job])[args.job]
    if plan.engine not in _ENGINES or plan.job.team is None:
        reason = f"{args.job} is of no team" if plan.engine in _ENGINES else f"{environment.name} is not Kueue's"
        raise CommandError(
            f"{reason}, so Kueue does not decide when it starts", "engines hyperpod and kueue, and a job with a team", 2
        )
    assumptions = assumptions_of(args)
    snapshot = _snapshot(args)
    priority = environment.governance.priorities.get(plan.job.priority or "", 0)
    planned = planned_workload(plan, priority, snapshot.taken)
    outcome = continued(snapshot, environment, planned, args.duration, assumptions)
    result = forecast(outcome, plan.name)
    sentences = (
        *snapshot.assumptions,
        f"{args.job} runs for {args.duration / 3600:g} h",
        _ALONE,
        _CONFIGURED,
        ONE_SET,
        *assumptions.sentences(),
    )
    write_answer(args.json, result.document() | {"assumptions": list(sentences)}, forecast_lines(result, sentences))
    return 0 if result.starts_in is not None else 1


def _snapshot(args: argparse.Namespace) -> Snapshot:
    """The state of the cluster, or that in the file. Raises CommandError."""
    if args.snapshot:
        try:
            text, name = args.snapshot.read_text(encoding="utf-8"), str(args.snapshot)
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"{args.snapshot} cannot be read: {error}", f"`{COMMAND}` writes one", 2) from None
    else:
        environment = load(args).environment
        kubectl = required_way(args.project, environment, account_for(args, environment))
        if not kubectl.is_real:
            raise CommandError("this sandbox's Kubernetes is a store, in which nothing waits", REAL_KUBERNETES)
        try:
            text, name = kubectl.run(*COMMAND.split()[1:]), environment.name
        except Refused as refused:
            raise CommandError(f"the cluster shows no queues: {refused}", "you need to read Kueue's objects") from None
    try:
        return read_snapshot(text, args.duration)
    except InvalidValue as error:
        raise CommandError(f"{name} is no state of a cluster: {error}", f"`{COMMAND}` prints one", 2) from None
