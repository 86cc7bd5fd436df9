"""A node in quarantine as a real API server and a real Kueue see it: what the commands write, and who keeps away."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from api_server import ApiServer, started
from kueue_steps import CONFIGURATIONS
from podwright.config.settings.environment import Environment
from podwright.operations.aws.account import Account
from podwright.operations.aws.clusters import Node
from podwright.operations.kubernetes.kubectl import Kubectl
from podwright.operations.nodes import quarantine as nodes_quarantine
from podwright.planning.node.quarantine import BY, MARK, REASON, SINCE
from podwright.sandbox.control_plane.control_plane import ControlPlane
from synthesis import environment
from waiting import until

API = "kueue.x-k8s.io/v1beta2"
HOST = "kubernetes.io/hostname"
POOL = "example.com/pool"
SICK, WELL = (f"i-0000000000000000{letter}" for letter in "ab")
OTHERS = {"key": "example.com/kept", "value": "yes", "effect": "PreferNoSchedule"}
Object = dict[str, Any]


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with started(tmp_path_factory.mktemp("quarantine"), "kueue") as control_plane:
        control_plane.install("kueue", CONFIGURATIONS[False])
        yield control_plane


@pytest.fixture(scope="module")
def server(plane: ControlPlane) -> ApiServer:
    """A queue for two nodes of four processors, placed by host."""
    made = ApiServer.of(plane.kubeconfig)
    for id in (SICK, WELL):
        node = kubernetes_node(id)
        amounts = {"cpu": "4", "pods": "10"}
        status = {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
        made.create({**node, "spec": {"taints": [OTHERS]}})
        made.merge(node, {"status": status}, subresource="status")
    quota = {"name": "nodes", "resources": [{"name": "cpu", "nominalQuota": "8"}]}
    for kind, spec in (
        ("Topology", {"levels": [{"nodeLabel": HOST}]}),
        ("ResourceFlavor", {"nodeLabels": {POOL: "nodes"}, "topologyName": "nodes"}),
        (
            "ClusterQueue",
            {"namespaceSelector": {}, "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [quota]}]},
        ),
        ("LocalQueue", {"clusterQueue": "nodes"}),
    ):
        metadata = {"name": "nodes"} | ({"namespace": "default"} if kind == "LocalQueue" else {})
        made.create({"apiVersion": API, "kind": kind, "metadata": metadata, "spec": spec})
    return made


def kubernetes_node(id: str) -> Object:
    name = f"hyperpod-{id}"
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {POOL: "nodes", HOST: name}}}


@pytest.fixture
def act(plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Quarantine or release the sick node, with a bucket that takes what it is provided."""
    kubectl = Kubectl(plane.kubeconfig, True)
    monkeypatch.setattr(nodes_quarantine, "kubectl_of", lambda *_: kubectl)
    monkeypatch.setattr(nodes_quarantine, "get", lambda *_: {"Arn": "arn:aws:iam::111122223333:role/ada"})
    monkeypatch.setattr(nodes_quarantine, "remember", lambda *_: None)
    monkeypatch.setattr(nodes_quarantine, "forget", lambda *_: None)
    account = cast(Account, Account("111122223333", "us-west-2", None, {}))
    made: Environment = environment("eight-and-eight")
    members = [Node(SICK, "h200", "ml.p5en.48xlarge", "Running")]

    def run(verb: str, *reason: str) -> None:
        getattr(nodes_quarantine, verb)(made, account, Path(), members, *reason)

    return run


def seen(server: ApiServer) -> Object:
    return server.read(kubernetes_node(SICK))


def workload(name: str) -> Object:
    """A job of one pod that needs a whole node."""
    container = {"name": "main", "image": "example.com/none", "resources": {"requests": {"cpu": "4"}}}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    pods = {"name": "main", "count": 1, "template": template, "topologyRequest": {"required": HOST}}
    metadata = {"name": name, "namespace": "default"}
    return {
        "apiVersion": API,
        "kind": "Workload",
        "metadata": metadata,
        "spec": {"queueName": "nodes", "podSets": [pods]},
    }


def conditions(server: ApiServer, name: str) -> dict[str, Any]:
    """Return the conditions of a job's Workload, by type."""
    return {item["type"]: item for item in server.read(workload(name)).get("status", {}).get("conditions", ())}


def host_of(server: ApiServer, name: str) -> str:
    """Return the node that Kueue gives a job."""
    until(lambda: "Admitted" in conditions(server, name))
    admission = server.read(workload(name))["status"]["admission"]
    return str(admission["podSetAssignments"][0]["topologyAssignment"])


def test_a_mark_says_who_and_why_and_leaves_the_marks_of_others(server: ApiServer, act: Callable[..., None]) -> None:
    act("quarantine", "ECC errors, ticket 12: 'row' \"3\"")
    act("quarantine", "ECC errors, ticket 13")
    marked = seen(server)
    mark = {"key": MARK, "value": "true", "effect": "NoSchedule"}
    assert sorted(marked["spec"]["taints"], key=str) == sorted([OTHERS, mark], key=str)
    assert marked["metadata"]["labels"][MARK] == "true"
    assert marked["metadata"]["annotations"][REASON] == "ECC errors, ticket 13"
    act("release")
    act("release")
    provided = seen(server)
    assert provided["spec"]["taints"] == [OTHERS]
    assert MARK not in provided["metadata"]["labels"]
    assert {REASON, BY, SINCE} & provided["metadata"].get("annotations", {}).keys() == set()


def test_kueue_gives_no_job_a_node_in_quarantine(server: ApiServer, act: Callable[..., None]) -> None:
    act("quarantine", "ECC errors")
    server.create(workload("first"))
    assert WELL in host_of(server, "first")
    server.create(workload("second"))
    # Kueue has looked for a node, and found none.
    until(lambda: conditions(server, "second").get("QuotaReserved", {}).get("status") == "False")
    assert "admission" not in server.read(workload("second"))["status"]
    act("release")
    assert SICK in host_of(server, "second")
