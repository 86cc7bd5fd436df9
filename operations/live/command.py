"""Print the stacks, instance groups and nodes of an environment as they are now.

With --watch the cluster is shown live: groups, nodes that need a look, events, quotas in use and the windows of
training plans, with the API calls that each read makes. What your credentials do not let you see is named.
"""

import argparse

from ..arguments import add_environment, open_target
from ..output.console import write_json
from ..output.moving import under_way
from .cluster_table import report, write_report
from .reader import Live
from .watch import watch


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright status`."""
    add_environment(parser)
    parser.add_argument("--json", action="store_true", help="print them as JSON; with --watch a line for each read")
    parser.add_argument(
        "--watch", nargs="?", type=float, const=10.0, metavar="S", help="look every S seconds, by default every 10"
    )
    parser.add_argument("--times", type=int, default=0, metavar="N", help="with --watch: stop after N reads")


def run(args: argparse.Namespace) -> int:
    """Print what is there."""
    environment, account = open_target(args)
    if args.watch is not None:
        watch(Live(environment, account, args.project), max(args.watch, 1.0), times=args.times, as_json=args.json)
        return 0
    under_way(f"reading {environment.cluster.name}")
    resolved_report = report(environment, account, args.project)
    if args.json:
        write_json(resolved_report)
    else:
        write_report(resolved_report)
    return 0
