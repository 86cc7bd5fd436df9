"""Who wrote what decides over jobs and pods, by the API server's audit log."""

import json
from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Any, Final

_ACCOUNT: Final = "system:serviceaccount:"
KUBERNETES: Final = frozenset(
    f"{_ACCOUNT}kube-system:{name}"
    for name in ("daemon-set-controller", "replicaset-controller", "job-controller", "generic-garbage-collector")
)
"""Kubernetes' own controllers that make pods, and clean up."""
KUEUE: Final = f"{_ACCOUNT}kueue-system:kueue-controller-manager"
JOBS: Final = f"{_ACCOUNT}kube-system:job-controller"
STAND_IN: Final = f"{_ACCOUNT}aws-hyperpod:podwright-training-operator"
"""podwright's own operator of HyperPodPyTorchJob; the log has the content of what it writes of Workloads."""
TRAINING_OPERATOR: Final = f"{_ACCOUNT}kubeflow:training-operator"
BINDER: Final = f"{_ACCOUNT}kai-scheduler:binder"
PODGROUPER: Final = f"{_ACCOUNT}kai-scheduler:pod-grouper"
PODGROUP_CONTROLLER: Final = f"{_ACCOUNT}kai-scheduler:podgroup-controller"
KAI_SCHEDULER: Final = f"{_ACCOUNT}kai-scheduler:scheduler"
SCHEDULER: Final = "system:kube-scheduler"


def writers(log: Path) -> dict[str, set[str]]:
    """The users that wrote each resource and subresource, such as `pods/binding`; refused writes count, too."""
    users: dict[str, set[str]] = {}
    for event in _events(log):
        target = event["objectRef"]
        resource = "/".join(filter(None, (target["resource"], target.get("subresource"))))
        users.setdefault(resource, set()).add(event["user"]["username"])
    return users


def check_writers(log: Path, allowed: Mapping[str, Set[str]]) -> None:
    """Fail where others wrote than are allowed to, by resource, or where something was written by nobody."""
    actual = writers(log)
    assert actual.keys() == allowed.keys()
    assert {
        resource: users - allowed[resource] for resource, users in actual.items() if users - allowed[resource]
    } == {}


def check_deciders(log: Path, kueue: Set[str]) -> None:
    """Fail where others than Kueue's deciders admitted or evicted, than the scheduler bound, or where nobody did.

    Unlike check_writers, it leaves alone who makes pods: a user of the story does, too.
    """
    actual = writers(log)
    assert actual["workloads/status"] - kueue == set()
    assert KUEUE in actual["workloads/status"]
    assert actual.get("pods/binding", {SCHEDULER}) == {SCHEDULER}
    assert actual.keys() & {"bindings", "podgroups", "podgroups/status", "bindrequests"} == set()


def bodies(log: Path, user: str, resource: str) -> list[dict[str, Any]]:
    """What a user wrote of the status of a resource, where the API server took it."""
    return [
        event["requestObject"]
        for event in _events(log)
        if event["user"]["username"] == user
        and event["objectRef"]["resource"] == resource
        and event["responseStatus"]["code"] == 200
        and "requestObject" in event
    ]


def _events(log: Path) -> Iterator[dict[str, Any]]:
    # A full log lies beside the one that is written.
    for file in log.parent.glob(f"{log.stem}*{log.suffix}"):
        yield from map(json.loads, file.read_text(encoding="utf-8").splitlines())
