"""Print what each team is guaranteed, lends and may borrow, by instance group or type and by resource.

Every quota engine gets these numbers. The table marks amounts that follow from the instance's ratio, and amounts that
podwright assumes because AWS does not publish them.
"""

import argparse
from datetime import UTC, datetime

from ...config.catalog.instance_types import environment_types
from ...config.loading.project import Project
from ...planning.quota.overrides import with_overrides
from ...planning.quota.policy import environment_policy
from ..arguments import add_name, as_moment
from ..environments.checked import stop_on_errors
from ..environments.quotas import lines, report
from ..output.console import write_answer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright quotas`."""
    add_name(parser)
    parser.add_argument(
        "--date",
        metavar="DATE",
        type=as_moment,
        help="print the quotas of this date, with governance.overrides, such as 2027-01-04",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(args: argparse.Namespace) -> int:
    """Print the quotas. Stops on errors of the file."""
    loaded = Project.at(args.project).load(args.environment)
    stop_on_errors(loaded)
    date = None if args.date is None else datetime.fromtimestamp(args.date, UTC)
    environment = with_overrides(loaded.environment, date)
    result = report(environment, environment_policy(environment, environment_types(environment.instance_types)))
    write_answer(args.json, result, lines(result))
    return 0
