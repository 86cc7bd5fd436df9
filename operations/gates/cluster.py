"""The gate `cluster`: HyperPod has what the file says, and Kubernetes lets work onto it."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from ...config.catalog.drills import HEALTH_LABEL, HEALTHY
from ..aws.clusters import Cluster, Node, nodes_by_group
from ..aws.clusters import cluster as find_cluster
from ..aws.plans import plan
from .gate import Context, Observation, Result

_GONE: Final = {"Failed": "the cluster has failed", "Deleting": "the cluster is being deleted"}
_DEEP_HEALTH: Final = "sagemaker.amazonaws.com/deep-health-check-status"


def run(context: Context) -> Result:
    """Wait until cluster, groups and nodes are there."""
    return context.wait(lambda: _observe(context))


def _observe(context: Context) -> Observation:
    """The cluster, its groups and its nodes."""
    observation, account = Observation(), context.account
    name, environment = context.environment.cluster.name, context.environment
    cluster = find_cluster(account, name)
    if cluster is None:
        observation.check(name, "InService", "is not there", False)
        observation.final, observation.next_step = (
            f"there is no cluster {name}",
            f"`podwright deploy {environment.name}` makes it",
        )
        return observation
    observation.check(name, "InService", cluster.status, cluster.status == "InService")
    # Nothing that could be waited for.
    if cluster.status in _GONE:
        observation.final = f"{_GONE[cluster.status]}: {cluster.message or 'HyperPod gives no reason'}"
    _groups(context, cluster, observation)
    existing = nodes_by_group(account, cluster)
    _nodes(existing, observation)
    observation.answers = {
        "cluster": {
            "ClusterArn": cluster.arn,
            "ClusterStatus": cluster.status,
            "FailureMessage": cluster.message or None,
        },
        "groups": [
            {
                "InstanceGroupName": group.name,
                "CurrentCount": group.current,
                "TargetCount": group.target,
                "Status": group.status or None,
                "TrainingPlanStatus": group.plan_status or None,
            }
            for group in cluster.groups
        ],
        "nodes": dict(Counter(f"{node.group} {node.status}" for node in existing)),
    }
    # Each look into a private API takes a run inside the VPC, so HyperPod's side comes first.
    if environment.cluster.orchestrator == "eks" and not observation.missing:
        _kubernetes(context, existing, observation)
    return observation


def _groups(context: Context, cluster: Cluster, observation: Observation) -> None:
    """Every group of the file; of those that Karpenter scales the target counts that it has set."""
    rows = {row.name: row for row in cluster.groups}
    karpenter = context.environment.cluster.karpenter
    moved = karpenter.groups if karpenter else ()
    for name, group in context.environment.groups.items():
        row = rows.get(name)
        if row is None:
            observation.check(f"group {name}", f"{group.count} of {group.count}", "is not in the cluster", False)
            continue
        # Where it began is what the file's count says.
        desired = row.target if name in moved else group.count
        message = f"{row.current} of {row.target}" + (f", the file says {group.count}" if row.target != desired else "")
        # A plan that has not begun has no instances to give, which is no failure of the group.
        if row.current < desired and row.plan and row.plan_status not in ("", "Active"):
            message += _plan(context, row.plan, observation)
        observation.check(f"group {name}", f"{desired} of {desired}", message, row.current == row.target == desired)


def _plan(context: Context, arn: str, observation: Observation) -> str:
    """What a group waits for whose training plan gives no nodes now."""
    resolved_plan = plan(context.account, arn.rpartition("/")[2])
    name, status, starts = resolved_plan.name, resolved_plan.status, resolved_plan.starts
    if starts is None:
        observation.final = f"training plan {name} is {status} and has no window to come"
        observation.next_step = "give the group another plan or capacity, or lower its count"
        return f", training plan {name} is {status}"
    # Waiting for longer than the gate may take would only end in a time-out.
    if starts > datetime.now(UTC) + timedelta(seconds=max(context.left, 0)):
        observation.final = f"training plan {name} begins at {starts.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
        observation.next_step = "run this gate again after that"
    return f", waits for training plan {name} from {starts.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _nodes(existing: Sequence[Node], observation: Observation) -> None:
    """The nodes that do not run."""
    for node in existing:
        if node.status != "Running":
            messages = f"{node.status}: {node.message}" if node.message else node.status
            observation.check(f"{node.id} of {node.group}", "Running", messages, False)


def _kubernetes(context: Context, existing: Sequence[Node], observation: Observation) -> None:
    """Every node is ready in Kubernetes, and HyperPod lets work onto it."""
    results = {item["metadata"]["name"]: item for item in context.kubectl.items("nodes")}
    well: Counter[str] = Counter()
    for node in existing:
        why = _why_not(results.get(node.kubernetes_name))
        well[node.group] += not why
        if why:
            observation.check(f"{node.id} of {node.group}", f"Ready and {HEALTHY} in Kubernetes", why, False)
    # Only whole groups are good news; nodes that are not are named one by one above.
    for group, count in sorted(Counter(node.group for node in existing).items()):
        if well[group] == count:
            observation.check(f"{group} in Kubernetes", f"{count} ready", f"{count} ready", True)
    observation.answers["kubernetes"] = {"ready": dict(sorted(well.items()))}


def _why_not(node: dict[str, Any] | None) -> str:
    """What keeps work from a node; empty where nothing does."""
    if node is None:
        return "is not in Kubernetes"
    conditions: Iterable[dict[str, Any]] = node.get("status", {}).get("conditions", ())
    ready = next((item for item in conditions if item["type"] == "Ready"), {"status": "Unknown"})
    if ready["status"] != "True":
        return f"Ready is {ready['status']}: {ready.get('message', 'kubelet says nothing')}"
    labels = node["metadata"].get("labels", {})
    # Without the label HyperPod has said nothing against the node.
    if labels.get(HEALTH_LABEL, HEALTHY) != HEALTHY:
        return f"{HEALTH_LABEL.rpartition('/')[2]} is {labels[HEALTH_LABEL]}"
    if labels.get(_DEEP_HEALTH) == "Failed":
        return "its deep health check failed"
    # A person has taken it out of use.
    if node.get("spec", {}).get("unschedulable"):
        return "is cordoned"
    return ""
