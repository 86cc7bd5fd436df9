"""Comparing what runs with the templates that it was deployed from."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ..aws.account import Account
from ..effects.templates import deployed, resources
from . import readers, rules
from .judge import Drift, explained, unlike
from .resolve import Resolver

_CLUSTER: Final = "AWS::SageMaker::Cluster"


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is unlike its template."""

    found: tuple[Drift, ...]
    """Drift, and noise of the services."""
    read: int
    """Resources that were read."""
    next_deploy: tuple[str, ...]
    """What the next deployment would do to the counts of groups."""

    @property
    def drift(self) -> list[Drift]:
        """What somebody has to look at."""
        return [item for item in self.found if not item.noise]


def compare(
    account: Account, environment: Environment, project: Path, tick: Callable[[], object] = lambda: None
) -> Comparison:
    """Compare what runs with the templates that it was deployed from. `tick` is called before each resource is read.

    Raises:
        CommandError: the environment is not deployed.
    """
    templates = deployed(account, environment.name, project)
    if not templates:
        raise CommandError(f"{environment.name} is not deployed in {account}", f"`podwright deploy {environment.name}`")
    resolver = Resolver(account, templates)
    found: list[Drift] = []
    cluster: dict[str, Any] = {}
    read = 0
    for stack, template in templates.items():
        for key, item in resources(template):
            reader = readers.READERS.get(item["Type"])
            physical = resolver.physical_ids(stack).get(key) if reader and "/" not in stack else None
            if reader is None or physical is None:
                continue
            tick()
            asked = readers.asked(resolver.value(item.get("Properties", {}), stack))
            live = reader(account, asked.get("ClusterName", physical) if item["Type"] == _CLUSTER else physical)
            read += 1
            if live is None:
                found.append(Drift(stack, key, item["Type"], "", "there", None, False, "somebody deleted it"))
                continue
            if item["Type"] == _CLUSTER:
                cluster = dict(live)
            found += unlike(stack, key, item["Type"], asked, live)
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
    counts = {name: group.count for name, group in environment.groups.items()}
    return Comparison(tuple(found), read, tuple(explained(found, counts, cluster)))
