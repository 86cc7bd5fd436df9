"""Compare what runs with the templates that it was deployed from. Nothing is changed.

Read are the cluster and its groups, quotas and priorities, the EKS cluster and its add-ons, file systems, and the rules
of security groups. What a service does by itself, such as patching, is noise; `--all` shows it. Exit code 1: drift.
"""

import argparse
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ...config.errors import CommandError
from ..aws.account import Account, account_of
from ..cdk.deployment import add_environment, load
from ..cdk.progress import Progress
from ..output.console import write_json, write_line

if TYPE_CHECKING:
    from .judge import Drift
    from .resolve import Resolver

_CLUSTER = "AWS::SageMaker::Cluster"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright drift`."""
    add_environment(parser)
    parser.add_argument("--json", action="store_true", help="print drift and noise as JSON")
    parser.add_argument("--all", action="store_true", help="show what services do by themselves as well")


def run(args: argparse.Namespace) -> int:
    """Print what is unlike its template; returns 1 when something is drift."""
    from ..effects.templates import deployed
    from .judge import explained
    from .resolve import Resolver

    loaded = load(args)
    environment = loaded.environment
    account = account_of(environment, args.project, args.sandbox)
    templates = deployed(account, environment.name, args.project)
    if not templates:
        raise CommandError(f"{environment.name} is not deployed in {account}", f"`podwright deploy {environment.name}`")
    found, live, read = drifts(account, Resolver(account, templates), templates, Progress(sys.stderr))
    drift = [item for item in found if not item.noise]
    counts = {name: group.count for name, group in environment.groups.items()}
    next_deploy = list(explained(found, counts, live))
    if args.json:
        write_json(
            {
                "schema": "podwright.drift/1",
                "environment": environment.name,
                "read": read,
                "drift": [asdict(item) for item in drift],
                "noise": [asdict(item) for item in found if item.noise],
                "next_deploy": next_deploy,
            }
        )
        return 1 if drift else 0
    for item in found:
        if not item.noise or args.all:
            write_line(_line(item, environment.name))
    for line in next_deploy:
        write_line(line)
    hidden = len(found) - len(drift)
    noise = f", {hidden} changed by their services{'' if args.all else ' (--all shows them)'}" if hidden else ""
    write_line(f"{environment.name}: {read} resources read, {len(drift) or 'none'} unlike the template{noise}")
    return 1 if drift else 0


def _line(item: "Drift", environment: str) -> str:
    from ..effects.permissions import text

    place = f"{item.stack.removeprefix(f'{environment}-')}/{item.logical_id}"
    template, live = (("nothing" if value is None else text(value)) for value in (item.template, item.live))
    sign = "noise" if item.noise else "drift"
    return f"{sign}  {place} {item.property}: template {template}, now {live}\n       {item.what}"


def drifts(
    account: Account, resolver: "Resolver", templates: dict[str, Any], progress: Progress
) -> "tuple[list[Drift], dict[str, Any], int]":
    """Everything unlike its template, the cluster as it is now, and how many resources were read."""
    from ..effects.templates import resources
    from . import readers, rules
    from .judge import Drift, unlike

    found: list[Drift] = []
    cluster: dict[str, Any] = {}
    read = 0
    for stack, template in templates.items():
        for key, item in resources(template):
            reader = readers.READERS.get(item["Type"])
            physical = resolver.physical_ids(stack).get(key) if reader and "/" not in stack else None
            if reader is None or physical is None:
                continue
            progress.tick()
            asked = readers.asked(resolver.value(item.get("Properties", {}), stack))
            live = reader(account, asked.get("ClusterName", physical) if item["Type"] == _CLUSTER else physical)
            read += 1
            if live is None:
                found.append(Drift(stack, key, item["Type"], "", "there", None, False, "somebody deleted it"))
                continue
            if item["Type"] == _CLUSTER:
                cluster = dict(live)
            found += unlike(stack, key, item["Type"], asked, live)
    progress.close()
    groups = rules.wanted(templates, resolver)
    there = rules.live(account, list(groups)) if groups else {}
    for group, (stack, key, asked) in groups.items():
        read += 1
        for change, rule in rules.unlike(asked, there[group]):
            words = (
                "somebody opened it" if change == "added" else "somebody closed it: EFA and Lustre hang without rules"
            )
            template, live = (None, str(rule)) if change == "added" else (str(rule), None)
            found.append(Drift(stack, key, rules.GROUP, f"{group} rule", template, live, False, words))
    return found, cluster, read
