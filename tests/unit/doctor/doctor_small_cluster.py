"""Small clusters as bundles: a healthy one, and what tests change of it."""

import json
from typing import Any

from podwright.operations.doctor.bundle import Bundle
from podwright.operations.doctor.diagnose import Diagnosis, diagnose

NOW = "2026-11-21T10:00:00Z"
LONG_AGO = "2026-11-01T08:00:00Z"


def bundle_of(**files: Any) -> Bundle:
    """A cluster with two full groups of running nodes; `files` are its other sources, by name, or replace these."""
    index = {
        "taken": NOW,
        "cluster": "prod",
        "environment": "prod",
        "orchestrator": "eks",
        "account": "111122223333",
        "region": "us-west-2",
    } | files.pop("index", {})
    answers: dict[str, Any] = {"cluster": cluster(), "nodes": {"ClusterNodeSummaries": nodes()}} | files
    from podwright.operations.doctor.bundle import SOURCES

    texts = {"bundle.json": json.dumps(index)}
    for name, value in answers.items():
        if name in SOURCES:
            texts[SOURCES[name].file] = json.dumps(value)
        else:
            texts[name] = value
    return Bundle.of(texts)


def cluster(current: int = 4, target: int = 4, **changes: Any) -> dict[str, Any]:
    """DescribeCluster: a group of system nodes, and `current` of `target` nodes with H200."""
    group = {
        "InstanceGroupName": "h200",
        "InstanceType": "ml.p5en.48xlarge",
        "CurrentCount": current,
        "TargetCount": target,
        "Status": "InService",
        "OverrideVpcConfig": {"Subnets": ["subnet-b"], "SecurityGroupIds": ["sg-a"]},
    }
    system = {
        "InstanceGroupName": "system",
        "InstanceType": "ml.m5.4xlarge",
        "CurrentCount": 2,
        "TargetCount": 2,
        "Status": "InService",
    }
    return {
        "ClusterName": "prod",
        "ClusterStatus": "InService",
        "ClusterArn": "arn:aws:sagemaker:us-west-2:111122223333:cluster/abcdefghijkl",
        "CreationTime": LONG_AGO,
        "NodeRecovery": "Automatic",
        "InstanceGroups": [system, group | changes.pop("group", {})],
        "VpcConfig": {"Subnets": ["subnet-a"], "SecurityGroupIds": ["sg-a"]},
    } | changes


def nodes(*changed: dict[str, Any]) -> list[dict[str, Any]]:
    """Running nodes i-s0, i-s1 and i-h0 to i-h3; `changed` ones by their id."""
    actual = {
        id: {
            "InstanceId": id,
            "InstanceGroupName": "system" if id.startswith("i-s") else "h200",
            "InstanceType": "ml.m5.4xlarge" if id.startswith("i-s") else "ml.p5en.48xlarge",
            "InstanceStatus": {"Status": "Running"},
            "LaunchTime": LONG_AGO,
        }
        for id in ("i-s0", "i-s1", "i-h0", "i-h1", "i-h2", "i-h3")
    }
    for change in changed:
        actual[change["InstanceId"]] = actual.get(change["InstanceId"], {}) | change
    return list(actual.values())


def event(text: str, failure: str = "", *, time: str = "2026-11-21T09:30:00Z", **more: Any) -> dict[str, Any]:
    """Sources `events` and `event_details` with one event about the group h200."""
    item = {
        "EventId": "83ea0bb5-be77-45e8-a458-0a87f778a205",
        "ResourceType": "InstanceGroup",
        "InstanceGroupName": "h200",
        "EventTime": time,
        "EventLevel": "Error",
        "Description": text,
    } | more
    details = {**item, "EventDetails": {"EventMetadata": {"Instance": {"FailureMessage": failure}}}}
    return {"events": {"Events": [item]}, "event_details": {item["EventId"]: details} if failure else {}}


def log(*lines: str, time: str = "2026-11-21T09:30:00Z") -> str:
    """A log stream."""
    return "".join(f"{time} {line}\n" for line in lines)


def pod(name: str, phase: str, **more: Any) -> dict[str, Any]:
    """A pod of two hours, with `spec`, `status` and `labels`."""
    return {
        "metadata": {
            "name": name,
            "namespace": "hyperpod-ns-research",
            "creationTimestamp": more.pop("created", "2026-11-21T08:00:00Z"),
            "labels": more.pop("labels", {}),
        },
        "spec": more.pop("spec", {"nodeName": "hyperpod-i-h0"} if phase != "Pending" else {}),
        "status": {"phase": phase} | more.pop("status", {}),
    }


def found(**files: Any) -> Diagnosis:
    """What doctor says of such a cluster."""
    return diagnose(bundle_of(**files))


def causes(diagnosis: Diagnosis) -> list[str]:
    """The ids of its causes."""
    return [finding.cause.id for finding in diagnosis.findings]
