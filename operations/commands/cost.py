"""Print what an environment costs: upfront, by hour, by month, by stack and by team, and when that changes.

Prices come with the package, each with its source and date. `prices:` of the environment replaces them. The command
lists items without a price and never guesses one.
"""

import argparse

from ...config.loading.project import Project
from ...planning.cost.costs import costs
from ..arguments import add_date, add_name
from ..environments.checked import stop_on_errors
from ..environments.costs import lines, report, today
from ..output.console import write_answer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright cost`."""
    add_name(parser)
    add_date(parser, "first day to count")
    parser.add_argument("--json", action="store_true", help="print items and sums as JSON")


def run(args: argparse.Namespace) -> int:
    """Print the costs. Returns 1 when a rule is broken that nobody accepted: such a file means nothing sure."""
    loaded = Project.at(args.project).load(args.environment)
    environment = loaded.environment
    stop_on_errors(loaded)
    day = args.date or today()
    items = costs(environment, day)
    write_answer(args.json, report(environment, items, day), lines(environment, items, day))
    return 0
