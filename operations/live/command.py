"""Print the stacks, instance groups and nodes of an environment.

With --watch the command shows the cluster live: groups, nodes that need attention, events, used quotas and training
plan windows, with the API calls of each read. The command names what your credentials may not read.
"""

import argparse

from ..arguments import add_environment, as_time, open_target
from ..output.console import write_json
from ..output.moving import under_way
from .cluster_table import report, write_report
from .reader import Live
from .watch import watch


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright status`."""
    add_environment(parser)
    parser.add_argument(
        "--json", action="store_true", help="print the result as JSON; with --watch a line for each read"
    )
    parser.add_argument(
        "--watch", nargs="?", type=as_time, const=10.0, metavar="TIME", help="read again after this time (default: 10s)"
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
