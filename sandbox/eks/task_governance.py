"""The task-governance add-on in Kubernetes: its controller, and what quotas and policies become.

The objects and their sources are those of `planning.quota.task_governance_objects`; each says that it is simulated.
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
    """What the add-on itself brings beside its kinds: a controller that is ready."""
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
    """Of Kueue's configuration, as podwright reads it, what a cluster's scheduler configuration makes of it.

    Quotas count what a compute quota can name, and no EFA devices or claims of devices. Teams have equal shares by
    their weights, unless the policy says that idle devices are for who comes first.
    """
    return {
        "featureGates": DEVICE_CLAIMS,
        "integrations": {"frameworks": list(FRAMEWORKS), "externalFrameworks": [EXTERNAL_FRAMEWORK]},
        "resources": {"excludeResourcePrefixes": ["ephemeral-storage", "hugepages-", EFA]},
        "fairSharing": fair_sharing(policy),
    }


def uninstall(objects: ClusterObjects) -> None:
    """Take the controller away. Kinds, objects and namespace stay: nothing says that they go with the add-on."""
    objects.remove(
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": CONTROLLER, "namespace": NAMESPACE}}
    )


def installed(objects: ClusterObjects) -> bool:
    """Whether the add-on takes quotas."""
    return objects.find("apps/v1", "Deployment", CONTROLLER, NAMESPACE) is not None


def apply_policy(objects: ClusterObjects, before: JsonObject, after: JsonObject) -> None:
    """The priority classes of a scheduler configuration; those that it no longer has go."""
    classes = {item["Name"] for item in after.get("PriorityClasses", [])}
    for item in before.get("PriorityClasses", []):
        if item["Name"] not in classes:
            _remove(objects, "WorkloadPriorityClass", priority_class(item["Name"]))
    for item in priority_objects(after):
        objects.apply(item)


def apply_quota(objects: ClusterObjects, quota: JsonObject) -> None:
    """A team's namespace, its queue in the cluster and in the namespace, and the flavors that it needs."""
    ensure_namespace(objects, team_namespace("hyperpod", quota["ComputeQuotaTarget"]["TeamName"]), **_MARK)
    for item in quota_objects(quota):
        objects.apply(item)


def remove_quota(objects: ClusterObjects, quota: JsonObject) -> None:
    """Take a team's queues away. Its namespace stays with what is in it: nothing says that the service deletes it."""
    team = quota["ComputeQuotaTarget"]["TeamName"]
    _remove(objects, "LocalQueue", local_queue("hyperpod", team), team_namespace("hyperpod", team))
    _remove(objects, "ClusterQueue", cluster_queue("hyperpod", team))


def _remove(objects: ClusterObjects, kind: str, name: str, namespace: str = "default") -> None:
    objects.remove({"apiVersion": KUEUE_API, "kind": kind, "metadata": {"name": name}}, namespace)
