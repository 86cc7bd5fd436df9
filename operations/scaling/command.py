"""Change the number of nodes of an instance group: in the file, on the cluster and in CloudFormation, in one step.

The command first shows the changed line of the file, new findings, jobs on the removed nodes, and the effect and cost
of the deployment. After a yes it writes the count, keeps all comments, removes exactly the nodes that --remove names,
and deploys the new count. If the group comes from a file that ENV extends, it writes a count into the file of ENV.

To reduce the count, name the removed nodes with --remove. Nodes with running jobs stay unless you add --stop-jobs.
After an interruption, run the same command to resume; after one with --plan, the same without --plan.
"""

import argparse
import sys
from collections.abc import Iterator

from ...config.errors import CommandError
from ..arguments import add_name, add_sandbox
from ..effects.show import lines as change_lines
from ..output.confirm import confirm
from ..output.console import write_findings, write_json, write_line, write_note
from ..output.tables import Block, new_table
from .apply import apply_scaling
from .plan import Request, ScalePlan, plan_scaling


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright scale`."""
    add_name(parser)
    parser.add_argument("group", metavar="GROUP", help="instance group of the file")
    parser.add_argument("count", metavar="N", type=_count, help="number of nodes of the group")
    parser.add_argument("--remove", metavar="NODE", nargs="+", default=[], help="all nodes to remove")
    parser.add_argument("--stop-jobs", action="store_true", help="remove nodes even if jobs run on them")
    parser.add_argument("--dry-run", action="store_true", help="show the plan, and change nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    parser.add_argument("--plan", metavar="DIGEST", help="apply exactly this plan, whose digest --dry-run printed")
    add_sandbox(parser)
    parser.add_argument("--json", action="store_true", help="print the plan and the result as JSON")


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of nodes; 0 is the least")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Plan, show, ask and do it. Returns 1 where the plan is blocked."""
    request = Request(
        args.project, args.environment, args.group, args.count, tuple(args.remove), args.stop_jobs, args.sandbox
    )
    plan = plan_scaling(request)
    if args.plan not in (None, plan.digest):
        raise CommandError(
            f"nothing was done: the plan is {plan.digest} now, and not {args.plan}",
            "the same command with --dry-run, and without --plan, shows what would be done now",
        )
    if not args.json:
        write_findings(plan.new_findings, sys.stderr)
        for line in lines(plan):
            write_line(line)
    applied = False
    if plan.blocked:
        for reason in plan.blocked:
            write_note(f"nothing was done: {reason}")
    elif not (args.dry_run or plan.done):
        if not args.yes:
            confirm(plan.environment.name, sentence(plan))
        apply_scaling(plan, write_note)
        applied = True
        if not args.json:
            write_line(f"{plan.request.group} has count {plan.request.count}, here and in {plan.account}")
    if args.json:
        write_json(plan.to_json() | {"applied": applied})
    return 1 if plan.blocked else 0


def sentence(plan: ScalePlan) -> str:
    """What a yes means, as the end of "Type ENV to …"."""
    words = f"give {plan.request.group} {plan.request.count} nodes (it has {plan.target})"
    if plan.leaving:
        words += f", remove {', '.join(node.id for node in plan.leaving)}"
    if plan.occupancy.jobs:
        words += f", stop {', '.join(job.name for job in plan.occupancy.jobs)}"
    return words


def lines(plan: ScalePlan) -> Iterator[Block]:
    """The plan for people."""
    request = plan.request
    yield f"{plan.environment.name} → {plan.account}: plan {plan.digest}"
    yield f"{request.group}: {plan.target} → {request.count} nodes (the file says {plan.written})"
    if plan.done:
        yield "nothing is left to do"
        return
    if plan.edit.diff:
        yield ""
        yield from plan.edit.diff.splitlines()
    if plan.leaving:
        yield ""
        rows = [(node.id, node.status, node.type, _jobs(plan, node.id)) for node in plan.leaving]
        yield new_table("Nodes that go", ("node", "status", "type", "jobs on it"), rows, optional=("type",))
    if plan.removed:
        yield f"gone already: {', '.join(plan.removed)}"
    for job in plan.occupancy.jobs:
        if job.size > request.count:
            yield f"{job.name} runs on {job.size} nodes, and could not start again on the {request.count} that stay"
    yield ""
    yield f"cost by the file: {plan.cost_before['summary']}"
    yield f"      afterwards: {plan.cost['summary']}"
    if plan.changes:
        yield ""
        yield from change_lines(plan.changes)
    if plan.leaving:
        yield "The nodes that go are removed first, by name; the deployment then takes none."


def _jobs(plan: ScalePlan, node: str) -> str:
    return ", ".join(str(job) for job in plan.occupancy.jobs if node in job.nodes)
