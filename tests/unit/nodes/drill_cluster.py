"""A cluster that heals: HyperPod, Kubernetes and time, as far as drills look at them."""

from dataclasses import dataclass, field
from typing import Any, cast

from podwright.config.catalog.drills import GROUP_LABEL, HEALTH_LABEL
from podwright.operations.aws.clusters import Node
from podwright.operations.kubernetes.kubectl import Kubectl
from podwright.operations.nodes.snapshot import Observer

BROKEN = "i-0000000000000000a"
OTHER = "i-0000000000000000b"
FRESH = "i-0000000000000000c"


def node(id: str, health: str = "Schedulable", *, ready: bool = True, boot: str = "1", tainted: bool = False) -> Any:
    """A Kubernetes node of group h200."""
    taints = [{"key": HEALTH_LABEL, "value": "Unschedulable", "effect": "NoSchedule"}] if tainted else []
    reason = {"sagemaker.amazonaws.com/fault-reasons": "Xid-74"} if tainted else {}
    return {
        "metadata": {"name": f"hyperpod-{id}", "labels": {HEALTH_LABEL: health, GROUP_LABEL: "h200"} | reason},
        "spec": {"taints": taints},
        "status": {
            "conditions": [{"type": "Ready", "status": "True" if ready else "Unknown"}],
            "nodeInfo": {"bootID": boot},
        },
    }


def pod(
    uid: str, on: str, job: str = "llama", *, ready: bool = True, kind: str = "HyperPodPyTorchJob", restarts: int = 0
) -> Any:
    """A pod of a job of team research."""
    return {
        "metadata": {
            "name": uid,
            "uid": uid,
            "namespace": "hyperpod-ns-research",
            "ownerReferences": [{"kind": kind, "name": job, "controller": True}],
        },
        "spec": {"nodeName": f"hyperpod-{on}"} if on else {},
        "status": {
            "phase": "Running" if ready else "Pending",
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
            "containerStatuses": [{"name": "main", "restartCount": restarts}],
        },
    }


@dataclass
class Moment:
    """What is there from some second on."""

    at: float
    instances: dict[str, str]
    nodes: list[Any]
    pods: list[Any] = field(default_factory=list)


class DrillCluster:
    """Goes from one moment to the next, as its clock is turned on."""

    def __init__(self, moments: list[Moment]) -> None:
        self.now, self.moments, self.said, self.calls = 1000.0, moments, list[dict[str, Any]](), list[Any]()
        self.kubectl = FakeKubectl(self)
        self.refused = list[dict[str, str]]()

    def client(self, service: str) -> "DrillCluster":
        """It is the client of SageMaker as well."""
        assert service == "sagemaker"
        return self

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def clock(self) -> float:
        return self.now

    @property
    def moment(self) -> Moment:
        return [item for item in self.moments if item.at <= self.now - 1000.0][-1]

    def observer(self, *, kubernetes: bool = True) -> Observer:
        """Looks at the node that breaks."""
        member = Node(BROKEN, "h200", "ml.p5en.48xlarge", "Running")
        kubectl = cast(Kubectl, self.kubectl) if kubernetes else None
        return Observer(self, "prod", member, kubectl, self.clock)

    def describe_cluster(self, ClusterName: str) -> Any:
        return {"ClusterArn": "arn", "ClusterStatus": "InService", "NodeProvisioningMode": "Continuous"}

    def describe_cluster_node(self, ClusterName: str, NodeId: str) -> Any:
        return {"NodeDetails": {"PrivateDnsHostname": "ip-10-16-0-7.us-west-2.compute.internal"}}

    def batch_reboot_cluster_nodes(self, ClusterName: str, NodeIds: list[str]) -> Any:
        self.calls.append(("reboot", NodeIds))
        return {"Successful": NodeIds, "Failed": self.refused}

    def batch_replace_cluster_nodes(self, ClusterName: str, NodeIds: list[str]) -> Any:
        self.calls.append(("replace", NodeIds))
        return {"Successful": NodeIds, "Failed": self.refused}

    def start_cluster_health_check(self, ClusterName: str, DeepHealthCheckConfigurations: list[Any]) -> Any:
        self.calls.append(("check", DeepHealthCheckConfigurations))
        return {"ClusterArn": "arn"}

    def get_paginator(self, operation: str) -> Any:
        if operation == "list_cluster_events":
            return type("Pages", (), {"paginate": lambda _, **__: [{"Events": self.said}]})()
        rows = [
            {
                "InstanceId": id,
                "InstanceGroupName": "h200",
                "InstanceType": "ml.p5en.48xlarge",
                "InstanceStatus": {"Status": status},
            }
            for id, status in self.moment.instances.items()
        ]
        return type("Pages", (), {"paginate": lambda _, **__: [{"ClusterNodeSummaries": rows}]})()


class FakeKubectl:
    """kubectl as far as it is asked; what it is told to do is kept."""

    def __init__(self, drill_cluster: DrillCluster) -> None:
        self.cluster = drill_cluster
        self.done: list[tuple[str, ...]] = []
        self.applied: list[Any] = []

    def items(self, kind: str, *arguments: str) -> list[Any]:
        return self.cluster.moment.nodes if kind == "nodes" else self.cluster.moment.pods

    def apply(self, manifests: list[Any], *_: str) -> str:
        self.applied += manifests
        return ""

    def run(self, *arguments: str, specified: str = "", repeatable: bool = True) -> str:
        self.done.append(arguments)
        return ""


BOTH = {BROKEN: "Running", OTHER: "Running"}
WHOLE = Moment(-1, BOTH, [node(BROKEN), node(OTHER)], [pod("a", BROKEN), pod("b", OTHER)])
MARKED = [node(BROKEN, "UnschedulablePendingReplacement", tainted=True), node(OTHER)]
PENDING = [pod("a2", "", ready=False), pod("b", OTHER)]
REPLACED = [
    WHOLE,
    Moment(20, BOTH, MARKED, WHOLE.pods),
    Moment(60, {BROKEN: "ShuttingDown", OTHER: "Running"}, [*MARKED], PENDING),
    Moment(120, {OTHER: "Running", FRESH: "Pending"}, [node(OTHER)], PENDING),
    Moment(1200, {OTHER: "Running", FRESH: "Running"}, [node(OTHER), node(FRESH, ready=False)], PENDING),
    Moment(1300, {OTHER: "Running", FRESH: "Running"}, [node(OTHER), node(FRESH)], PENDING),
    Moment(1400, {OTHER: "Running", FRESH: "Running"}, [node(OTHER), node(FRESH)], [pod("a2", FRESH), pod("b", OTHER)]),
]
"""A node that is replaced: marked, drained, gone, its successor pending, running, ready, and the job whole again."""
