"""Rules on the kind of capacity that a group chooses: Spot, what an account team set aside, and prices of it."""

from itertools import product

from ....config.catalog.instance_types import Catalog
from ....config.catalog.prices import service_items
from ....config.findings import listed
from ....config.settings.environment import Environment
from ....config.settings.groups import InstanceGroup
from ..framework.rule import ERROR, INFO, WARNING, Problem, Problems, rule
from .zones import sections


@rule("CAP030", INFO, on=Environment, source="hyperpod-spot")
def spot_for_any_pod(environment: Environment) -> Problems:
    """Spot nodes without a taint."""
    for path, group in sections(environment):
        open_to_all = isinstance(group, InstanceGroup) and not group.taints
        system = path[-1] == environment.cluster.system_group
        if environment.cluster.orchestrator == "eks" and group.capacity == "spot" and open_to_all and not system:
            yield Problem(
                (*path, "taints"),
                "AWS reclaims Spot nodes at short notice, and nothing keeps pods away that cannot continue after that",
                "add a taint such as {key: spot, effect: NoSchedule}, and tolerate it in jobs that resume from "
                "checkpoints",
            )


@rule("CAP031", WARNING, on=Environment, source="hyperpod-field-notes")
def account_team_zones(environment: Environment) -> Problems:
    """Account-team capacity in several zones."""
    for path, group in sections(environment):
        if group.capacity == "account_team" and len(group.zone_ids) > 1:
            yield Problem(
                (*path, "zones"),
                f"zones are {listed(group.zone_ids, 'and')}; an account team sets capacity aside in one zone, "
                "and elsewhere the group competes for on-demand capacity",
                "keep the zone that the account team named, or make a group for each",
            )


@rule("CAP032", WARNING, on=Environment, source="hyperpod-field-notes")
def account_team_shared(environment: Environment) -> Problems:
    """On-demand group that uses account-team capacity."""
    aside = {
        (name, zone): str(path[-1])
        for path, group in sections(environment)
        if group.capacity == "account_team"
        for name, zone in product(group.types, group.zone_ids)
    }
    for path, group in sections(environment):
        taken = [key for key in aside if group.capacity == "on_demand" and key[0] in group.types]
        taken = [key for key in taken if key[1] in group.zone_ids]
        if taken and group.count:
            name, zone = taken[0]
            yield Problem(
                (*path, "capacity"),
                f"capacity is on_demand, and {aside[taken[0]]} has {name} of the account team in {zone}: such capacity "
                f"has no id, so whichever of the two asks first takes it",
                "write account_team here as well when the two together are what was set aside, or use another zone",
            )


@rule("CAP033", ERROR, on=Environment, source="")
def priced_names(environment: Environment, types: Catalog) -> Problems:
    """Price for an unknown item."""
    for name in environment.prices:
        if name not in types and name not in service_items():
            yield Problem(
                ("prices", name),
                f"{name} is neither an instance type nor one of {listed(service_items(), 'and')}",
                "correct the name; `podwright cost ENV` prints what it counts",
            )
