"""The one policy that every engine renders: who is guaranteed, lends and may borrow how much of what.

Quotas as people write them (instances of a group, accelerators of a type, partitions) become numbers of resources by
team and flavor. Every engine takes its numbers from here, so they are equal in all of them.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Literal, NamedTuple

from ...config.catalog.instance_types import Catalog
from ...config.settings.environment import Environment
from ...config.settings.governance.teams import Amount, Department, Governance, Sharing, Team
from ...config.settings.groups import InstanceGroup
from .amounts import Quantities, instances
from .stock import Flavor, Stock


class Share(NamedTuple):
    """What a team has of one resource of one flavor. Units are those of `quota_amounts`."""

    nominal: int
    """Guaranteed."""
    lendable: int
    """How much of the guarantee others may use while it is idle: all or nothing of it."""
    borrowable: int | None
    """How much of what others leave idle it may use besides; None without a limit."""
    filled: bool
    """Whether part of `nominal` is not in the file and comes from the instance's ratio."""


class TeamPolicy(NamedTuple):
    """What a team has."""

    name: str
    department: str | None
    weight: int
    share: Sharing
    preempt: Literal["lower_priority", "never"]
    shares: dict[str, dict[str, Share]]
    """By flavor and resource: the flavors that it may use at all, sorted."""
    min_runtime_seconds: int | None = None
    """How long its work runs before it may be stopped, where the engine has that."""


class QuotaPolicy(NamedTuple):
    """The whole policy of an environment. Mappings are sorted by name unless they say otherwise."""

    flavors: dict[str, Flavor]
    """What some team may use."""
    teams: dict[str, TeamPolicy]
    departments: dict[str, Department]
    unallocated: dict[str, Quantities]
    """By flavor and resource: what no quota holds and every team may borrow. Empty when that is not shared."""
    pool: dict[str, Quantities]
    """By flavor and resource: what is unallocated, and what all teams lend."""
    priorities: dict[str, int]
    """Weights by class, highest first."""
    fair_share: bool

    def most(self, team: str, flavor: str, resource: str) -> int:
        """How much a team can hold of a resource while nobody else holds anything."""
        share = self.teams[team].shares.get(flavor, {}).get(resource)
        if share is None:
            return 0
        # Of its own guarantee a team holds all in any case, so what it lends is not idle for itself.
        idle = self.pool[flavor].get(resource, 0) - share.lendable
        borrowed = idle if share.borrowable is None else min(idle, share.borrowable)
        # More than there is nobody holds, whatever quotas promise.
        return min(share.nominal + borrowed, self.flavors[flavor].capacity.get(resource, share.nominal + borrowed))

    def instances(self, team: str, flavor: str) -> float:
        """How many instances of a flavor are guaranteed to a team, in whole and in parts."""
        shares = self.teams[team].shares.get(flavor, {})
        return instances({resource: share.nominal for resource, share in shares.items()}, self.flavors[flavor].one)


def countable_groups(environment: Environment) -> Mapping[str, InstanceGroup]:
    """The groups that a quota may name: its own, or those of its workers for a cluster that hands all work to them."""
    shared = environment.governance.kueue.multikueue
    if environment.governance.engine == "kueue" and shared and shared.role == "manager":
        return shared.groups
    return environment.instance_groups


def environment_policy(environment: Environment, types: Catalog) -> QuotaPolicy:
    """The policy of an environment.

    The system group, whose nodes keep the cluster running, is lent to nobody unless a quota names it, or its type where
    no other group holds that.
    """
    named = {key for team in environment.governance.teams.values() for key in (*team.quota, *team.borrow_limits)}
    groups, name = dict(countable_groups(environment)), environment.cluster.system_group
    if system := groups.pop(name, None):
        elsewhere = {group.types for group in groups.values()}
        # A type that the system group alone has is meant by who names it.
        if name in named or (system.types not in elsewhere and named & {*system.types}):
            groups[name] = system
    return quota_policy(environment.governance, groups, types)


def quota_policy(governance: Governance, groups: Mapping[str, InstanceGroup], types: Catalog) -> QuotaPolicy:
    """The policy for instances of `groups`.

    Raises:
        UnknownInstanceType: a group has a type that the catalog lacks.
        LookupError: a quota names neither a group nor a type of one; rule GOV001 refuses that.
    """
    stock = Stock(groups, types, governance.engine)
    left = stock.left(team.quota for team in governance.teams.values())
    teams = {name: _team(name, team, stock, left) for name, team in sorted(governance.teams.items())}
    used = sorted({flavor for team in teams.values() for flavor in team.shares})
    unallocated: dict[str, Quantities] = {}
    pool: dict[str, Quantities] = {}
    for name in used:
        held, lent = Counter[str](), Counter[str]()
        for team in teams.values():
            for resource, share in team.shares.get(name, {}).items():
                held[resource] += share.nominal
                lent[resource] += share.lendable
        if governance.idle_resource_sharing:
            capacity = stock.flavors[name].capacity
            unallocated[name] = {resource: max(amount - held[resource], 0) for resource, amount in capacity.items()}
        pool[name] = dict(lent + Counter(unallocated.get(name, {})))
    return QuotaPolicy(
        flavors={name: stock.flavors[name] for name in used},
        teams=teams,
        departments=dict(sorted(governance.departments.items())),
        unallocated=unallocated,
        pool=pool,
        # The order is that of preemption: the first class goes before all others.
        priorities=dict(sorted(governance.priorities.items(), key=lambda item: (-item[1], item[0]))),
        fair_share=governance.fair_share,
    )


def _team(name: str, team: Team, stock: Stock, left: dict[str, Quantities]) -> TeamPolicy:
    """What a team is guaranteed and may borrow, by flavor and resource."""
    nominal = stock.divided(team.quota, left)
    limits = stock.divided(team.borrow_limits, stock.capacities())
    # A percentage of nothing would say that a team without a quota never runs.
    guaranteed = {flavor for key, amount in team.quota.items() if _anything(amount) for flavor in stock.flavors_of(key)}
    shares: dict[str, dict[str, Share]] = {}
    # A team without a quota may use every flavor, as far as others leave something idle.
    for flavor in sorted({*nominal, *limits} if team.quota else stock.flavors):
        held = nominal.get(flavor, {})
        shares[flavor] = {}
        # dict.fromkeys keeps the order: accelerators first, as the instance lists them.
        for resource in dict.fromkeys((*stock.flavors[flavor].capacity, *held, *limits.get(flavor, {}))):
            amount, filled = held.get(resource, (0, False))
            if team.share != "lend_and_borrow":
                borrowable = 0
            elif flavor in limits:
                borrowable = limits[flavor].get(resource, (0, False))[0]
            else:
                borrowable = amount * team.borrow_limit_percent // 100 if flavor in guaranteed else None
            shares[flavor][resource] = Share(amount, 0 if team.share == "dont_lend" else amount, borrowable, filled)
    least = team.min_runtime_seconds
    return TeamPolicy(name, team.department, team.weight, team.share, team.preempt, shares, least)


def _anything(amount: Amount) -> bool:
    return any((amount.instances, amount.accelerators, *amount.mig.values(), amount.vcpu, amount.memory_gib))
