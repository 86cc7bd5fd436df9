"""Whether a training plan, as SageMaker describes it, can serve the groups that draw on it."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from .....planning.purchase.offers import TARGET

_OVER: Final = ("Expired", "Failed")


@dataclass(frozen=True)
class Need:
    """What one instance group wants of the plan."""

    group: str
    zone: str
    """Zone id of its subnet; empty for a group in subnets of the user's own."""
    instance_type: str
    count: int

    @classmethod
    def of(cls, properties: dict[str, str]) -> "Need":
        """From the resource's properties; CloudFormation sends every number as text."""
        return cls(
            properties["Group"], properties.get("Zone", ""), properties["InstanceType"], int(properties["Count"])
        )


def misfits(plan: dict[str, Any], needs: list[Need]) -> Iterator[str]:
    """Each reason why the plan cannot serve `needs`, with ways to fix it; nothing when it can."""
    name = plan["TrainingPlanName"]
    targets = plan.get("TargetResources", [])
    if targets and TARGET not in targets:
        yield (
            f"{name} serves {', '.join(targets)}, and instance groups need {TARGET}; a plan's target cannot be "
            f"changed, so reserve another plan for {TARGET}"
        )
        return
    # Parts that are over give no instances, and would make the plan look larger than it is.
    parts = [part for part in plan.get("ReservedCapacitySummaries", []) if part.get("Status") not in _OVER]
    types = {part["InstanceType"] for part in parts}
    zones = {part["AvailabilityZoneId"] for part in parts if "AvailabilityZoneId" in part}
    # Of several parts SageMaker gives the sum, which says nothing of any one of them.
    spares = plan.get("AvailableSpareInstanceCount", 0) if len(parts) == 1 else 0
    desired: defaultdict[str, list[Need]] = defaultdict(list)
    for need in needs:
        if types and need.instance_type not in types:
            yield (
                f"group {need.group} has {need.instance_type}, and {name} reserves {_listed(types)}; "
                "change the group's type, or draw on another plan"
            )
        elif zones and need.zone and need.zone not in zones:
            yield (
                f"group {need.group} stands in {need.zone}, and {name} has its capacity in {_listed(zones)}; either "
                f"move there (the plan's `zone`, a subnet, and the file systems beside the group), or draw on a plan "
                f"in {need.zone}"
            )
        else:
            desired[need.zone].append(need)
    for zone, asking in desired.items():
        existing = [part for part in parts if not zone or part.get("AvailabilityZoneId", zone) == zone]
        # A plan whose parts SageMaker does not list yet has its total alone.
        most = max((_together(part, existing) for part in existing), default=plan.get("TotalInstanceCount", 0)) - spares
        total = sum(need.count for need in asking)
        if total > most:
            sums = " + ".join(f"{need.count} in {need.group}" for need in asking)
            retained = f", {spares} kept as spares left aside" if spares else ""
            yield (
                f"the groups ask for {sums} = {total} instances{f' in {zone}' if zone else ''}, and {name} never has "
                f"more than {most} there{retained}; lower the counts by {total - most}, or use a larger plan"
            )


def _together(part: dict[str, Any], others: list[dict[str, Any]]) -> int:
    """Instances that are there when this part starts; parts may follow each other, or run side by side."""
    if "StartTime" not in part:
        return part["TotalInstanceCount"]
    return sum(
        other["TotalInstanceCount"]
        for other in others
        if other is part or ("StartTime" in other and other["StartTime"] <= part["StartTime"] < other["EndTime"])
    )


def _listed(names: set[str]) -> str:
    return " and ".join(sorted(names))
