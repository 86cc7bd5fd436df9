"""The Workload that a job of an environment file would be, once it is submitted."""

from datetime import UTC, datetime
from typing import Any, Final

from ...config.settings.governance.kueue import KUEUE_API
from ..jobs.plan import JobPlan
from ..jobs.queue import PRIORITY_LABEL, QUEUE_LABEL
from ..quota.amounts import Quantities, quantity

ONE_SET: Final = "all pods of the job are one set of equal ones, those of a launcher or a head among them"
"""The assumption behind its one pod set."""


def planned_workload(plan: JobPlan, priority: int, submitted: float) -> dict[str, Any]:
    """The Workload of a job that is submitted at a time.

    Args:
        plan: The job, which is of a team.
        priority: The value of its priority; 0 without one.
        submitted: Seconds since 1970.
    """
    pods = _pod_set(plan, "main", plan.gang, plan.pod.resources)
    if near := plan.pod.placement:
        pods["topologyRequest"] = {"required" if near.required else "preferred": near.label}
    labels = plan.placement.labels
    head = [_pod_set(plan, "head", 1, plan.head)] if plan.head else []
    spec: dict[str, Any] = {"queueName": labels[QUEUE_LABEL], "podSets": [*head, pods], "priority": priority}
    if PRIORITY_LABEL in labels:
        kind = {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass"}
        spec["priorityClassRef"] = kind | {"name": labels[PRIORITY_LABEL]}
    created = datetime.fromtimestamp(submitted, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    namespace = plan.placement.namespace
    return {
        "apiVersion": KUEUE_API,
        "kind": "Workload",
        # After every uid that Kubernetes gives: of equals the job that is only planned comes last.
        "metadata": {"name": plan.name, "namespace": namespace, "uid": "~planned", "creationTimestamp": created},
        "spec": spec,
    }


def _pod_set(plan: JobPlan, name: str, count: int, resources: Quantities) -> dict[str, Any]:
    requests = {resource: quantity(resource, amount) for resource, amount in resources.items()}
    return {
        "name": name,
        "count": count,
        "template": {
            "spec": {
                "containers": [{"name": "main", "resources": {"requests": requests}}],
                "nodeSelector": dict(plan.pod.node_selector),
                "tolerations": [dict(each) for each in plan.pod.tolerations],
            }
        },
    }
