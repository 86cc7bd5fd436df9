"""What teams' use of a cluster costs: hours of accelerators, each at the price of the instances that have it.

Nothing is guessed: an hour of a flavor whose instances have no known price, such as Spot, is counted and not priced.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ...config.catalog.instance_types import environment_types
from ...config.catalog.prices import hourly
from ...config.settings.environment import Environment
from ...config.settings.groups import AnyGroup
from ..quota.amounts import instances
from ..quota.policy import countable_groups, environment_policy
from ..quota.stock import Flavor
from .plan_prices import paid_price


@dataclass(frozen=True, slots=True)
class Rate:
    """What an hour of one accelerator, or of one partition, costs."""

    usd: float | None
    """US dollars; None where nobody says."""
    basis: str
    """Where it comes from, in words."""


@dataclass(frozen=True, slots=True)
class Hours:
    """Hours of one resource of one flavor that concern a team."""

    team: str
    flavor: str
    resource: str
    guaranteed: float
    """Of its quota, used or not."""
    in_quota: float
    """Held within its quota."""
    borrowed: float
    """Held beyond it."""
    lent: float
    """Of its quota, held by others."""

    @property
    def held(self) -> float:
        """Held by its jobs, whosever it was."""
        return self.in_quota + self.borrowed

    @property
    def unused(self) -> float:
        """Of its quota, held by nobody."""
        return max(0.0, self.guaranteed - self.in_quota - self.lent)


@dataclass(frozen=True, slots=True)
class TeamSpend:
    """A team's hours and what they cost."""

    team: str
    guaranteed: float
    in_quota: float
    borrowed: float
    lent: float
    unused: float
    idle: float | None
    """Of the hours that its jobs held, those in which the accelerator did nothing; None where it was not measured."""
    held_usd: float
    """At the price of what its jobs held."""
    unused_usd: float
    """At the price of the part of its quota that nobody held."""
    idle_usd: float | None
    """At the average price of what its jobs held."""
    unpriced: float
    """Hours, held or unused, of what has no price."""


def rates(environment: Environment, plan_usd: Mapping[str, float]) -> dict[tuple[str, str], Rate]:
    """The price of an hour by flavor and resource.

    `plan_usd` is what an instance-hour of a training plan costs, by the plan's name in the file, where that is known;
    else what the file says was paid, or the price at which it lets the plan be bought, stands for it. Flavors of
    several groups cost their average.
    """
    policy = environment_policy(environment, environment_types(environment.instance_types))
    results: dict[tuple[str, str], Rate] = {}
    for flavor in policy.flavors.values():
        price = _of_instance(environment, flavor, plan_usd)
        for resource in flavor.one:
            # Of CPU and memory nothing is billed apart: they come with the accelerators.
            # Resources with a slash are devices of vendors, such as nvidia.com/gpu.
            if "/" in resource and (part := instances({resource: 1}, flavor.one)):
                results[flavor.name, resource] = Rate(None if price.usd is None else price.usd * part, price.basis)
    return results


def spends(
    hours: Iterable[Hours], prices: Mapping[tuple[str, str], Rate], idle: Mapping[str, float]
) -> list[TeamSpend]:
    """What each team's hours cost, in order of the teams' names. `idle` are idle hours by team."""
    by_team: dict[str, list[Hours]] = {}
    for item in hours:
        by_team.setdefault(item.team, []).append(item)
    return [_spend(team, rows, prices, idle.get(team)) for team, rows in sorted(by_team.items())]


def _spend(team: str, rows: list[Hours], prices: Mapping[tuple[str, str], Rate], idle: float | None) -> TeamSpend:
    """What a team held, borrowed and left idle, in hours and where a price is known in USD."""

    def usd(row: Hours) -> float | None:
        rate = prices.get((row.flavor, row.resource))
        return rate.usd if rate else None

    priced = [(row, price) for row in rows if (price := usd(row)) is not None]
    held_usd = sum(row.held * price for row, price in priced)
    held = sum(row.held for row, _ in priced)
    return TeamSpend(
        team,
        guaranteed=sum(row.guaranteed for row in rows),
        in_quota=sum(row.in_quota for row in rows),
        borrowed=sum(row.borrowed for row in rows),
        lent=sum(row.lent for row in rows),
        unused=sum(row.unused for row in rows),
        idle=idle,
        held_usd=held_usd,
        unused_usd=sum(row.unused * price for row, price in priced),
        # Who held nothing has paid nothing, so the divisor does not matter then.
        idle_usd=None if idle is None else idle * held_usd / (held or 1.0),
        unpriced=sum(row.held + row.unused for row in rows if usd(row) is None),
    )


def _of_instance(environment: Environment, flavor: Flavor, plan_usd: Mapping[str, float]) -> Rate:
    """What an instance of a flavor costs an hour: the average over its groups, weighted by their counts."""
    groups = {**environment.groups, **countable_groups(environment)}
    # A group of zero instances still has a price, for which one instance stands.
    rates = [(groups[name].count or 1, _of_group(environment, name, groups[name], plan_usd)) for name in flavor.groups]
    bases = " and ".join(dict.fromkeys(rate.basis for _, rate in rates))
    known = [(count, rate.usd) for count, rate in rates if rate.usd is not None]
    # An average over what is known alone would call the unknown part free.
    if len(known) < len(rates):
        return Rate(None, bases)
    return Rate(sum(count * usd for count, usd in known) / sum(count for count, _ in known), bases)


def _of_group(environment: Environment, name: str, group: AnyGroup, plan_usd: Mapping[str, float]) -> Rate:
    """The hourly price of a group's instances, with what it is based on."""
    if group.plan:
        if group.plan in plan_usd:
            return Rate(plan_usd[group.plan], f"what plan {group.plan} cost")
        if paid := paid_price(environment, group.plan):
            return Rate(paid.usd, paid.source)
        plan = environment.training_plans.get(group.plan)
        if plan and plan.max_upfront_usd and plan.count and plan.days:
            # The limit of the file, as long as nobody knows what was paid.
            return Rate(plan.max_upfront_usd / (plan.count * plan.days * 24), f"at most, by plan {group.plan}")
        return Rate(None, f"plan {group.plan}, whose price nobody says")
    if group.capacity == "spot":
        return Rate(None, f"{name} is Spot, which has no price in advance")
    prices = [hourly(kind, environment.region, environment.own_prices) for kind in group.types]
    known = [price for price in prices if price]
    if len(known) < len(prices):
        return Rate(None, f"{', '.join(group.types)} has no price here")
    # A mixed group may come to consist of the dearest of its types.
    dearest = max(known, key=lambda price: price.usd)
    return Rate(dearest.usd, f"at least, {dearest.source}" if dearest.lower_bound else dearest.source)
