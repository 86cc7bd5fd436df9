"""Simulate which job gets which nodes, and when, under the policy of an environment.

The simulation needs no account, no cluster and no Kubernetes. It reads a trace or generates work. A trace is a CSV file
(docs/user/simulation.md lists its columns), the output of `kubectl get workloads --all-namespaces --output=json` or of
Slurm's `sacct`, or podwright's own metrics: write `metrics` for the environment's workspace, or the address of a
Prometheus server. The command counts rows that are no jobs and names their lines.
"""

import argparse
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from ...config.catalog.instance_types import environment_types
from ...config.errors import CommandError, InvalidValue
from ...config.loading.project import Project
from ...config.settings.environment import Environment
from ...planning.quota.policy import environment_policy
from ...planning.simulation.answers.changes import changed, present
from ...planning.simulation.answers.smallest import Answer, Tried, smallest
from ...planning.simulation.assumptions import DEFAULT_SECONDS
from ...planning.simulation.summary.figures import waits
from ...planning.simulation.traces.generator import Made, generated
from ...planning.simulation.traces.requested_work import demands, shapes
from ...planning.simulation.traces.trace import Trace, moved
from ..arguments import add_name, add_sandbox, as_moment, as_time, load
from ..environments.checked import stop_on_errors
from ..output.console import write_file, write_json, write_line, write_note
from ..output.moving import under_way
from .assumption_options import add_assumptions, assumptions_of
from .cluster_state import add_snapshot, snapshot_of
from .decisions import decide
from .defragment_command import NETWORK
from .defragment_command import answer as defragment
from .document import document
from .page import html
from .policies import Policy, policy_of
from .run import Decide, left_out, simulation
from .summary import duration as in_words
from .summary import print_summary
from .trace_files import trace_of

_MONOTONE: Final = "more never lengthens waits; otherwise, a smaller number may suffice, too"
_UNITS: Final = {"quota": "instances guaranteed", "borrow": "percent that may be borrowed", "nodes": "nodes"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright simulate`."""
    add_name(parser)
    work = parser.add_mutually_exclusive_group()
    work.add_argument(
        "--trace",
        metavar="WHERE",
        help="past work: a file, `metrics` for the workspace, or the address of a Prometheus server",
    )
    work.add_argument(
        "--generate", metavar="TIME", type=as_time, help="generate work from the teams' quotas, for a time such as 30d"
    )
    work.add_argument(
        "--defragment",
        metavar="LABEL",
        nargs="?",
        const=NETWORK,
        help=f"print which jobs to move to free a whole domain of this node label (default: {NETWORK})",
    )
    add_snapshot(parser)
    add_sandbox(parser)
    parser.add_argument("--against", metavar="ENV", help="also simulate the work under the policy of this environment")
    parser.add_argument("--seed", metavar="N", type=int, default=1, help="with --generate: random seed (default: 1)")
    parser.add_argument(
        "--load",
        metavar="PART",
        type=float,
        default=0.9,
        help="with --generate: work as a part of the quotas (default: 0.9)",
    )
    parser.add_argument(
        "--median",
        metavar="TIME",
        type=as_time,
        default=3600.0,
        help="with --generate: median duration of jobs (default: 1h)",
    )
    parser.add_argument("--days", metavar="N", type=float, default=30.0, help="days of history to read (default: 30)")
    parser.add_argument("--at", metavar="DATE", type=as_moment, help="move the work to this date, such as 2027-01-04")
    add_assumptions(parser)
    search = parser.add_argument_group("search for the smallest amount")
    search.add_argument("--smallest", choices=tuple(_UNITS), help="amount to search for")
    search.add_argument("--of", metavar="TEAM[:GROUP]", help="team that waits, and group of the amount")
    search.add_argument(
        "--longest-wait", metavar="TIME", type=as_time, help="longest wait of nine in ten jobs of the team"
    )
    search.add_argument(
        "--at-most", metavar="N", type=int, help="largest amount to try (default: four times the current one)"
    )
    parser.add_argument("--out", metavar="FILE", type=Path, help="write an HTML page with pictures into this file")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(args: argparse.Namespace) -> int:
    """Run the command. Raises CommandError."""
    return answer(args, decide)


def answer(args: argparse.Namespace, decide: Decide) -> int:
    """Simulate, and print what came of it. Raises CommandError."""
    if args.defragment is not None:
        return defragment(args, _checked(args, args.environment), snapshot_of(args, DEFAULT_SECONDS))
    if args.trace is None and args.generate is None:
        raise CommandError(
            "simulate: --trace or --generate is missing",
            "add `--generate 30d` for generated work, or --trace for past work",
            2,
        )
    searched = (args.smallest, args.of, args.longest_wait)
    if any(each is not None for each in searched) and None in searched:
        raise CommandError(
            "--smallest, --of and --longest-wait belong together",
            "such as --smallest nodes --of llm:h200 --longest-wait 1h",
            2,
        )
    environments = [_checked(args, args.environment), *([_checked(args, args.against)] if args.against else [])]
    policies = [_policy(environment) for environment in environments]
    trace = _trace(args, environments[0])
    if args.at is not None:
        trace = moved(trace, args.at)
    if args.smallest:
        return _search(args, environments[0], trace, decide)
    under_way("simulating")
    result = simulation(policies, trace, decide, assumptions_of(args))
    shown = document(result)
    if args.json:
        write_json(shown)
    else:
        print_summary(shown)
    if args.out:
        write_file(args.out, html(result), option="--out")
        write_note(f"{args.out}: the same with pictures")
    return 0


def _checked(args: argparse.Namespace, name: str) -> Environment:
    """The environment of this name, which has no errors."""
    loaded = load(args) if name == args.environment else Project.at(args.project).load(name)
    stop_on_errors(loaded)
    return loaded.environment


def _policy(environment: Environment) -> Policy:
    return policy_of(environment, environment_types(environment.instance_types))


def _trace(args: argparse.Namespace, environment: Environment) -> Trace:
    """The work that the arguments mean."""
    if args.trace is None:
        types = environment_types(environment.instance_types)
        policy = environment_policy(environment, types)
        made = Made(args.generate / 86400, args.seed, args.load, args.median, priorities=tuple(policy.priorities))
        try:
            return generated(demands(policy, shapes(environment, types)), made)
        except InvalidValue as error:
            raise CommandError(f"no jobs can be generated: {error}", "see --generate, --load and --median", 2) from None
    return trace_of(args.trace, environment, args.project, args.days)


def _search(args: argparse.Namespace, environment: Environment, trace: Trace, decide: Decide) -> int:
    """Search for the smallest number with which a team's p90 wait is short enough. Returns 1 where none is."""
    team, _, group = args.of.partition(":")
    try:
        now = present(environment, args.smallest, team, group)
    except InvalidValue as error:
        raise CommandError(str(error), "--of TEAM:GROUP names the team and the group", 2) from None
    most = max(4 * now, 4) if args.at_most is None else args.at_most
    assumptions, unit = assumptions_of(args), _UNITS[args.smallest]
    # A limit of nothing is another setting: share.
    least = 1 if args.smallest == "borrow" else 0
    if most < least:
        raise CommandError(f"--at-most is {most}; it is at least {least}", code=2)

    refused = {problem.line for problem in left_out(_policy(environment), trace)}

    def wait(amount: int) -> float:
        policy = _policy(changed(environment, args.smallest, team, group, amount))
        simulated = simulation([policy], trace, decide, assumptions)
        if {problem.line for problem in simulated.problems} - refused:
            # Jobs that no longer fit would otherwise make the wait of the rest shorter.
            return math.inf
        outcome = simulated.figures[0].outcome
        return waits([job for job in outcome.jobs if job.team == team], outcome.end).p90

    result = smallest(least, most, wait, args.longest_wait, _told(unit))
    sentences = (*trace.assumptions, *_policy(environment).assumptions, *assumptions.sentences())
    _show_answer(args, team, now, result, unit, sentences)
    return 0 if result.amount is not None else 1


def _told(unit: str) -> Callable[[Tried], None]:
    def told(tried: Tried) -> None:
        write_note(f"  {tried.amount} {unit}: p90 {in_words(tried.seconds)}{', enough' if tried.enough else ''}")

    return told


def _show_answer(
    args: argparse.Namespace, team: str, now: int, answer: Answer, unit: str, assumptions: Sequence[str]
) -> None:
    """Print what a search found, and what was assumed for it."""
    if args.json:
        write_json(
            {
                "team": team,
                "searched": args.smallest,
                "now": now,
                "smallest": answer.amount,
                "wait_seconds": args.longest_wait,
            }
            | {"tried": list(map(_tried, answer.tried)), "assumptions": [_MONOTONE, *assumptions]}
        )
        return
    limit = in_words(args.longest_wait)
    if answer.amount is None:
        most = max(tried.amount for tried in answer.tried)
        write_line(f"{most} {unit} are not enough for {team} to wait at most {limit} at p90; the file has {now}")
    else:
        write_line(f"{answer.amount} {unit} are enough for {team} to wait at most {limit} at p90; the file has {now}")
    write_line("Assumed, because no policy says it:")
    for assumption in (_MONOTONE, *assumptions):
        write_line(f"  - {assumption}")


def _tried(tried: Tried) -> dict[str, Any]:
    # JSON has no number for never.
    return tried._asdict() | {"seconds": tried.seconds if math.isfinite(tried.seconds) else None}
