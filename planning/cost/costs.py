"""What an environment costs: upfront, by the hour, by the month, by stack and by team.

Counted is what stands there whether it is used or not. What depends on use is named and left out, and what has no price
makes a sum unknown in part: nothing here is guessed.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from operator import itemgetter
from typing import Literal

from ...config.catalog.eks_versions import EksVersion, eks_versions
from ...config.catalog.instance_types import environment_types
from ...config.catalog.limits import limits
from ...config.catalog.prices import HOURS_PER_MONTH, Price, hourly, service_items, service_price
from ...config.settings.environment import Environment
from ...config.settings.governance.teams import Amount
from ...config.settings.groups import AnyGroup
from ...config.settings.storage import Lustre
from ..network.cidrs import nat_zones
from ..network.endpoints import GATEWAY_SERVICE, features, services
from ..quota.amounts import instances
from ..quota.stock import Stock
from .plan_prices import hours_by_group, paid_price

StackName = Literal["network", "storage", "eks", "cluster", "observability"]
NOT_COUNTED = (
    "data through NAT gateways, endpoints and between zones",
    "S3, backups, and data in intelligent tiering",
    "scratch that HyperPod manages for restricted groups",
    "logs, metrics and images",
    "runs of CodeBuild and Lambda",
    "support and taxes",
)
"""What is billed by use, or by HyperPod with the instances of restricted groups."""


@dataclass(frozen=True, slots=True)
class Cost:
    """So many of one thing, and what they cost."""

    stack: StackName
    name: str
    """A group, a file system, or an item of `service_items`."""
    what: str
    """In words: type and capacity, or what is counted."""
    quantity: float
    unit: str
    price: Price | None
    """Of one unit; None where nobody says."""
    group: str | None = None
    """The instance group whose instances these are."""
    settable: tuple[str, ...] = ()
    """Keys of `prices` that would give it a price."""
    unpaid_plan: str | None = None
    """The existing training plan whose `paid_usd` would give it a price."""
    accelerated: bool = False
    """Whether it is instances with accelerators, which are most of what a cluster costs."""
    hours: float = HOURS_PER_MONTH
    """Hours of a month in which it is there: fewer than 730 for a training plan that is shorter."""

    @property
    def monthly(self) -> float | None:
        """US dollars in a month of 730 hours, as AWS's price calculator counts it."""
        if self.price is None:
            return None
        return self.price.usd * self.quantity * (1 if self.unit.endswith("month") else self.hours)

    @property
    def hourly(self) -> float | None:
        """US dollars in an hour in which it is there."""
        if self.price is None:
            return None
        return self.price.usd * self.quantity / (HOURS_PER_MONTH if self.unit.endswith("month") else 1)


@dataclass(frozen=True, slots=True)
class Upfront:
    """What a training plan costs at its purchase."""

    plan: str
    at_most: int | None
    """US dollars at which it may be bought; None where the file does not say, or it is bought."""
    what: str
    paid: int | None = None
    """US dollars that it cost, which the costs of its groups spread over its instance-hours; None where nobody says."""


@dataclass(frozen=True, slots=True)
class Sum:
    """A sum of costs, and how complete it is."""

    monthly: float
    unknown: int
    """How many of its parts have no price."""
    lower_bound: bool
    """Whether a part of it has a price that the real one is known to exceed."""
    prepaid: float = 0.0
    """Of `monthly`, what was paid with training plans and comes on no later bill."""
    misleading: bool = False
    """Whether instances with accelerators are among the parts without a price: the sum of the others says little."""
    hourly: float = 0.0
    """US dollars an hour while all of it is there."""

    @property
    def exact(self) -> bool:
        """Whether every part has its own price."""
        return not self.unknown and not self.lower_bound


@dataclass(frozen=True, slots=True)
class TeamCost:
    """What is a team's by its quota, or nobody's."""

    team: str | None
    """None for what no quota gives away."""
    instances: float
    total: Sum
    upfront: float
    """Its share of what training plans that are still to be bought cost, at most, in US dollars."""


def costs(environment: Environment, today: date) -> list[Cost]:
    """All that stands in an environment at the full count of its groups. Adopted parts are not counted.

    `today` decides whether the Kubernetes version is in extended support, which costs six times as much.
    """
    return [
        *_network(environment),
        *_storage(environment),
        *control_plane(environment, today),
        *_cluster(environment),
        *_observability(environment),
    ]


def upfronts(environment: Environment) -> list[Upfront]:
    """What training plans cost at their purchase, as far as the file says."""
    words = {"wanted": "if it is reserved", "purchase": "with the deployment"}
    fees: list[Upfront] = []
    for name, plan in sorted(environment.training_plans.items()):
        if plan.state != "exists":
            fees.append(Upfront(name, plan.max_upfront_usd, words[plan.state]))
        elif paid_price(environment, name) is None:
            fees.append(Upfront(name, None, "paid when it was bought", plan.paid_usd))
        else:
            fees.append(Upfront(name, None, "paid when it was bought, and in the sums by instance-hour", plan.paid_usd))
    return fees


def total(items: Iterable[Cost]) -> Sum:
    """The sum of `items`."""
    items = list(items)
    return Sum(
        sum(item.monthly or 0 for item in items),
        sum(item.price is None for item in items),
        # One price that is too low makes the sum too low.
        any(item.price is not None and item.price.lower_bound for item in items),
        sum(item.monthly or 0 for item in items if item.price is not None and item.price.basis == "plan"),
        any(item.price is None and item.accelerated for item in items),
        sum(item.hourly or 0 for item in items),
    )


def by_stack(items: Iterable[Cost]) -> dict[StackName, Sum]:
    """The sum of each stack that has costs, in order of deployment."""
    stacks: dict[StackName, list[Cost]] = {}
    for item in items:
        stacks.setdefault(item.stack, []).append(item)
    return {stack: total(its) for stack, its in stacks.items()}


def by_team(environment: Environment, items: Iterable[Cost]) -> list[TeamCost]:
    """Instances by the quotas of teams, and last what no quota gives away. Everything else is shared by all.

    Where quotas promise more than a group has, each team's share is cut in proportion.
    """
    groups = {item.group: item for item in items if item.group}
    desired = _quotas(environment, groups)
    promised = {name: sum(map(itemgetter(name), desired.values())) for name in groups}

    def cut(quotas: Mapping[str, float]) -> dict[str, float]:
        # Quotas may promise more than there is; what is there is then divided in proportion.
        # An empty group promises nothing, and a division by nothing says nothing.
        parts = {name: min(1.0, item.quantity / (promised[name] or 1.0)) for name, item in groups.items()}
        return {name: quota * parts[name] for name, quota in quotas.items()}

    shares: dict[str | None, dict[str, float]] = {team: cut(quotas) for team, quotas in desired.items()}
    shares[None] = {name: max(item.quantity - promised[name], 0.0) for name, item in groups.items()}
    fees = _fee_of_an_instance(environment)

    def cost(team: str | None, share: Mapping[str, float]) -> TeamCost:
        return TeamCost(
            team,
            sum(share.values()),
            total(replace(groups[name], quantity=count) for name, count in share.items() if count),
            sum(count * fees.get(name, 0.0) for name, count in share.items()),
        )

    return [cost(team, share) for team, share in shares.items() if team or sum(share.values())]


def _quotas(environment: Environment, groups: Iterable[str]) -> dict[str, dict[str, float]]:
    """Instances that each team is guaranteed, by group, in whole and in parts."""
    types = environment_types(environment.instance_types)
    # A type that the catalog does not know has no parts that a quota could name.
    known = {
        name: group
        for name, group in environment.instance_groups.items()
        if name in groups and all(map(types.find, group.types))
    }
    stock, teams = Stock(known, types), environment.governance.teams
    left = stock.left(team.quota for team in teams.values())

    def instances_of(group: str, parts: Mapping[str, tuple[int, bool]]) -> float:
        if group not in known:
            return 0.0
        return instances({key: count for key, (count, _) in parts.items()}, stock.nodes[group].brings)

    def held(quota: Mapping[str, Amount]) -> dict[str, float]:
        parts = stock.divided({key: amount for key, amount in quota.items() if stock.groups_of(key)}, left)
        return {group: instances_of(group, parts.get(group, {})) for group in groups}

    return {name: held(team.quota) for name, team in teams.items()}


def _fee_of_an_instance(environment: Environment) -> dict[str, float]:
    """What an instance of each group on a plan to be bought costs upfront at most; a plan's groups share its price."""
    drawn = Counter[str | None]()
    for group in environment.groups.values():
        # One plan may serve several groups; the price is divided by the instances that draw on it.
        drawn[group.plan] += group.count
    # What an existing plan cost is spread over its hours.
    unpaid = {name: plan for name, plan in environment.training_plans.items() if plan.state != "exists"}
    return {
        name: (unpaid[group.plan].max_upfront_usd or 0) / drawn[group.plan]
        for name, group in environment.groups.items()
        if group.plan in unpaid and drawn[group.plan]
    }


def _network(environment: Environment) -> Iterator[Cost]:
    """NAT gateways and interface endpoints; a VPC of somebody else costs nothing here."""
    network = environment.network
    if network.vpc is None:
        if gateways := len(nat_zones(network)):
            yield _service(environment, "network", "nat_gateway", gateways, "NAT gateways")
        # The gateway endpoint of S3 costs nothing.
        interfaces = [name for name in services(features(environment)) if name != GATEWAY_SERVICE]
        yield _service(
            environment,
            "network",
            "interface_endpoint",
            len(interfaces) * len(network.zones),
            f"{len(interfaces)} interface endpoints in {len(network.zones)} zones",
        )
    if environment.storage.kms_key is None:
        yield _service(environment, "network", "kms_key", 1, "KMS key")


def _storage(environment: Environment) -> Iterator[Cost]:
    for name, lustre in environment.storage.lustres.items():
        if lustre.existing is None:
            yield from _lustre(environment, name, lustre)
    home = environment.storage.home
    if home and home.openzfs.existing is None:
        size, speed = home.openzfs.capacity_gib, home.openzfs.throughput
        item, where = ("openzfs_multi_az", " in two zones") if home.openzfs.in_two_zones else ("openzfs", "")
        yield _service(environment, "storage", f"{item}_storage", size, f"home: {size:,} GiB of OpenZFS{where}")
        yield _service(environment, "storage", f"{item}_throughput", speed, f"home: {speed:,} MB/s of OpenZFS{where}")
    accounting = environment.cluster.slurm.accounting
    if environment.cluster.orchestrator == "slurm" and accounting and not accounting.existing:
        units = accounting.min_capacity * (2 if accounting.standby else 1)
        yield _service(environment, "storage", "aurora_capacity_unit", units, "accounting: Aurora when idle")


def _lustre(environment: Environment, name: str, lustre: Lustre) -> Iterator[Cost]:
    """Storage, metadata operations and backups of one file system, whether it is SSD or tiered."""
    if lustre.type == "ssd" and lustre.capacity_gib:
        what = f"{name}: {lustre.capacity_gib:,} GiB of SSD at {lustre.throughput} MB/s/TiB"
        item, size = f"lustre_ssd_{lustre.throughput}", lustre.capacity_gib
        if item in service_items():
            yield _service(environment, "storage", item, size, what)
        else:
            # A rule says that FSx has no such throughput; until then rules on costs look at it as well.
            yield Cost("storage", item, what, size, "GB-month", None)
        included = included_metadata_iops(lustre.capacity_gib)
        # With `automatic` FSx provisions what is included, and nothing besides is billed.
        if lustre.metadata_iops != "automatic" and (extra := lustre.metadata_iops - included) > 0:
            what = f"{name}: metadata operations beyond the {included:,} included"
            yield _service(environment, "storage", "lustre_metadata_iops", extra, what)
    elif lustre.throughput_capacity:
        speed, cache = lustre.throughput_capacity, lustre.read_cache
        what = f"{name}: {speed:,} MB/s of intelligent tiering"
        yield _service(environment, "storage", "lustre_tiering_throughput", speed, what)
        if cache and cache.mode == "provisioned" and cache.size_gib:
            what = f"{name}: {cache.size_gib:,} GiB of read cache"
            yield _service(environment, "storage", "lustre_read_cache", cache.size_gib, what)


def included_metadata_iops(capacity_gib: int) -> int:
    """Metadata operations per second that come with an SSD file system of that size.

    Source: FSx for Lustre User Guide, file system metadata performance, 2026-11.
    """
    if capacity_gib >= 48000:
        # Per started 24,000 GiB.
        return 12000 * -(-capacity_gib // 24000)
    return next(iops for size, iops in ((12000, 12000), (4800, 6000), (2400, 3000), (0, 1500)) if capacity_gib >= size)


def extended_from(environment: Environment) -> date | None:
    """The day from which extended support of the control plane's Kubernetes is paid; None where it is not.

    The days of EKS's table begin at midnight in UTC, as DescribeClusterVersions has them.
    """
    eks = environment.cluster.eks
    known = eks_versions().get(eks.version)
    # Without extended support EKS then takes the control plane to the next version.
    is_paid = environment.cluster.orchestrator == "eks" and eks.existing is None and eks.support != "standard"
    return date.fromisoformat(known.standard_until) if is_paid and known and known.standard_until else None


def control_plane(environment: Environment, today: date) -> Iterator[Cost]:
    """The control plane of EKS on a day; nothing where it is adopted or there is none."""
    eks = environment.cluster.eks
    if environment.cluster.orchestrator == "eks" and eks.existing is None:
        known, later = eks_versions().get(eks.version), extended_from(environment)
        late = later is not None and today >= later
        item = "eks_extended_support" if late else "eks_control_plane"
        support = "extended support" if late else f"standard support{_afterwards(environment, known)}"
        yield _service(environment, "eks", item, 1, f"control plane, Kubernetes {eks.version} in {support}")


def _afterwards(environment: Environment, version: EksVersion | None) -> str:
    """When standard support of a Kubernetes version ends, and what a control plane costs from then on."""
    later = service_price("eks_extended_support", environment.region, environment.own_prices)
    if version is None or version.standard_until is None or later is None:
        return ""
    if environment.cluster.eks.support == "standard":
        return f" until {version.standard_until}, when EKS upgrades it"
    return f" until {version.standard_until}, then ${later.usd:.2f} an hour"


def _cluster(environment: Environment) -> Iterator[Cost]:
    for name, group in environment.groups.items():
        if group.count:
            yield _instances(environment, name, group)
    groups = environment.groups.values()
    sizes = [limits().cluster.root_volume_gb * group.count for group in groups]
    sizes += [volume.size_gib * group.count for group in groups for volume in group.volumes]
    if sizes:
        yield _service(environment, "cluster", "node_volume", sum(sizes), "root and further volumes of all nodes")


def _observability(environment: Environment) -> Iterator[Cost]:
    if environment.observability:
        yield _service(environment, "observability", "kms_key", 1, "KMS key of alerts")


def _instances(environment: Environment, name: str, group: AnyGroup) -> Cost:
    """The instances of a group for a month of 730 hours; unknown where the market or nobody says."""
    prices = {kind: hourly(kind, environment.region, environment.own_prices) for kind in group.types}
    types, price, missing, unpaid, hours = " or ".join(group.types), None, (), None, float(HOURS_PER_MONTH)
    kinds = map(environment_types(environment.instance_types).find, group.types)
    # What the catalog does not know may have them.
    accelerated = any(kind is None or kind.accelerator_count != 0 for kind in kinds)
    if group.plan:
        what = f"{types} of plan {group.plan}"
        plan = environment.training_plans.get(group.plan)
        exists = plan is not None and plan.state == "exists"
        # A plan that is still to be bought is counted upfront, at most at its limit.
        price = paid_price(environment, group.plan) if exists else Price(0.0, "plan", "paid upfront with its purchase")
        unpaid = group.plan if exists and price is None else None
        if name in (shorter := hours_by_group(environment)):
            hours = shorter[name]
            what = f"{what}, {hours:,.0f} hours"
    elif group.capacity == "spot":
        what = f"{types}, Spot: the market decides"
    else:
        what = f"{types} {'of the account team' if group.capacity == 'account_team' else 'on demand'}"
        known = [price for price in prices.values() if price]
        missing = tuple(kind for kind, price in prices.items() if price is None)
        # A mixed group may come to consist of the dearest of its types.
        price = max(known, key=lambda price: price.usd) if known and not missing else None
    return Cost("cluster", name, what, group.count, "instance-hour", price, name, missing, unpaid, accelerated, hours)


def _service(environment: Environment, stack: StackName, item: str, quantity: float, what: str) -> Cost:
    price = service_price(item, environment.region, environment.own_prices)
    return Cost(stack, item, what, quantity, service_items()[item].unit, price, settable=() if price else (item,))
