"""Reads from the API server's audit log which users wrote the objects that decide about jobs and pods."""

import json
from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Any, Final

_ACCOUNT: Final = "system:serviceaccount:"
KUBERNETES: Final = frozenset(
    f"{_ACCOUNT}kube-system:{name}"
    for name in ("daemon-set-controller", "replicaset-controller", "job-controller", "generic-garbage-collector")
)
"""Kubernetes' controllers that create pods and delete orphans."""
KUEUE: Final = f"{_ACCOUNT}kueue-system:kueue-controller-manager"
JOBS: Final = f"{_ACCOUNT}kube-system:job-controller"
STAND_IN: Final = f"{_ACCOUNT}aws-hyperpod:podwright-training-operator"
"""podwright's operator of HyperPodPyTorchJob. The log contains the bodies of its writes to Workloads."""
TRAINING_OPERATOR: Final = f"{_ACCOUNT}kubeflow:training-operator"
BINDER: Final = f"{_ACCOUNT}kai-scheduler:binder"
PODGROUPER: Final = f"{_ACCOUNT}kai-scheduler:pod-grouper"
PODGROUP_CONTROLLER: Final = f"{_ACCOUNT}kai-scheduler:podgroup-controller"
KAI_SCHEDULER: Final = f"{_ACCOUNT}kai-scheduler:scheduler"
SCHEDULER: Final = "system:kube-scheduler"


def writers(log: Path) -> dict[str, set[str]]:
    """Return the users that wrote each resource or subresource, such as `pods/binding`. Refused writes count."""
    users: dict[str, set[str]] = {}
    for event in _events(log):
        target = event["objectRef"]
        resource = "/".join(filter(None, (target["resource"], target.get("subresource"))))
        users.setdefault(resource, set()).add(event["user"]["username"])
    return users


def check_writers(log: Path, allowed: Mapping[str, Set[str]]) -> None:
    """Fail if another user than the allowed ones wrote a resource, or no user wrote one of them."""
    actual = writers(log)
    assert actual.keys() == allowed.keys()
    assert {
        resource: users - allowed[resource] for resource, users in actual.items() if users - allowed[resource]
    } == {}


def check_deciders(log: Path, kueue: Set[str]) -> None:
    """Fail unless only `kueue` changed the status of Workloads and only the default scheduler bound pods.

    Unlike check_writers, it ignores the users that create pods, which include the user of the story.
    """
    actual = writers(log)
    assert actual["workloads/status"] - kueue == set()
    assert KUEUE in actual["workloads/status"]
    assert actual.get("pods/binding", {SCHEDULER}) == {SCHEDULER}
    assert actual.keys() & {"bindings", "podgroups", "podgroups/status", "bindrequests"} == set()


def bodies(log: Path, user: str, resource: str) -> list[dict[str, Any]]:
    """Return the bodies of a user's accepted writes to a resource."""
    return [
        event["requestObject"]
        for event in _events(log)
        if event["user"]["username"] == user
        and event["objectRef"]["resource"] == resource
        and event["responseStatus"]["code"] == 200
        and "requestObject" in event
    ]


def _events(log: Path) -> Iterator[dict[str, Any]]:
    # The API server renames a full log and starts another.
    for file in log.parent.glob(f"{log.stem}*{log.suffix}"):
        yield from map(json.loads, file.read_text(encoding="utf-8").splitlines())
