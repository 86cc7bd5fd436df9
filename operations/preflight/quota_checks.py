"""Checks of service quotas, by name: what the account may have against what the environment and others take."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from ...config.catalog.service_quotas import quotas
from ...config.findings import Path
from ...config.settings.groups import AnyGroup
from ...planning.network.cidrs import nat_zones
from ...planning.rules.capacity.zones import lustre_path, sections
from ...planning.rules.framework.rule import Problem
from .check import Answers, Ask, Note, Skip, check
from .shared import other_clusters, stack

_OVER = {"Expired", "Failed"}


@check("PRE030")
def types(ask: Ask) -> Answers:
    """Instances of each type. Those of a training plan count too; Spot has quotas of its own."""
    others = _of_others(ask)
    for spot, key in ((False, "type"), (True, "spot_type")):
        desired: Counter[str] = Counter()
        paths: dict[str, Path] = {}
        for path, group in sections(ask.environment):
            # A group of mixed types may become all of one, which nobody can say before.
            if len(group.types) == 1 and group.count and (group.capacity == "spot") == spot:
                desired[group.types[0]] += group.count
                paths.setdefault(group.types[0], (*path, "count"))
        for name, count in desired.items():
            yield from _compare(ask, key, count, others[name, spot], paths[name], name)


@check("PRE031")
def totals(ask: Ask) -> Answers:
    """Instances in one cluster and in all of them."""
    groups, others = dict(sections(ask.environment)), _of_others(ask)
    total = sum(group.count for group in groups.values())
    spot = sum(group.count for group in groups.values() if group.capacity == "spot")
    path, others_total = ("instance_groups",), sum(others.values())
    yield from _compare(ask, "cluster", total, 0, path)
    yield from _compare(ask, "clusters", total, others_total, path)
    if spot:
        of_others = sum(count for (_, of_spot), count in others.items() if of_spot)
        yield from _compare(ask, "spot_clusters", spot, of_others, path)


@check("PRE032")
def volumes(ask: Ask) -> Answers:
    """The largest further volume of a node."""
    sizes = [
        (volume.size_gib, (*path, "volumes", index, "size_gib"))
        for path, group in sections(ask.environment)
        for index, volume in enumerate(group.volumes)
    ]
    if sizes:
        size, path = max(sizes, key=lambda item: item[0])
        yield from _compare(ask, "volume", size, 0, path)


@check("PRE033")
def networks(ask: Ask) -> Answers:
    """Room for another VPC and for the addresses of its NAT gateways, while the network is not there yet."""
    network = ask.environment.network
    if network.vpc is not None:
        return
    # Deployed already, so what it takes is taken.
    if stack(ask, "network"):
        yield Note("the network is there")
        return
    vpcs = len(ask.aws.pages("ec2", "describe_vpcs", "Vpcs"))
    yield from _compare(ask, "vpcs", 1, vpcs, ("network",))
    if gateways := len(nat_zones(network)):
        taken = len(ask.aws.get("ec2", "describe_addresses")["Addresses"])
        yield from _compare(ask, "addresses", gateways, taken, ("network", "nat"))


@check("PRE034")
def file_systems(ask: Ask) -> Answers:
    """Room for new Lustre file systems, while their stack is not there yet."""
    created = {name: lustre for name, lustre in ask.environment.storage.lustres.items() if lustre.existing is None}
    if not created:
        return
    if stack(ask, "storage"):
        yield Note("the file systems are there")
        return
    rows = ask.aws.pages("fsx", "describe_file_systems", "FileSystems")
    # Quotas of FSx count by deployment type.
    existing = [row for row in rows if row.get("LustreConfiguration", {}).get("DeploymentType") == "PERSISTENT_2"]
    path = lustre_path(next(iter(created)))
    yield from _compare(ask, "lustre_count", len(created), len(existing), path)
    capacity = sum(lustre.capacity_gib or 0 for lustre in created.values() if lustre.type == "ssd")
    if capacity:
        taken = sum(row.get("StorageCapacity", 0) for row in existing)
        yield from _compare(ask, "lustre_capacity", capacity, taken, path)


@check("PRE035")
def training_plans(ask: Ask) -> Answers:
    """Room for training plans that are still to be bought."""
    desired = {name: plan for name, plan in ask.environment.training_plans.items() if plan.state != "exists"}
    if not desired:
        return
    summaries = ask.aws.pages("sagemaker", "list_training_plans", "TrainingPlanSummaries")
    existing = [row for row in summaries if row["Status"] not in _OVER]
    yield from _compare(ask, "plans", len(desired), len(existing), ("training_plans",))
    taken: Counter[str] = Counter()
    # Quotas of plans count by type what all plans reserve together.
    for capacity in (each for row in existing for each in row.get("ReservedCapacitySummaries", [])):
        taken[capacity["InstanceType"]] += capacity["TotalInstanceCount"]
    for name, plan in desired.items():
        path, instance_type, count = ("training_plans", name), plan.instance_type, plan.count or 0
        if plan.ultraserver_type and (server := ask.types.ultraservers.get(plan.ultraserver_type)):
            instance_type, count = server.instance_type, server.instances * (plan.ultraserver_count or 0)
        if instance_type and count:
            yield from _compare(ask, "plan_type", count, taken[instance_type], path, instance_type)


def _of_others(ask: Ask) -> Counter[tuple[str, bool]]:
    """Instances that other clusters hold or want, by type and whether they are Spot instances."""
    counts: Counter[tuple[str, bool]] = Counter()
    for cluster in other_clusters(ask):
        for group in (*cluster.get("InstanceGroups", ()), *cluster.get("RestrictedInstanceGroups", ())):
            spot = "Spot" in group.get("CapacityRequirements", {})
            # What a group wants counts as well: it will come.
            count = max(group.get("CurrentCount", 0), group.get("TargetCount", 0))
            counts[group.get("InstanceType", ""), spot] += count
    return counts


def _compare(ask: Ask, key: str, desired: int, taken: int, path: Path, instance_type: str = "") -> Answers:
    """A quota against what is wanted beside what is taken."""
    name, service = quotas()[key].named(instance_type), quotas()[key].service
    quota = _values(ask, service).get(name)
    # A quota that is renamed or not listed yet must not look like one that suffices.
    if quota is None:
        yield Skip(f"Service Quotas lists no {name!r} for {service}")
        return
    value, needed = int(quota["Value"]), desired + taken
    if needed <= value:
        yield Note(f"{name}: {needed:,} of {value:,}")
        return
    beside = f" beside {taken:,} elsewhere in the account, {needed:,} in all" if taken else ""
    yield Problem(
        path,
        f"the quota {name!r} is {value:,}; wanted: {desired:,}{beside}",
        f"have it raised, which takes AWS hours to days: `aws service-quotas request-service-quota-increase "
        f"--region {ask.environment.region} --service-code {service} --quota-code {quota['QuotaCode']} "
        f"--desired-value {needed}`",
    )


def _values(ask: Ask, service: str) -> dict[str, dict[str, Any]]:
    """The quotas of a service that an environment can meet, by name: as applied to the account, else as by default."""
    # One call by code is far quicker than reading all pages for a name.
    names, codes = set(_names(ask, service)), ask.quota_codes.get(service, {})
    observed = ask.seen_codes.setdefault(service, {})

    def complete(rows: list[Any]) -> bool:
        # Called with each page, so even a reading that comes too late leaves its codes for the next run.
        observed.update({row["QuotaName"]: row["QuotaCode"] for row in rows})
        return names <= {row["QuotaName"] for row in rows}

    values = {
        name: quota for name in sorted(names & codes.keys()) if (quota := _by_code(ask, service, name, codes[name]))
    }
    for operation in ("list_service_quotas", "list_aws_default_service_quotas"):
        if names <= values.keys():
            break
        rows = ask.aws.pages("service-quotas", operation, "Quotas", until=complete, ServiceCode=service, MaxResults=100)
        # The applied values win; defaults fill in what the account never changed.
        values = {row["QuotaName"]: row for row in rows if row["QuotaName"] in names} | values
    return values


def _by_code(ask: Ask, service: str, name: str, code: str) -> dict[str, Any] | None:
    """The quota of a remembered code; None when it is another by now."""
    for operation in ("get_service_quota", "get_aws_default_service_quota"):
        absent = {"NoSuchResourceException"}
        result = ask.aws.find("service-quotas", operation, absent, ServiceCode=service, QuotaCode=code)
        if result:
            # A quota may have got another name under its code.
            return result["Quota"] if result["Quota"]["QuotaName"] == name else None
    return None


def _names(ask: Ask, service: str) -> Iterator[str]:
    """The names that any check asks for, so that one reading serves them all."""
    groups: list[AnyGroup] = [group for _, group in sections(ask.environment)]
    plans = ask.environment.training_plans.values()
    bought = [plan for plan in plans if plan.state != "exists"]
    servers = [ask.types.ultraservers.get(plan.ultraserver_type or "") for plan in bought]
    one = {group.types[0] for group in groups if len(group.types) == 1 and group.count and group.capacity != "spot"}
    spot = {group.types[0] for group in groups if len(group.types) == 1 and group.count and group.capacity == "spot"}
    of_plans = {plan.instance_type for plan in bought if plan.instance_type}
    of_plans |= {server.instance_type for server in servers if server}
    asked = {
        "type": one,
        "spot_type": spot,
        "plan_type": of_plans,
        "spot_clusters": {""} if spot else set(),
        "volume": {""} if any(group.volumes for group in groups) else set(),
        "plans": {""} if bought else set(),
    }
    for key, quota in quotas().items():
        if quota.service == service:
            yield from (quota.named(name) for name in asked.get(key, {""}))
