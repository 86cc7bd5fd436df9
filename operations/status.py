"""Print the stacks, instance groups and nodes of an environment as they are now."""

import argparse

from .account import account_of
from .cluster_table import report, write_report
from .deployment import add_environment, load
from .output import write_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright status`."""
    add_environment(parser)
    parser.add_argument("--json", action="store_true", help="print them as JSON")


def run(args: argparse.Namespace) -> int:
    """Print what is there."""
    environment = load(args).environment
    found = report(environment, account_of(environment, args.project, args.sandbox), args.project)
    if args.json:
        write_json(found)
    else:
        write_report(found)
    return 0
