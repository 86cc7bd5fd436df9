"""Print the alerts of an environment: threshold, duration and summary.

--rules prints them as Prometheus rules, with the recording rules that they read. --alert-manager prints the definition
of the alert manager. A deployment writes both to a workspace that podwright makes; use them for any other workspace.
"""

import argparse
from collections.abc import Iterator

from ...config.catalog.instance_types import environment_types
from ...config.errors import CommandError
from ...config.findings import listed
from ...config.loading.project import Project
from ...config.settings.observability import Observability
from ...planning.monitoring.alerts import Watched, alert_groups, unmeasured, watched
from ...planning.monitoring.alerts.manager import as_yaml, definition
from ...planning.monitoring.recordings import recording_groups
from ..arguments import add_name
from ..environments.alerts import alert_rows, begins, lasts, told
from ..environments.checked import stop_on_errors
from ..output.console import write_answer, write_text
from ..output.tables import Block, new_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright alerts`."""
    add_name(parser)
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--rules", action="store_true", help="print Prometheus rules as YAML")
    shown.add_argument("--alert-manager", action="store_true", help="print the definition of the alert manager as YAML")
    shown.add_argument("--json", action="store_true", help="print the list as JSON")


def run(args: argparse.Namespace) -> int:
    """Print the alerts. Stops on errors of the file, and where nothing is observed."""
    loaded = Project.at(args.project).load(args.environment)
    stop_on_errors(loaded)
    environment = loaded.environment
    settings = environment.observability
    if settings is None:
        raise CommandError(f"environment {environment.name} has no `observability:`", "add one to its file", 2)
    types = environment_types(environment.instance_types)
    cluster = watched(environment, types)
    if args.rules:
        recorded = recording_groups(cluster.cluster, settings.scrape_seconds, cluster.budgets)
        groups = [*recorded, *alert_groups(settings, cluster)]
        write_text(as_yaml({"groups": groups}).rstrip())
    elif args.alert_manager:
        write_text(_manager(settings, environment.account, environment.region).rstrip())
    else:
        write_answer(
            args.json,
            {"alerts": alert_rows(settings, cluster)},
            _lines(settings, cluster, unmeasured(environment, types)),
        )
    return 0


def _manager(settings: Observability, account: str, region: str) -> str:
    """The definition with topics whose names only a deployment knows."""
    kinds = ["mail", *(["chat"] if settings.alerts.chat.slack or settings.alerts.chat.teams else [])]
    return definition({kind: f"arn:aws:sns:{region}:{account}:TOPIC-FOR-{kind.upper()}" for kind in kinds}, region)


def _lines(settings: Observability, cluster: Watched, missing: list[str]) -> Iterator[Block]:
    """The table of alerts, who is told, and what these levels of metrics leave out."""
    rows = [(row["name"], row["severity"], begins(row), lasts(row)) for row in alert_rows(settings, cluster)]
    yield new_table("", ("alert", "severity", "begins at", "for"), rows)
    yield ""
    yield (
        f"Told: {listed(addresses, 'and')}."
        if (addresses := told(settings))
        else "Alerts notify no one: `alerts` has neither addresses nor channels."
    )
    if missing:
        yield f"Left out, since these levels do not measure what they look at: {listed(missing, 'and')}."
    yield "What each means and how to fix it: `podwright explain NAME`."
