"""Drills and repairs against the sandbox, with the real kubectl: what breaks is marked, fixed and seen live."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from governed_cluster import GovernedCluster, until
from podwright.config.catalog.drills import drill_kinds
from podwright.config.settings.environment import Environment
from podwright.operations.aws.account import Account
from podwright.operations.aws.clusters import Node, nodes
from podwright.operations.aws.sandbox_server import Running
from podwright.operations.drills.inject import fault_pod, inject
from podwright.operations.kubernetes.connect import write_kubeconfig
from podwright.operations.kubernetes.kubectl import Kubectl
from podwright.operations.live import reader
from podwright.operations.nodes import follow, health_check
from podwright.operations.nodes.follow import Events
from podwright.operations.nodes.snapshot import Observer
from podwright.operations.nodes.timeline import Timeline

Aws = Callable[[str], Any]
NAME = "drilled"
ENVIRONMENT = Environment.model_validate(
    {
        "name": NAME,
        "account": "123456789012",
        "region": "us-west-2",
        "network": {"zones": ["usw2-az1", "usw2-az2"]},
        "cluster": {"name": NAME},
        "instance_groups": {"h200": {"instance_type": "ml.p5en.48xlarge", "count": 2, "zone": "usw2-az1"}},
        "observability": {"drills": True},
    }
)


@pytest.fixture(scope="module")
def account(sandbox: Running) -> Account:
    variables = sandbox.environment("us-west-2")
    return Account("123456789012", "us-west-2", sandbox.endpoint, variables)


@pytest.fixture(scope="module")
def kubectl(aws: Aws, account: Account, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    cluster = GovernedCluster(aws, NAME)
    description = aws("eks").describe_cluster(name=NAME)["cluster"]
    folder = tmp_path_factory.mktemp("drills")
    file = write_kubeconfig(folder, ENVIRONMENT, account, description, description["endpoint"])
    kubectl = Kubectl(file, is_real=False)
    until(lambda: len(kubectl.items("nodes")) == 2)
    yield kubectl
    aws("sagemaker").delete_cluster(ClusterName=cluster.name)


def one(aws: Aws) -> Node:
    return min(until(lambda: running(aws)), key=lambda member: member.id)


def running(aws: Aws) -> list[Node]:
    existing = nodes(SimpleNamespace(client=aws), NAME)
    return existing if [member.status for member in existing] == ["Running"] * 2 else []


def drill(aws: Aws, kubectl: Kubectl, name: str) -> tuple[Timeline, list[str]]:
    kind, node, lines = drill_kinds()[name], one(aws), list[str]()
    observer = Observer(SimpleNamespace(client=aws), NAME, node, kubectl)
    before = observer.observe()
    started = inject(kind, node, before, kubectl, "registry/python:3")
    timeline = Timeline(before, node.id, kind.action, started)
    follow.follow(
        [(observer, timeline)], Events(SimpleNamespace(client=aws), NAME, started), 30, lines.append, poll=0.3
    )
    return timeline, lines


@pytest.mark.parametrize("name", ["xid-reboot", "xid-replace", "label-reboot", "label-replace"])
def test_a_fault_is_marked_and_fixed(aws: Aws, kubectl: Kubectl, name: str) -> None:
    timeline, lines = drill(aws, kubectl, name)
    assert timeline.done, lines
    # With shortened time a look can come too late for the label and the taint (see test_sandbox_repair.py).
    assert {"away", "back"} <= timeline.marks.keys()
    assert timeline.action == drill_kinds()[name].action == name.partition("-")[2]
    assert bool(timeline.replacement) == (timeline.action == "replace")
    pod = fault_pod(drill_kinds()["xid-replace"], "hyperpod-x", "")["metadata"]
    left = kubectl.items("pods", f"--namespace={pod['namespace']}")
    assert [item["metadata"]["name"] for item in left] == [], "the drill takes its pod away"


def test_the_live_view_names_a_node_that_is_not_well(
    aws: Aws, account: Account, kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(reader, "way", lambda *_: kubectl)
    node, label = one(aws), "sagemaker.amazonaws.com/node-health-status"
    eye = reader.Live(ENVIRONMENT, account, tmp_path)
    kubectl.run("label", "node", node.kubernetes_name, f"{label}=Unschedulable", "--overwrite")
    actual = until(lambda: (observed := eye.read())["unhealthy"] and observed)
    kubectl.run("label", "node", node.kubernetes_name, f"{label}=Schedulable", "--overwrite")
    assert actual["unseen"] == {"events": "HyperPod keeps events of clusters with continuous provisioning only"}
    assert [(row["id"], row["health"]) for row in actual["unhealthy"]] == [(node.id, "Unschedulable")]
    assert actual["cluster"]["status"] == "InService"
    assert actual["cost"]["calls"] >= 2


def test_a_health_check_takes_nodes_and_gives_them_back(
    aws: Aws, kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = one(aws)
    client = aws("sagemaker")
    client.start_cluster_health_check(
        ClusterName=NAME,
        DeepHealthCheckConfigurations=[
            {"InstanceGroupName": "h200", "InstanceIds": [node.id], "DeepHealthChecks": [health_check.CHECKS["stress"]]}
        ],
    )
    monkeypatch.setattr(health_check, "_POLL_SECONDS", 0.05)
    observed = health_check._follow(cast(Account, SimpleNamespace(client=aws)), NAME, [node], time.time(), 20)
    assert observed["status"] == {node.id: "passed"}
    assert observed["passed"]
