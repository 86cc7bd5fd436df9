"""Nodes that break in the sandbox: label and taint, reboot or a new instance, and what is told of it."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from moto import mock_aws
from moto.logs.models import logs_backends

from podwright.config.catalog.sandbox_account import SANDBOX_ACCOUNT
from podwright.sandbox.hyperpod import repair as hyperpod_repair
from podwright.sandbox.hyperpod.answers import kubernetes_node
from podwright.sandbox.hyperpod.cluster import Cluster, Group, Node, Timing
from podwright.sandbox.hyperpod.events import cluster_events
from podwright.sandbox.hyperpod.in_progress import FaultKind, Repair
from podwright.sandbox.hyperpod.logs import group_of
from podwright.sandbox.hyperpod.repair import FAULT_KINDS, drilled, proceed

HEALTH = "sagemaker.amazonaws.com/node-health-status"
EKS = {"Eks": {"ClusterArn": "arn:aws:eks:us-west-2:123456789012:cluster/e"}}


class Free:
    full = False

    def obstacle(self, cluster: Cluster, group: Group) -> str | None:
        return "full" if self.full else None

    def waits(self, cluster: Cluster, group: Group) -> str | None:
        return None

    def places(self, cluster: Cluster, group: Group) -> list[dict[str, Any]] | None:
        return None

    def surplus(self, cluster: Cluster, group: Group) -> int:
        return 0


class OneNodeCluster:
    """A cluster of one node that runs, with a clock of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **request: Any) -> None:
        self.moment = datetime(2026, 11, 22, tzinfo=UTC)
        for module in ("cluster", "repair", "in_progress"):
            monkeypatch.setattr(f"podwright.sandbox.hyperpod.{module}.now", lambda: self.moment)
        arn = "arn:aws:sagemaker:us-west-2:123456789012:cluster/0123456789ab"
        request = {"NodeProvisioningMode": "Continuous", "Orchestrator": EKS, **request}
        self.cluster = Cluster("c", arn, "us-west-2", {"VpcConfig": {"Subnets": ["s"]}, **request}, Timing())
        group = {"InstanceGroupName": "g", "InstanceCount": 1, "InstanceType": "ml.p5.48xlarge"}
        self.cluster.groups["g"] = Group(group)
        self.provisioning = Free()
        self.cluster.created = self.cluster.busy_until = self.moment
        [self.node] = self._launched()
        self.node.launched = self.moment
        self.go_on(10)
        cluster_events(self.cluster, self.moment)

    def _launched(self) -> list[Node]:
        self.cluster.launch(self.cluster.groups["g"], 1, self.provisioning)
        return self.cluster.nodes

    def go_on(self, seconds: float) -> None:
        """Let time pass, in small steps."""
        until = self.moment + timedelta(seconds=seconds)
        while self.moment < until:
            self.moment += timedelta(seconds=0.1)
            proceed(self.cluster, self.provisioning, self.moment)
            for node in self.cluster.nodes:
                node.launched = min(node.launched, self.moment)

    def breaks(self, kind: str) -> None:
        fault = FAULT_KINDS[kind]
        self.cluster.repairs.append(Repair(self.node.instance_id, fault.action, fault, self.moment))

    def shown(self, node: Node) -> dict[str, Any]:
        return kubernetes_node(self.cluster, node, self.moment)

    def log(self) -> str:
        streams = logs_backends[SANDBOX_ACCOUNT]["us-west-2"].groups[group_of(self.cluster)].streams
        return "\n".join(event.message for stream in streams.values() for event in stream.events)


@pytest.fixture
def logs() -> Iterator[None]:
    with mock_aws():
        yield


@pytest.mark.usefixtures("logs")
def test_a_node_that_needs_a_reboot_keeps_its_instance(monkeypatch: pytest.MonkeyPatch) -> None:
    location = OneNodeCluster(monkeypatch)
    boot = location.shown(location.node)["status"]["nodeInfo"]["bootID"]
    location.breaks("xid-reboot")
    location.go_on(0.3)
    assert location.node.health == "Schedulable"
    location.go_on(0.4)
    shown = location.shown(location.node)
    assert shown["metadata"]["labels"][HEALTH] == "UnschedulablePendingReboot"
    assert shown["metadata"]["labels"]["sagemaker.amazonaws.com/fault-types"] == "NvidiaErrorReboot"
    assert [taint["key"] for taint in shown["spec"]["taints"]] == [HEALTH]
    assert '"HealthMonitoringAgentDetectionEvent": "HealthEvent"' in location.log()
    location.go_on(1.2)
    assert location.node.status(location.moment) == "Pending"
    assert location.shown(location.node)["status"]["conditions"][0]["status"] == "Unknown"
    location.go_on(2.5)
    shown = location.shown(location.node)
    assert shown["metadata"]["labels"][HEALTH] == "Schedulable"
    assert (shown["spec"]["taints"], shown["status"]["nodeInfo"]["bootID"] != boot) == ([], True)
    assert len(location.cluster.nodes) == 1
    health = [item for kind, item in cluster_events(location.cluster, location.moment) if "Health" in kind]
    assert [item["HealthSummary"]["HealthStatus"] for item in health] == ["Unhealthy", "Healthy"]
    assert health[0]["HealthSummary"]["RepairAction"] == "Reboot"


@pytest.mark.usefixtures("logs")
def test_a_node_that_is_replaced_hands_on_its_logical_id(monkeypatch: pytest.MonkeyPatch) -> None:
    location = OneNodeCluster(monkeypatch)
    location.breaks("gpu-lost")
    location.go_on(2)
    old, new = location.cluster.nodes
    assert old.deleted
    assert new.instance_id != old.instance_id
    assert new.logical_id == old.logical_id
    messages = [
        item["EventDetails"]
        for kind, item in cluster_events(location.cluster, location.moment)
        if "Cluster Event" in kind
    ]
    replaced = [item for item in messages if "as part of instance replacement" in item["Description"]]
    assert [item["InstanceId"] for item in replaced] == [new.instance_id]
    # EventBridge has no failure messages, nor anything else of the metadata.
    assert replaced[0]["EventDetails"] == {"EventMetadata": {"Instance": None}}


@pytest.mark.usefixtures("logs")
def test_a_replacement_waits_for_capacity(monkeypatch: pytest.MonkeyPatch) -> None:
    location = OneNodeCluster(monkeypatch)
    location.provisioning.full = True
    location.breaks("xid-replace")
    location.go_on(5)
    assert (location.node.health, location.node.deleted) == ("UnschedulablePendingReplacement", None)
    location.provisioning.full = False
    location.go_on(0.2)
    assert location.node.deleted


@pytest.mark.usefixtures("logs")
@pytest.mark.parametrize(("kind", "request_", "health"), [
    ("xid-replace", {"NodeRecovery": "None"}, "UnschedulablePendingReplacement"),
    ("xid-application", {}, "Schedulable"),
])  # fmt: skip
def test_what_hyperpod_leaves_alone(
    monkeypatch: pytest.MonkeyPatch, kind: str, request_: dict[str, Any], health: str
) -> None:
    location = OneNodeCluster(monkeypatch, **request_)
    location.breaks(kind)
    location.go_on(5)
    assert (location.node.health, len(location.cluster.nodes), location.cluster.repairs) == (health, 1, [])
    assert FAULT_KINDS[kind].reason in location.log()


@pytest.mark.usefixtures("logs")
def test_a_label_that_somebody_sets_is_acted_on(monkeypatch: pytest.MonkeyPatch) -> None:
    location = OneNodeCluster(monkeypatch)
    location.cluster.repairs.append(Repair(location.node.instance_id, "replace", None, location.moment))
    location.go_on(2)
    assert location.node.deleted
    assert group_of(location.cluster) not in logs_backends[SANDBOX_ACCOUNT]["us-west-2"].groups


@pytest.mark.parametrize(("text", "kind"), [
    ("73, pid='<unknown>'", "xid-reboot"), ("74, pid='<unknown>'", "xid-replace"), ("31, pid=1", "xid-application"),
])  # fmt: skip
def test_a_drills_pod_is_what_it_writes(text: str, kind: str) -> None:
    container = {"name": "fault", "env": [{"name": "NODE", "value": "n"}, {"name": "XID", "value": text}]}
    fault_kind: FaultKind = drilled({"spec": {"containers": [container]}})
    assert (fault_kind.action, fault_kind.condition) == (FAULT_KINDS[kind].action, FAULT_KINDS[kind].condition)
    assert text in fault_kind.message


def test_first_news_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    location = OneNodeCluster(monkeypatch)
    assert cluster_events(location.cluster, location.moment) == []
    location.cluster.busy, location.cluster.busy_until = "Updating", location.moment + timedelta(seconds=9)
    [(kind, detail)] = cluster_events(location.cluster, location.moment)
    assert (kind, detail["ClusterStatus"]) == ("SageMaker HyperPod Cluster State Change", "Updating")
    assert hyperpod_repair.PENDING["none"] == "Unschedulable"
