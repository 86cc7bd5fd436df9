"""Comparing what runs with the templates that it was deployed from."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ..aws.account import Account
from ..aws.questions import ask_all
from ..aws.unseen import Unseen
from ..effects.templates import Template, deployed, resources
from . import readers, rules
from .judge import Drift, explained, unlike
from .resolve import Resolver

_AT_ONCE: Final = 8
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


@dataclass(frozen=True, slots=True)
class _Held:
    """A resource of a stack that somebody can read."""

    stack: str
    logical_id: str
    type: str
    physical_id: str
    asked: dict[str, Any]
    """What its template asks for."""

    def read(self, account: Account) -> readers.Live | None:
        """What it is now; None when it is gone."""
        # The API takes a cluster's name; its physical id is an ARN.
        name = self.asked.get("ClusterName", self.physical_id) if self.type == _CLUSTER else self.physical_id
        return readers.READERS[self.type](account, name)


def _readable(templates: Mapping[str, Template], resolver: Resolver) -> Iterator[_Held]:
    for stack, template in templates.items():
        for key, item in resources(template):
            # Nested stacks hold Kubernetes objects only.
            readable = item["Type"] in readers.READERS and "/" not in stack
            physical = resolver.physical_ids(stack).get(key) if readable else None
            if physical is not None:
                asked = readers.asked(resolver.value(item.get("Properties", {}), stack))
                yield _Held(stack, key, item["Type"], physical, asked)


def compare(account: Account, environment: Environment, project: Path) -> Comparison:
    """Compare what runs with the templates that it was deployed from.

    Raises:
        CommandError: the environment is not deployed.
    """
    templates = deployed(account, environment.name, project)
    if not templates:
        raise CommandError(f"{environment.name} is not deployed in {account}", f"`podwright deploy {environment.name}`")
    resolver = Resolver(account, templates)
    held = list(_readable(templates, resolver))
    questions = {f"{item.stack}/{item.logical_id}": partial(item.read, account) for item in held}
    answers = ask_all(questions, at_once=_AT_ONCE)
    drifts: list[Drift] = []
    cluster: dict[str, Any] = {}
    for item, live in zip(held, answers.values(), strict=True):
        # A comparison with parts left out would look like one without drift.
        if isinstance(live, Unseen):
            raise live
        if live is None:
            drifts.append(
                # Once somebody has deleted it no property has to be compared.
                Drift(item.stack, item.logical_id, item.type, "", "there", None, False, "somebody deleted it")
            )
            continue
        if item.type == _CLUSTER:
            cluster = dict(live)
        drifts += unlike(item.stack, item.logical_id, item.type, item.asked, live)
    read = len(held)
    groups = rules.wanted(templates, resolver)
    existing = rules.live(account, list(groups)) if groups else {}
    for id, group in groups.items():
        read += 1
        for change, rule in rules.unlike(group.rules, existing[id]):
            words = (
                "added outside of the stack"
                if change == "added"
                else "removed outside of the stack: traffic of EFA and Lustre needs this rule"
            )
            template, live = (None, str(rule)) if change == "added" else (str(rule), None)
            drifts.append(Drift(group.stack, group.logical_id, rules.GROUP, f"{id} rule", template, live, False, words))
    counts = {name: group.count for name, group in environment.groups.items()}
    return Comparison(tuple(drifts), read, tuple(explained(drifts, counts, cluster)))
