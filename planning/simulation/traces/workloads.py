"""Jobs of a trace as Kueue's Workloads, such as the operators of jobs would make them."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from ....config.settings.governance.kueue import KUEUE_API
from ....config.settings.governance.teams import Engine
from ...jobs.plan import GROUP_LABEL, TYPE_LABEL
from ...jobs.queue import REPLACEMENT
from ...quota.amounts import quantity
from ...quota.team_names import local_queue, priority_class, team_namespace
from .requested_work import RequestedJob, Shape


def workload(
    item: RequestedJob, engine: Engine, known: Mapping[str, Shape], priorities: Mapping[str, int]
) -> dict[str, Any]:
    """The Workload of a job: one set of equal pods in the queue of its team, which tolerate every taint.

    Args:
        item: The job and what its pods ask for.
        engine: hyperpod or kueue.
        known: What pods can have, by flavor.
        priorities: Values by priority of the environment.
    """
    job = item.job
    requests = {name: quantity(name, amount) for name, amount in item.requests.items()}
    # A job that names nothing is of the fewest assumptions: it tolerates what its group may be tainted with.
    pod: dict[str, Any] = {
        "containers": [{"name": "main", "resources": {"requests": requests}}],
        "tolerations": [{"operator": "Exists"}],
    }
    if item.flavor:
        shape = known[item.flavor]
        is_type = engine == "hyperpod" or job.group not in shape.groups
        pod["nodeSelector"] = {TYPE_LABEL: shape.types[0]} if is_type else {GROUP_LABEL: shape.groups[0]}
    pods: dict[str, Any] = {"name": "main", "count": job.pods, "template": {"spec": pod}}
    if job.least_pods is not None:
        pods["minCount"] = job.least_pods
    if job.topology:
        pods["topologyRequest"] = {"required": job.topology}
    spec: dict[str, Any] = {"queueName": local_queue(engine, job.team), "podSets": [pods]}
    if job.priority:
        reference = {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": priority_class(job.priority)}
        spec |= {"priority": priorities[job.priority], "priorityClassRef": reference}
    created = datetime.fromtimestamp(job.submitted, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    namespace = team_namespace(engine, job.team)
    slices = {"annotations": {REPLACEMENT: f"{namespace}/{job.replaces}"}} if job.replaces else {}
    # Names of a trace may repeat, and uids decide between equals.
    metadata = {"name": job.name, "namespace": namespace, "uid": f"{job.line:09}", "creationTimestamp": created}
    return {"apiVersion": KUEUE_API, "kind": "Workload", "metadata": metadata | slices, "spec": spec}
