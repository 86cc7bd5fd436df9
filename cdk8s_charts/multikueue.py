"""MultiKueue's objects: what a manager needs to hand work to workers, and what lets it into a worker."""

from typing import Any, Final

from ..config.settings.governance.kueue import KUEUE_API, MultiKueue

MULTIKUEUE_CHECK: Final = "multikueue"
"""The admission check of a manager's queues, and its configuration."""
MULTIKUEUE_ACCOUNT: Final = "podwright-multikueue"
"""The service account in kueue-system of a worker with which its manager comes, and the Secret that holds its token."""

MULTIKUEUE_NAMESPACE: Final = "kueue-system"
"""Where that account lies, and the Secrets of a manager."""

_RBAC: Final = "rbac.authorization.k8s.io"
_WRITE: Final = ["create", "delete", "get", "list", "watch"]
# API group and resources by kind. Source: Kueue documentation, "Setup a MultiKueue environment", 2026-11.
_RESOURCES: Final = {
    "job": ("batch", ["jobs"]),
    "ray": ("ray.io", ["rayjobs", "rayclusters"]),
    "train": ("trainer.kubeflow.org", ["trainjobs"]),
}


def manager_objects(settings: MultiKueue) -> list[dict[str, Any]]:
    """The admission check that hands work on, and the workers in the order of the file.

    Every worker is asked at once, and the first that admits the work keeps it. How to get into each lies in a Secret
    that no deployment makes, because no stack may know the token of another cluster.
    """
    clusters = [
        _object(
            "MultiKueueCluster",
            name,
            {"clusterSource": {"kubeConfig": {"locationType": "Secret", "location": worker.secret}}},
        )
        for name, worker in settings.workers.items()
    ]
    parameters = {"apiGroup": KUEUE_API.partition("/")[0], "kind": "MultiKueueConfig", "name": MULTIKUEUE_CHECK}
    check = {"controllerName": "kueue.x-k8s.io/multikueue", "parameters": parameters}
    return [
        *clusters,
        _object("MultiKueueConfig", MULTIKUEUE_CHECK, {"clusters": list(settings.workers)}),
        _object("AdmissionCheck", MULTIKUEUE_CHECK, check),
    ]


def worker_objects(settings: MultiKueue) -> list[dict[str, Any]]:
    """The account of a worker's manager: it may hand in and take back work of the listed kinds, and nothing else."""
    rules = [
        _rule("kueue.x-k8s.io", ["workloads"], _WRITE),
        _rule("kueue.x-k8s.io", ["workloads/status"], ["get", "patch", "update"]),
    ]
    for kind in settings.jobs:
        group, resources = _RESOURCES[kind]
        rules.append(_rule(group, resources, _WRITE))
        rules.append(_rule(group, [f"{resource}/status" for resource in resources], ["get"]))
    placement = {"name": MULTIKUEUE_ACCOUNT, "namespace": MULTIKUEUE_NAMESPACE}
    role = {"name": MULTIKUEUE_ACCOUNT}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": placement},
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "kubernetes.io/service-account-token",
            "metadata": {**placement, "annotations": {"kubernetes.io/service-account.name": MULTIKUEUE_ACCOUNT}},
        },
        {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": role, "rules": rules},
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": role,
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": MULTIKUEUE_ACCOUNT},
            "subjects": [{"kind": "ServiceAccount", **placement}],
        },
    ]


def _object(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": KUEUE_API, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _rule(group: str, resources: list[str], verbs: list[str]) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": resources, "verbs": verbs}
