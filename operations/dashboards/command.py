"""Write dashboards as files for Grafana, or draw them into one HTML file.

`preview` needs no Grafana and no account: it simulates a cluster like the environment's, and runs every query of every
panel on a Prometheus of its own. With --live it queries the environment's workspace, with --prometheus any other
server.
"""

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ...config.catalog.instance_types import environment_types
from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ...config.settings.observability import Observability
from ...planning.monitoring.collected import collected
from ...planning.monitoring.dashboards import dashboards
from ...planning.monitoring.dashboards.panel import Dashboard, uid
from ...planning.monitoring.grafana_json import grafana_json
from ...planning.monitoring.synthetic.day import NODES
from ..arguments import account_for, add_environment, load
from ..output.console import REPORTS, from_here, write_file, write_line
from ..output.moving import under_way
from ..programs.prometheus import Prometheus, QueryError
from . import sources
from .answers import Span, ask
from .page import Drawn, html


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright dashboards`."""
    parser.add_argument(
        "action", choices=["export", "preview"], help="write JSON files for Grafana, or draw an HTML file"
    )
    add_environment(parser)
    parser.add_argument(
        "--out", metavar="PATH", type=Path, help=f"export: a folder; preview: a file (default: in {REPORTS})"
    )
    asked = parser.add_mutually_exclusive_group()
    asked.add_argument("--live", action="store_true", help="preview: query the environment's workspace")
    asked.add_argument("--prometheus", metavar="URL", help="preview: query this server")
    parser.add_argument(
        "--days", metavar="N", type=float, default=1.0, help="preview: days of metrics to show (default: 1)"
    )
    parser.add_argument(
        "--fault", action="append", default=[], metavar="KIND", help="preview: simulate this fault; may be repeated"
    )
    parser.add_argument(
        "--source", metavar="UID", help="export: uid of the data source (default: chosen in each dashboard)"
    )


def run(args: argparse.Namespace) -> int:
    """Export or preview. Exit code 1 when a panel that should have data has none."""
    environment = load(args).environment
    settings = environment.observability
    if settings is None:
        raise CommandError(f"{environment.name} has no observability", "add `observability: {}` to its file")
    result = collected(environment, environment_types(environment.instance_types))
    pages = dashboards(settings, cluster=environment.cluster.name, metrics=result)
    if not pages:
        raise CommandError(
            f"{environment.name} measures nothing that could be shown", "set observability.metrics to basic"
        )
    if args.action == "export":
        return _export(args, environment, pages)
    return _preview(args, environment, settings, pages)


def _export(args: argparse.Namespace, environment: Environment, pages: tuple[Dashboard, ...]) -> int:
    folder = args.out or from_here(args.project / REPORTS / f"dashboards-{environment.name}")
    folder.mkdir(parents=True, exist_ok=True)
    for page in pages:
        path = folder / f"{uid(environment.name, page.name)}.json"
        path.write_text(grafana_json(page, environment=environment.name, source=args.source), encoding="utf-8")
        write_line(f"{path}: {page.title}, {len(page.panels)} panels")
    return 0


def _preview(
    args: argparse.Namespace, environment: Environment, settings: Observability, pages: tuple[Dashboard, ...]
) -> int:
    """Draw dashboards into one HTML file. Returns 1 where a panel that should have data has none."""
    if not 0 < args.days <= 366:
        raise CommandError(f"--days is {args.days:g}; allowed: above 0 and at most 366", "use a number such as 7", 2)
    span = Span(float(int(time.time())), args.days * 24)
    with _server(args, environment, settings, pages, span) as (server, note):
        drawn = []
        for page in pages:
            under_way(f"drawing {page.title}")
            drawn.append(_answered(server, page, span))
    path = args.out or from_here(args.project / REPORTS / f"dashboards-{environment.name}.html")
    under_way(f"writing {path}")
    write_file(path, html(f"Dashboards of {environment.name}", note, drawn, span), option="--out")
    panels = [
        (one.page, panel, series) for one in drawn for panel, series in zip(one.page.panels, one.series, strict=True)
    ]
    empty = [f"{page.title}: {panel.title}" for page, panel, series in panels if not series and not panel.may_be_empty]
    write_line(f"{path}: {len(pages)} dashboards, {len(panels)} panels")
    for name in empty:
        write_line(f"  without data: {name}")
    return 1 if empty else 0


@contextmanager
def _server(
    args: argparse.Namespace,
    environment: Environment,
    settings: Observability,
    pages: tuple[Dashboard, ...],
    span: Span,
) -> Iterator[tuple[Prometheus, str]]:
    """Whom to ask, and what to tell the reader about it."""
    timestamp = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(span.end))
    if args.live:
        account = account_for(args, environment)
        under_way("looking for its Prometheus")
        where = "Simulated by the sandbox, which has podwright's own metrics only" if account.endpoint else "Measured"
        yield sources.workspace(environment, settings, account), f"{where}, {args.days * 24:g} hours until {timestamp}."
    elif args.prometheus:
        yield (
            Prometheus(args.prometheus.rstrip("/")),
            f"From {args.prometheus}, {args.days * 24:g} hours until {timestamp}.",
        )
    else:
        under_way("making up a cluster and its history")
        with sources.made_up(environment, settings, pages, span=span, faults=args.fault) as server:
            wrong = ", ".join(args.fault) or "a node that is replaced, and one that is rebooted"
            yield (
                server,
                f"Simulated from the file, {args.days * 24:g} hours until {timestamp}; nothing is measured. At most "
                f"{NODES} nodes of each group are drawn, with quotas and jobs that shrink with them. There are "
                f"checkpoints, a preemption, and {wrong}.",
            )


def _answered(server: Prometheus, page: Dashboard, span: Span) -> Drawn:
    answers = []
    for panel in page.panels:
        try:
            answers.append(ask(server, panel, page.choices, span))
        except QueryError as error:
            raise CommandError(f"Prometheus refuses a query of {page.title}, {panel.title}: {error}") from None
    return Drawn(page, answers)
