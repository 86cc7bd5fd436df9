"""The gate `cluster`: HyperPod has what the file says, and Kubernetes lets work onto it."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from ...config.catalog.drills import HEALTH_LABEL, HEALTHY
from ..nodes.members import Member, members
from .gate import Context, Look, Result

_GONE: Final = {"Failed": "the cluster has failed", "Deleting": "the cluster is being deleted"}
_DEEP_HEALTH: Final = "sagemaker.amazonaws.com/deep-health-check-status"


def run(context: Context) -> Result:
    """Wait until cluster, groups and nodes are there."""
    return context.wait(lambda: _look(context))


def _look(context: Context) -> Look:
    look, client = Look(), context.account.client("sagemaker")
    name, environment = context.environment.cluster.name, context.environment
    try:
        cluster = client.describe_cluster(ClusterName=name)
    except client.exceptions.ResourceNotFound:
        look.check(name, "InService", "is not there", False)
        look.final, look.next_step = f"there is no cluster {name}", f"`podwright deploy {environment.name}` makes it"
        return look
    status = cluster["ClusterStatus"]
    look.check(name, "InService", status, status == "InService")
    if status in _GONE:
        look.final = f"{_GONE[status]}: {cluster.get('FailureMessage', 'HyperPod gives no reason')}"
    _groups(context, cluster, look)
    there = members(client, name)
    _nodes(there, look)
    look.answers = {
        "cluster": {key: cluster.get(key) for key in ("ClusterArn", "ClusterStatus", "FailureMessage")},
        "groups": [
            {
                key: row.get(key)
                for key in ("InstanceGroupName", "CurrentCount", "TargetCount", "Status", "TrainingPlanStatus")
            }
            for row in _rows(cluster)
        ],
        "nodes": dict(Counter(f"{node.group} {node.status}" for node in there)),
    }
    # Each look into a private API takes a run inside the VPC, so HyperPod's side comes first.
    if environment.cluster.orchestrator == "eks" and not look.missing:
        _kubernetes(context, there, look)
    return look


def _rows(cluster: dict[str, Any]) -> list[dict[str, Any]]:
    return [*cluster.get("InstanceGroups", ()), *cluster.get("RestrictedInstanceGroups", ())]


def _groups(context: Context, cluster: dict[str, Any], look: Look) -> None:
    """Every group of the file; with Karpenter its own target is what counts, because Karpenter moves it."""
    rows = {row["InstanceGroupName"]: row for row in _rows(cluster)}
    moves = context.environment.cluster.autoscaling == "karpenter"
    for name, group in context.environment.groups.items():
        row = rows.get(name)
        if row is None:
            look.check(f"group {name}", f"{group.count} of {group.count}", "is not in the cluster", False)
            continue
        current, target = row["CurrentCount"], row["TargetCount"]
        wanted = target if moves else group.count
        said = f"{current} of {target}" + (f", the file says {group.count}" if target != wanted else "")
        plan = row.get("TrainingPlanArn")
        if current < wanted and plan and row.get("TrainingPlanStatus") not in (None, "Active"):
            said += _plan(context, plan, look)
        look.check(f"group {name}", f"{wanted} of {wanted}", said, current == target == wanted)


def _plan(context: Context, arn: str, look: Look) -> str:
    """What a group waits for whose training plan gives no nodes now."""
    plan = context.account.client("sagemaker").describe_training_plan(TrainingPlanName=arn.rpartition("/")[2])
    windows = [item for item in plan.get("ReservedCapacitySummaries", ()) if item["Status"] == "Scheduled"]
    name, status = plan["TrainingPlanName"], plan["Status"]
    starts = min((item["StartTime"] for item in windows), default=None)
    if starts is None:
        look.final = f"training plan {name} is {status} and has no window to come"
        look.next_step = "give the group another plan or capacity, or lower its count"
        return f", training plan {name} is {status}"
    if starts > datetime.now(UTC) + timedelta(seconds=max(context.left, 0)):
        look.final = f"training plan {name} begins at {starts.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
        look.next_step = "run this gate again after that"
    return f", waits for training plan {name} from {starts.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _nodes(there: Sequence[Member], look: Look) -> None:
    """The nodes that do not run."""
    for node in there:
        if node.status != "Running":
            told = f"{node.status}: {node.message}" if node.message else node.status
            look.check(f"{node.id} of {node.group}", "Running", told, False)


def _kubernetes(context: Context, there: Sequence[Member], look: Look) -> None:
    """Every node is ready in Kubernetes, and HyperPod lets work onto it."""
    found = {item["metadata"]["name"]: item for item in context.kubectl.items("nodes")}
    well: Counter[str] = Counter()
    for node in there:
        why = _why_not(found.get(node.kubernetes_name))
        well[node.group] += not why
        if why:
            look.check(f"{node.id} of {node.group}", f"Ready and {HEALTHY} in Kubernetes", why, False)
    for group, count in sorted(Counter(node.group for node in there).items()):
        if well[group] == count:
            look.check(f"{group} in Kubernetes", f"{count} ready", f"{count} ready", True)
    look.answers["kubernetes"] = {"ready": dict(sorted(well.items()))}


def _why_not(node: dict[str, Any] | None) -> str:
    """What keeps work from a node; empty where nothing does."""
    if node is None:
        return "is not in Kubernetes"
    conditions: Iterable[dict[str, Any]] = node.get("status", {}).get("conditions", ())
    ready = next((item for item in conditions if item["type"] == "Ready"), {"status": "Unknown"})
    if ready["status"] != "True":
        return f"Ready is {ready['status']}: {ready.get('message', 'kubelet says nothing')}"
    labels = node["metadata"].get("labels", {})
    if labels.get(HEALTH_LABEL, HEALTHY) != HEALTHY:
        return f"{HEALTH_LABEL.rpartition('/')[2]} is {labels[HEALTH_LABEL]}"
    if labels.get(_DEEP_HEALTH) == "Failed":
        return "its deep health check failed"
    if node.get("spec", {}).get("unschedulable"):
        return "is cordoned"
    return ""
