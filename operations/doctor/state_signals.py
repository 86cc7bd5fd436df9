"""Signals that no service puts into words: plans, zones, subnets, security groups and quotas that do not fit."""

from collections.abc import Iterator
from typing import Any, Final

from ...config.catalog.instance_types import Catalog, catalog
from .bundle import SOURCES, Bundle, moment
from .evidence import CLUSTER, Group, Scene, Signal

_FEW_ADDRESSES: Final = 8
"""A subnet with fewer free addresses takes no more nodes: the smallest needs one and its pods more."""


def state_signals(bundle: Bundle, scene: Scene) -> Iterator[Signal]:
    """What is wrong around groups that are short of instances, and which nodes were taken out of work."""
    for id, entry in bundle.entries("quarantines").items():
        # Records outlive the nodes that were replaced.
        if node := scene.nodes.get(id):
            text = f"node {id} is in quarantine since {entry.get('since')}: {entry.get('reason')} ({entry.get('by')})"
            source_file = f"{SOURCES['quarantines'].file} {id}"
            yield Signal("state", text, node.subject, source_file, scene.around_node(id, node.group), symptom=True)
    known = catalog()
    subnets = {item.get("SubnetId", ""): item for item in bundle.items("subnets", "Subnets")}
    rules = {item.get("GroupId", ""): item for item in bundle.items("security_groups", "SecurityGroups")}
    quotas = {item.get("QuotaName", ""): item.get("Value") for item in bundle.items("service_quotas", "Quotas")}
    plans = bundle.entries("plans")
    for group in scene.groups.values():
        if not group.short and not scene.failed:
            continue
        zones = {str(subnets[id].get("AvailabilityZoneId", "")) for id in group.subnets if id in subnets} - {""}
        results = [
            *_plan(bundle, group, plans.get(group.plan), zones, scene),
            *_subnets(group, subnets),
            *_efa(bundle, group, zones, rules, known),
            *_quota(group, quotas, scene),
        ]
        for text, source_file in results:
            yield Signal("state", text, group.subject, source_file, frozenset({CLUSTER, group.subject}))


def _plan(
    bundle: Bundle, group: Group, plan: dict[str, Any] | None, zones: set[str], scene: Scene
) -> Iterator[tuple[str, str]]:
    """What is wrong with the training plan of a group, and the file that shows it."""
    if not plan:
        return
    source_file = f"{SOURCES['plans'].file} {group.plan}"
    name, status = plan.get("TrainingPlanName", group.plan), plan.get("Status", "")
    parts = plan.get("ReservedCapacitySummaries") or ()
    ends = moment(plan.get("EndTime"))
    if status in ("Scheduled", "Pending", "Expired", "Failed"):
        yield f"training plan {name} is {status}, {plan.get('StatusMessage') or _window(plan)}", source_file
        return
    if ends and ends < scene.now:
        yield f"training plan {name} is Expired: it ended at {ends:%Y-%m-%d %H:%M} UTC", source_file
        return
    theirs = {str(part.get("AvailabilityZoneId", "")) for part in parts} - {""}
    if theirs and zones and not theirs & zones:
        where, ours = ", ".join(sorted(theirs)), ", ".join(sorted(zones))
        yield f"training plan {name} is in zone {where} and group {group.name} in {ours}", source_file
    missing, free = group.target - group.current, plan.get("AvailableInstanceCount")
    if isinstance(free, int) and free < missing:
        yield (
            f"training plan {name} has {free} instances available and group {group.name} wants {missing} more",
            source_file,
        )


def _window(plan: dict[str, Any]) -> str:
    return f"from {plan.get('StartTime', 'an unknown time')} to {plan.get('EndTime', 'an unknown time')}"


def _subnets(group: Group, subnets: dict[str, dict[str, Any]]) -> Iterator[tuple[str, str]]:
    free = {id: subnets[id].get("AvailableIpAddressCount") for id in group.subnets if id in subnets}
    counted = {id: count for id, count in free.items() if isinstance(count, int)}
    if counted and max(counted.values()) < _FEW_ADDRESSES:
        for id, count in counted.items():
            yield f"subnet {id} of group {group.name} has {count} free addresses", f"{SOURCES['subnets'].file} {id}"


def _efa(
    bundle: Bundle, group: Group, zones: set[str], rules: dict[str, dict[str, Any]], known: Catalog
) -> Iterator[tuple[str, str]]:
    kind = known.find(group.instance_type)
    if not kind or not kind.efa_interfaces:
        return
    closed = [id for id in group.security_groups if id in rules and _closed_to_itself(rules[id])]
    for id in closed:
        text = f"security group {id} of group {group.name} does not allow all traffic from and to itself"
        yield text, f"{SOURCES['security_groups'].file} {id}"
    if len(zones) > 1 and not closed and "EFA" in _said(bundle):
        where = ", ".join(sorted(zones))
        text = f"group {group.name} uses EFA and has subnets in the zones {where}; EFA's check failed"
        yield text, SOURCES["subnets"].file


def _said(bundle: Bundle) -> str:
    """What was said about failed EFA checks, as far as it matters here: the word, where it was said of a failure."""
    texts = (bundle.files.get(SOURCES[name].file, "") for name in ("cluster", "nodes", "node_details", "event_details"))
    return "EFA" if any("EFA health check" in text for text in texts) else ""


def _closed_to_itself(group: dict[str, Any]) -> bool:
    """Whether a direction has no rule for all traffic of the security group itself.

    A direction that the answer leaves out, or a rule whose protocol or group it leaves out, decides nothing.
    """
    directions = [group[name] for name in ("IpPermissions", "IpPermissionsEgress") if name in group]
    return any(not _opens(rules, group.get("GroupId")) for rules in directions)


def _opens(rules: list[dict[str, Any]], id: str | None) -> bool:
    """Whether one of the rules of a direction may allow all traffic of that security group."""
    return any(_may_open(rule, id) for rule in rules)


def _may_open(rule: dict[str, Any], id: str | None) -> bool:
    """Whether a rule allows all traffic of that security group, as far as it says."""
    pairs = rule.get("UserIdGroupPairs", [{}])
    return rule.get("IpProtocol", "-1") == "-1" and any(pair.get("GroupId", id) == id for pair in pairs)


def _quota(group: Group, quotas: dict[str, Any], scene: Scene) -> Iterator[tuple[str, str]]:
    name = f"{group.instance_type} for cluster usage"
    value = quotas.get(name)
    desired = sum(other.target for other in scene.groups.values() if other.instance_type == group.instance_type)
    if isinstance(value, int | float) and value < desired:
        yield f'the quota "{name}" is {value:g}, and the cluster asks for {desired}', SOURCES["service_quotas"].file
