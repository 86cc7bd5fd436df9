"""The task-governance add-on in Kubernetes: its controller, and the objects of quotas and policies.

`planning.quota.task_governance_objects` has the objects and their sources. Each has a note that it is simulated.
"""

from typing import Final

from ...config.settings.governance.kueue import FRAMEWORKS, KUEUE_API
from ...config.settings.governance.task_governance import CONTROLLER, NAMESPACE
from ...planning.helm.kueue_values import DEVICE_CLAIMS, EXTERNAL_FRAMEWORK
from ...planning.quota.amounts import EFA
from ...planning.quota.task_governance_objects import AS_READ, fair_sharing, priority_objects, quota_objects
from ...planning.quota.team_names import cluster_queue, local_queue, priority_class, team_namespace
from ..kubernetes.cluster_objects import ClusterObjects, ensure_namespace
from ..protocol.json_objects import JsonObject

_MARK: Final = {"annotations": {"podwright/simulated": AS_READ}}


def install(objects: ClusterObjects) -> None:
    """Objects of the add-on besides its kinds: a controller that is ready."""
    ensure_namespace(objects, NAMESPACE)
    labels = {"control-plane": "controller-manager"}
    objects.apply(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": CONTROLLER, "namespace": NAMESPACE, "generation": 1, **_MARK},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "manager", "image": "kueue"}]},
                },
            },
            "status": {"observedGeneration": 1, "replicas": 1, "readyReplicas": 1, "updatedReplicas": 1},
        }
    )


def settings(policy: JsonObject) -> JsonObject:
    """Return the changes of Kueue's configuration for a cluster's scheduler configuration.

    Quotas count the resources that a compute quota can name, but no EFA devices or claims of devices. Teams share by
    their weights, unless the policy gives idle devices to the first request.
    """
    return {
        "featureGates": DEVICE_CLAIMS,
        "integrations": {"frameworks": list(FRAMEWORKS), "externalFrameworks": [EXTERNAL_FRAMEWORK]},
        "resources": {"excludeResourcePrefixes": ["ephemeral-storage", "hugepages-", EFA]},
        "fairSharing": fair_sharing(policy),
    }


def uninstall(objects: ClusterObjects) -> None:
    """Delete the controller. Kinds, objects and namespace remain: no source says that the add-on deletes them."""
    objects.remove(
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": CONTROLLER, "namespace": NAMESPACE}}
    )


def installed(objects: ClusterObjects) -> bool:
    """True if the add-on accepts quotas."""
    return objects.find("apps/v1", "Deployment", CONTROLLER, NAMESPACE) is not None


def apply_policy(objects: ClusterObjects, before: JsonObject, after: JsonObject) -> None:
    """Apply the priority classes of a scheduler configuration, and delete removed ones."""
    classes = {item["Name"] for item in after.get("PriorityClasses", [])}
    for item in before.get("PriorityClasses", []):
        if item["Name"] not in classes:
            _remove(objects, "WorkloadPriorityClass", priority_class(item["Name"]))
    for item in priority_objects(after):
        objects.apply(item)


def apply_quota(objects: ClusterObjects, quota: JsonObject) -> None:
    """Apply a team's namespace, its ClusterQueue and LocalQueue, and their flavors."""
    ensure_namespace(objects, team_namespace("hyperpod", quota["ComputeQuotaTarget"]["TeamName"]), **_MARK)
    for item in quota_objects(quota):
        objects.apply(item)


def remove_quota(objects: ClusterObjects, quota: JsonObject) -> None:
    """Delete a team's queues. Its namespace remains: no source says that the service deletes it."""
    team = quota["ComputeQuotaTarget"]["TeamName"]
    _remove(objects, "LocalQueue", local_queue("hyperpod", team), team_namespace("hyperpod", team))
    _remove(objects, "ClusterQueue", cluster_queue("hyperpod", team))


def _remove(objects: ClusterObjects, kind: str, name: str, namespace: str = "default") -> None:
    objects.remove({"apiVersion": KUEUE_API, "kind": kind, "metadata": {"name": name}}, namespace)
