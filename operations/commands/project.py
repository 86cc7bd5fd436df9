"""Print the environments of a project in the order of promotion, and the links between their clusters.

A link connects a MultiKueue manager with one of its workers. Findings of `podwright check` about a link are printed
with it.
"""

import argparse
import sys
from typing import Any

from ...config.catalog.charts import KUEUE, chart
from ...config.errors import CommandError
from ...config.loading.load import LoadedEnvironment
from ...config.loading.project import Project
from ...config.settings.environment import Environment
from ...planning.quota.links import Link, is_private, links, ranges, worker_of
from ...planning.rules.project.project import project_findings
from ..output.console import write_findings, write_json, write_line
from ..output.tables import new_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright project`."""
    parser.add_argument("--json", action="store_true", help="print environments, links and findings as JSON")


def run(args: argparse.Namespace) -> int:
    """Print the project."""
    project = Project.at(args.project)
    loaded = {item.environment.name: item for item in project.load_all()}
    if not loaded:
        raise CommandError(f"{args.project} holds no environments/*.yaml", "`podwright init DIR` starts a project", 2)
    environments = {name: item.environment for name, item in loaded.items()}
    findings = [finding for items in project_findings(loaded).values() for finding in items]
    rows = [_row(location, item) for location, item in enumerate(loaded.values(), start=1)]
    linked = [_link(link, loaded) for link in links(environments)]
    if args.json:
        shown = [finding.to_json() for finding in findings]
        write_json({"environments": rows, "links": linked, "findings": shown})
        return 0
    _write(rows, linked)
    if findings:
        write_line()
        write_findings(findings, sys.stdout)
    return 0


def _row(location: int, loaded: LoadedEnvironment) -> dict[str, Any]:
    """An environment as plain data; `order` is where it stands in the promotion, from 1."""
    environment = loaded.environment
    return {
        "order": location,
        "name": environment.name,
        "account": environment.account,
        "region": environment.region,
        "orchestrator": environment.cluster.orchestrator,
        "cluster": environment.cluster.name if environment.has_cluster else None,
        "instances": {name: group.count for name, group in sorted(environment.groups.items())},
        "ranges": list(ranges(environment.network)),
        "protection": environment.protection,
        "engine": environment.governance.engine,
        "files": list(loaded.source.files),
    }


def _link(link: Link, loaded: dict[str, LoadedEnvironment]) -> dict[str, Any]:
    """A link of MultiKueue as plain data; `way` is None where the worker is no environment of this project."""
    environments = {name: item.environment for name, item in loaded.items()}
    manager, worker = environments[link.manager], worker_of(link, environments)
    return {
        "manager": link.manager,
        "worker": link.name,
        "environment": link.worker.environment,
        "secret": link.worker.secret,
        "groups": {name: group.model_dump() for name, group in link.worker.groups.items()},
        "jobs": list(link.shared.jobs),
        "regions": [manager.region, worker.region] if worker else [manager.region],
        "accounts": [manager.account, worker.account] if worker else [manager.account],
        "way": _way(manager, worker) if worker else None,
        # Every environment gets the Kueue that this podwright pins, so two of a project cannot differ.
        "kueue": chart(KUEUE).version,
        "compared": worker is not None,
        "findings": _found(link, loaded),
    }


def _found(link: Link, loaded: dict[str, LoadedEnvironment]) -> list[str]:
    """Ids of what is wrong between the two ends of a link."""
    ends = {name: item for name, item in loaded.items() if name in (link.manager, link.worker.environment)}
    workers = "governance.kueue.multikueue.workers."
    return sorted(
        {
            finding.id
            for items in project_findings(ends).values()
            for finding in items
            # Of the manager's other workers, which are not looked at here, nothing is known.
            if finding.acknowledged is None
            and finding.id.startswith("PRJ")
            and (not finding.path.startswith(workers) or f"{finding.path}.".startswith(f"{workers}{link.name}."))
        }
    )


def _way(manager: Environment, worker: Environment) -> str:
    """How the manager's pods come to the worker's control plane."""
    if not is_private(manager, worker):
        return "the worker's public endpoint"
    if manager.network.vpc and worker.network.vpc and manager.network.vpc.id == worker.network.vpc.id:
        return "the VPC that both adopt"
    between = "regions" if manager.region != worker.region else "networks"
    return f"peering or a transit gateway between the {between}"


def _write(rows: list[dict[str, Any]], linked: list[dict[str, Any]]) -> None:
    """Print both tables; that of links only where there are some."""
    table = list[tuple[str, ...]]()
    for row in rows:
        cluster = f"{row['cluster']} ({row['orchestrator']})" if row["cluster"] else "none"
        extends = ", ".join(row["files"][:-1])
        table.append(
            (row["name"], row["account"], row["region"], cluster, _counts(row["instances"]), row["ranges"][0], extends)
        )
    names = ("environment", "account", "region", "cluster", "groups", "range", "extends")
    write_line(new_table("", names, table, optional=("range", "account", "extends")))
    if not linked:
        return
    table = []
    for link in linked:
        groups = {name: group["count"] for name, group in link["groups"].items()}
        agrees = ", ".join(link["findings"]) or ("yes" if link["compared"] else "unknown")
        way, environment = link["way"] or "", link["environment"] or "elsewhere"
        cells = link["manager"], link["worker"], environment, _counts(groups), ", ".join(link["jobs"]), agrees, way
        table.append(cells)
    names = ("manager", "worker", "environment", "groups", "jobs", "agrees", "way")
    write_line()
    write_line(new_table("Links of MultiKueue", names, table))


def _counts(groups: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in groups.items())
