"""Checks of places: what the region and its zones have for this account."""

from collections import defaultdict
from typing import Any

from ...config.catalog.regions import offering_regions, regions
from ...config.findings import listed
from ...config.settings.governance.task_governance import TYPES
from ...planning.rules.capacity.zones import sections
from ...planning.rules.framework.rule import Problem
from .check import Answers, Ask, Note, check


@check("PRE010")
def hyperpod_here(ask: Ask) -> Answers:
    """Whether CloudFormation knows the resource types of the environment in its region."""
    region = ask.environment.region
    types = ["AWS::SageMaker::Cluster"] * ask.environment.has_cluster
    types += ["AWS::SageMaker::MlflowApp"] * (ask.environment.platform.mlflow is not None)
    types += ["AWS::Batch::QuotaShare"] * bool(ask.environment.training_job_queues)
    types += ["AWS::EKS::Cluster"] * (ask.environment.cluster.orchestrator == "eks")
    types += ["AWS::FSx::FileSystem"] * bool(ask.environment.storage.lustres or ask.environment.storage.home)
    for name in types:
        result = ask.aws.find(
            "cloudformation", "describe_type", {"TypeNotFoundException"}, Type="RESOURCE", TypeName=name
        )
        if result is None:
            cluster = name == "AWS::SageMaker::Cluster"
            listing = [row.name for row in regions().values() if row.cluster] if cluster else []
            yield Problem(
                "region",
                f"CloudFormation has no {name} in {region}"
                + (f"; the public lists show it in {listed(listing, 'and')}" if listing else ""),
                "choose another region",
            )
    if ask.environment.observability and ask.environment.observability.budget_usd_per_month:
        # Of the linters' lists by region several lack it.
        name = "AWS::Budgets::Budget"
        if ask.aws.find("cloudformation", "describe_type", {"TypeNotFoundException"}, Type="RESOURCE", TypeName=name):
            types.append(name)
        else:
            yield Problem(
                ("observability", "budget_usd_per_month"),
                f"CloudFormation has no {name} in {region}",
                "remove budget_usd_per_month, and create the budget in a region where CloudFormation supports it",
            )
    governance = ask.environment.governance
    quotas = set(TYPES) - set(governance.task_governance.fallback) if governance.engine == "hyperpod" else set()
    for kind in sorted(quotas):
        if ask.aws.find(
            "cloudformation", "describe_type", {"TypeNotFoundException"}, Type="RESOURCE", TypeName=TYPES[kind]
        ):
            types.append(TYPES[kind])
        else:
            yield Problem(
                ("governance", "task_governance", "fallback"),
                f"CloudFormation has no {TYPES[kind]} in {region}",
                f"add {kind} to fallback: SageMaker's API then makes what it would",
            )
    yield Note(f"{len(types)} resource types")


@check("PRE011")
def zones(ask: Ask) -> Answers:
    """Zone ids against the account's zones, with the names that they have there."""
    existing = account_zones(ask)
    for index, zone in enumerate(ask.environment.network.zones):
        path, known = ("network", "zones", index), existing.get(zone)
        if known is None:
            usable = sorted(id for id, row in existing.items() if row.get("OptInStatus") != "not-opted-in")
            yield Problem(
                path,
                f"account {ask.account} has no zone {zone} in {ask.environment.region}; it has {listed(usable, 'and')}",
                "choose one of these",
            )
        elif known.get("OptInStatus") == "not-opted-in":
            yield Problem(
                path,
                f"{zone} ({known['ZoneName']}) is not enabled in account {ask.account}",
                f"`aws ec2 modify-availability-zone-group --group-name {known['GroupName']} --opt-in-status opted-in`",
            )
        elif known["State"] != "available":
            yield Problem(
                path, f"{zone} ({known['ZoneName']}) is {known['State']}", "choose another zone, or wait for this one"
            )
        else:
            yield Note(f"{zone} is {known['ZoneName']}")


def account_zones(ask: Ask) -> dict[str, dict[str, Any]]:
    """The account's zones by id, those that are not enabled included."""
    availability_zones = ask.aws.get("ec2", "describe_availability_zones", AllAvailabilityZones=True)[
        "AvailabilityZones"
    ]
    return {row["ZoneId"]: row for row in availability_zones}


@check("PRE012")
def offered(ask: Ask) -> Answers:
    """Where EC2 offers the types of groups that take what the zone has.

    Capacity of a plan or of an account team is where it was agreed, whatever the lists say.
    """
    groups = [(path, group) for path, group in sections(ask.environment) if group.capacity in ("on_demand", "spot")]
    names = sorted({name.removeprefix("ml.") for _, group in groups for name in group.types})
    if not names:
        return
    rows = ask.aws.pages(
        "ec2",
        "describe_instance_type_offerings",
        "InstanceTypeOfferings",
        LocationType="availability-zone-id",
        Filters=[{"Name": "instance-type", "Values": names}],
    )
    offers: defaultdict[str, set[str]] = defaultdict(set)
    for row in rows:
        offers[f"ml.{row['InstanceType']}"].add(row["Location"])
    for path, group in groups:
        for zone in group.zone_ids:
            if group.types and not any(zone in offers[name] for name in group.types):
                existing = [f"{name} in {_elsewhere(name, offers[name], ask)}" for name in group.types]
                yield Problem(
                    (*path, "zones" if len(group.zone_ids) > 1 else "zone"),
                    f"EC2 does not offer {listed(group.types, 'nor')} in {zone}; it offers {'; '.join(existing)}",
                    "move the group to one of these zones (with its file system and its subnet), or "
                    "choose another type; if AWS has promised you this capacity, accept this finding",
                )
    yield Note(f"{len(names)} types")


def _elsewhere(name: str, zones: set[str], ask: Ask) -> str:
    if zones:
        return listed(sorted(zones), "and")
    others = [region for region in offering_regions(name) if region != ask.environment.region]
    known = f"; price lists show it in {listed(others, 'and')}" if others else ""
    return f"no zone of {ask.environment.region}{known}"


@check("PRE013")
def file_systems_here(ask: Ask) -> Answers:
    """Whether AWS lists FSx in the region. No call tells which of its kinds a single zone has."""
    region, storage = ask.environment.region, ask.environment.storage
    makes_home = storage.home and storage.home.openzfs.existing is None
    desired = {"fsx-openzfs": ("storage", "home")} if makes_home else {}
    if any(lustre.existing is None for lustre in storage.lustres.values()):
        desired["fsx-lustre"] = ("storage", "lustre" if storage.lustre else "additional_lustre")
    if not desired:
        return
    names = {f"/aws/service/global-infrastructure/regions/{region}/services/{kind}": kind for kind in desired}
    answer = ask.aws.get("ssm", "get_parameters", Names=sorted(names))
    existing = {names[parameter["Name"]] for parameter in answer["Parameters"]}
    for kind, path in desired.items():
        if kind not in existing:
            yield Problem(
                path,
                f"AWS does not list {kind} among the services of {region}",
                "check the region tables of the FSx guide, and choose another region or remove the file system",
            )
    yield Note(", ".join(sorted(existing)) or "none")
