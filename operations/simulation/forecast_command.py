"""Forecast when and where a job would start if you submitted it now, which jobs it would stop, or why it never starts.

The command reads the cluster, or a --snapshot file, and simulates from that state. It assumes that no other work
arrives, and that running jobs end after --duration.
"""

import argparse
from collections.abc import Callable
from typing import Any

from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ...planning.simulation.assumptions import AS_IN_THE_FILE, DEFAULT_SECONDS, NOBODY_ELSE, Assumptions
from ...planning.simulation.planned_workload import ONE_SET, planned_workload
from ...planning.simulation.snapshot import Snapshot
from ...planning.simulation.summary.outcome import Outcome
from ..arguments import add_name, add_sandbox, as_time, load
from ..kubernetes.job_manifests import planned_jobs
from ..output.console import write_answer
from ..output.moving import under_way
from .assumption_options import add_assumptions, assumptions_of
from .cluster_state import add_snapshot, snapshot_of
from .decisions import ENGINES, continued, forecast_from
from .forecast_lines import assumption_lines, forecast_lines
from .policies import following_sentences

Continue = Callable[[Snapshot, Environment, dict[str, Any], float, Assumptions], Outcome]
"""Continues from the state of an environment with one more Workload, which runs so many seconds, until nothing is left
to happen."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright forecast`."""
    add_name(parser)
    parser.add_argument("job", metavar="JOB", help="name of a job under `jobs` of the file")
    add_snapshot(parser)
    parser.add_argument(
        "--duration",
        metavar="TIME",
        type=as_time,
        default=DEFAULT_SECONDS,
        help="duration of the job, and of jobs in queues without history (default: 4h)",
    )
    add_assumptions(parser)
    add_sandbox(parser)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(args: argparse.Namespace) -> int:
    """Run the command. Raises CommandError."""
    return answer(args, continued)


def answer(args: argparse.Namespace, continued: Continue) -> int:
    """Print the forecast of a job. Returns 1 where it never starts, or at an unknown time. Raises CommandError."""
    loaded = load(args)
    environment = loaded.environment
    plan = planned_jobs(loaded, [args.job])[args.job]
    if plan.engine not in ENGINES or plan.job.team is None:
        reason = f"{args.job} is of no team" if plan.engine in ENGINES else f"{environment.name} is not Kueue's"
        raise CommandError(
            f"{reason}, so Kueue does not decide when it starts", "engines hyperpod and kueue, and a job with a team", 2
        )
    assumptions = assumptions_of(args)
    snapshot = snapshot_of(args, args.duration)
    priority = environment.governance.priorities.get(plan.job.priority or "", 0)
    planned = planned_workload(plan, priority, snapshot.taken)
    under_way("simulating")
    result = forecast_from(
        snapshot, plan.name, lambda state: continued(state, environment, planned, args.duration, assumptions)
    )
    sentences = (
        *snapshot.assumptions,
        f"{args.job} runs for {args.duration / 3600:g} h",
        NOBODY_ELSE,
        AS_IN_THE_FILE,
        *following_sentences(snapshot, environment, assumptions.check_seconds),
        ONE_SET,
        *assumptions.sentences(),
    )
    write_answer(
        args.json,
        result.document() | {"assumptions": list(sentences)},
        [*forecast_lines(result), "", *assumption_lines(sentences)],
    )
    return 0 if result.starts_in is not None else 1
