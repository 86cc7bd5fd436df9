"""Real nodes of a cluster: kubelets with containerd, pods that run and meet, reboots, replacements, killed programs."""

import os
import re
import signal
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from kubernetes.utils.quantity import parse_quantity

from api_server import ApiServer, started
from control_plane_parts import needs_parts
from needs import needs
from podwright.cdk8s_charts.lustre_volumes import lustre_volume
from podwright.config.catalog.instance_types import catalog
from podwright.operations.programs.helm import tool
from podwright.operations.programs.process import command_lines
from podwright.planning.helm.operators import NODE_PARTS
from podwright.planning.kubernetes.deployed_values import LustreValues
from podwright.planning.node.allocatable import kubelet_allocatable
from podwright.planning.node.quarantine import MARK, MARKED
from podwright.sandbox.control_plane.cache import Cache
from podwright.sandbox.control_plane.control_plane import ControlPlane
from podwright.sandbox.control_plane.pins import pins
from podwright.sandbox.eks.control_planes import ControlPlanes, Webhooks
from podwright.sandbox.hyperpod.answers import kubernetes_node
from podwright.sandbox.hyperpod.cluster import Cluster as HyperPodCluster
from podwright.sandbox.hyperpod.cluster import Node, Timing
from podwright.sandbox.hyperpod.pod_ends import EXIT_CODE, RUNS_FOR
from podwright.sandbox.nodes.cgroups import names, processes
from podwright.sandbox.nodes.real_nodes import RealNodes
from podwright.sandbox.nodes.support import NodeBudget, obstacle, programs
from podwright.sandbox.protocol.clock import now
from podwright.sandbox.protocol.json_objects import JsonObject
from waiting import becomes, until

OBSTACLE = obstacle(pins(), Cache.of_user())
PROGRAMS = programs(pins(), Cache.of_user())
pytestmark = [needs_parts(*NODE_PARTS), needs(OBSTACLE is None, str(OBSTACLE))]

REGION, NAME, TYPE, NAMESPACE = "us-east-1", "here", "ml.p5en.48xlarge", "default"
ROW = catalog().get(TYPE)
WHOLE_NODE = {"cpu": "180", "memory": "1900Gi", "nvidia.com/gpu": "8", "vpc.amazonaws.com/efa": "16"}
PORT = 29500
RANK_0 = f"""
import socket
server = socket.create_server(("", {PORT}))
connection, _ = server.accept()
print("rank 0 of 2 met", connection.makefile().readline().strip(), flush=True)
connection.sendall(b"rank 0\\n")
"""
RANK_1 = f"""
import os, socket
connection = socket.create_connection((os.environ["MASTER_ADDR"], {PORT}))
connection.sendall(b"rank 1\\n")
print("rank 1 of 2 met", connection.makefile().readline().strip(), flush=True)
"""
SERVER = f"""
import socket
server = socket.create_server(("", {PORT}))
while True:
    connection, _ = server.accept()
    connection.sendall(b"the server answers")
    connection.close()
"""
# A Service is named a moment after it was made.
CLIENT = f"""
import os, socket, subprocess, time
for _ in range(600):
    try:
        # As workers of PyTorchJob do.
        if subprocess.run(["nslookup", os.environ["SERVER_NAME"]], capture_output=True).returncode:
            raise OSError("the Service has no name yet")
        print(socket.create_connection((os.environ["SERVER_NAME"], {PORT}), timeout=5).recv(100).decode())
        break
    except OSError:
        time.sleep(0.5)
"""
ASK_API = """
import json, ssl, urllib.request
folder = "/var/run/secrets/kubernetes.io/serviceaccount"
trusting = ssl.create_default_context(cafile=f"{folder}/ca.crt")
for host in ("10.96.0.1", "kubernetes.default.svc"):
    with urllib.request.urlopen(f"https://{host}/version", context=trusting) as answer:
        version = json.load(answer)["gitVersion"]
print(version)
"""


SLEEPS = "import time; time.sleep(3600)"
ENDS_BY_SIGTERM = """
import pathlib, signal, sys, time
def end(number, frame):
    pathlib.Path("/results/polite").write_text("saved")
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
print("ready", flush=True)
time.sleep(3600)
"""
IGNORES_SIGTERM = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(3600)
"""


class Service:
    """HyperPod's nodes of one cluster."""

    def __init__(self, count: int) -> None:
        self.job_faults: dict[str, str] = {}
        self.cluster = HyperPodCluster("hyperpod", "arn", REGION, {}, Timing())
        self.nodes = [self.launched(spot) for spot in range(count)]

    def launched(self, spot: int) -> Node:
        """A new node."""
        node = Node("h200", TYPE, "subnet", f"{REGION}a", "use1-az4", f"10.16.0.{10 + spot}", 0, 0, 0)
        node.spot, node.kubelet = spot, "1.34"
        return node

    def kubernetes_nodes(self, region: str, eks_cluster: str) -> list[JsonObject]:
        return [kubernetes_node(self.cluster, node, now()) for node in self.nodes]

    def first_nodes(self, region: str, eks_cluster: str) -> list[str]:
        ordered = sorted(self.nodes, key=lambda node: node.spot)
        return [f"hyperpod-{node.instance_id}" for node in ordered]

    def patch_node(self, region: str, eks_cluster: str, name: str, patch: JsonObject) -> None:
        """Kubelets and controllers annotate nodes."""

    def run_pod(self, region: str, eks_cluster: str, pod: JsonObject) -> None:
        """No drill runs here."""

    def find_xid(self, region: str, eks_cluster: str, name: str, text: str) -> None:
        """Nothing writes an Xid here."""


class Cluster:
    """A cluster of two real nodes and a simulated one, which follow HyperPod's whenever somebody asks."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.plane, self.service = plane, Service(3)
        self.planes = ControlPlanes(folder, "111122223333", Webhooks("", folder, ""), "real", real_nodes=NodeBudget(2))
        self.planes.planes[REGION, NAME] = plane
        self.server = ApiServer.of(plane.kubeconfig)

    @property
    def names(self) -> list[str]:
        """The nodes' names, the two real ones first."""
        return self.service.first_nodes(REGION, NAME)

    def node(self, name: str) -> JsonObject:
        """A node, once the nodes have followed."""
        self.planes.follow(self.service)
        return self.server.read({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})

    def is_ready(self, name: str) -> bool:
        """Whether a node's kubelet says so."""
        return self.condition(name, "Ready") == "True"

    def condition(self, name: str, kind: str) -> str:
        """What a node's kubelet says of it; empty before it says anything."""
        conditions = self.node(name)["status"].get("conditions", [])
        return next((item["status"] for item in conditions if item["type"] == kind), "")

    def run(
        self,
        name: str,
        node: str,
        program: str = "",
        resources: dict[str, str] | None = None,
        labels: dict[str, str] | None = None,
        claims: Sequence[str] = (),
        command: Sequence[str] = (),
        restart: str = "Never",
        grace: int = 30,
        **variables: str,
    ) -> Any:
        """Make a pod that runs Python on a node, out of an image that no registry has."""
        container: JsonObject = {
            "name": "main",
            "image": "123456789012.dkr.ecr.us-west-2.amazonaws.com/train:1.0",
            "command": command or ["python", "-c", program],
            "env": [{"name": key, "value": value} for key, value in variables.items()],
            "resources": {"requests": resources, "limits": resources} if resources else {},
        }
        container["volumeMounts"] = [{"name": claim, "mountPath": f"/{claim}"} for claim in claims]
        volumes = [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims]
        selector = {"kubernetes.io/hostname": node}
        spec = {"restartPolicy": restart, "nodeSelector": selector, "containers": [container], "volumes": volumes}
        spec["terminationGracePeriodSeconds"] = grace  # pyrefly: ignore[bad-assignment]
        metadata = {"name": name, "namespace": NAMESPACE, "labels": labels or {}}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        self.server.create(pod)
        return pod

    def pod(self, pod: Any) -> JsonObject:
        """A pod as it is now."""
        self.planes.follow(self.service)
        return self.server.read(pod)

    def phase(self, pod: Any) -> str:
        """What becomes of a pod."""
        return self.pod(pod)["status"]["phase"]

    def refusal(self, pod: Any) -> str:
        """Why the scheduler places a pod on no node; empty while it has not tried."""
        conditions = self.pod(pod)["status"].get("conditions", [])
        return next((item.get("message", "") for item in conditions if item["type"] == "PodScheduled"), "")

    def kubectl(self, *arguments: str) -> str:
        """Output of kubectl, or its complaint."""
        command = [str(tool("kubectl")), "--kubeconfig", str(self.plane.kubeconfig), *arguments]
        result = subprocess.run(command, capture_output=True, text=True)
        return result.stdout or result.stderr

    def processes(self, program: str, node: str) -> list[int]:
        """The processes of this machine that run a program of a node."""
        [first] = [pid for pid in self.machine(node) if pid != self.record(node)]
        named = [pid for pid, words in command_lines().items() if words[:1] == [program.encode()]]
        return [pid for pid in named if _within(pid, first)]

    def record(self, node: str) -> int:
        """The process that stays outside of a node."""
        return int((self.folder / node / "process").read_text())

    def processes_of(self, pod: Any) -> list[int]:
        """The processes of a pod's containers, on this machine."""
        item = self.pod(pod)
        identifiers = [status["containerID"].partition("://")[2] for status in item["status"]["containerStatuses"]]
        group = f"{RealNodes.prefix_of(self.folder)}{item['spec']['nodeName']}"
        return [pid for identifier in identifiers for pid in processes(group, identifier)]

    def machine(self, node: str) -> list[int]:
        """That process and the first one of the node."""
        folder = str(self.folder / node).encode()
        return [pid for pid, words in command_lines().items() if folder in words]

    @property
    def folder(self) -> Path:
        """Where the nodes' disks are."""
        return self.planes.folder / "111122223333" / REGION / NAME / "nodes"


def _within(pid: int, first: int) -> bool:
    """Whether a process belongs to the process namespace that another one is the first of."""
    try:
        return Path(f"/proc/{pid}/ns/pid").readlink() == Path(f"/proc/{first}/ns/pid").readlink()
    except FileNotFoundError:
        return False


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster whose nodes are ready."""
    folder = tmp_path_factory.mktemp("real-nodes")
    with started(folder / "111122223333" / REGION / NAME, *NODE_PARTS) as plane:
        cluster = Cluster(plane, folder)
        try:
            until(lambda: all(map(cluster.is_ready, cluster.names)), lambda: _logs(cluster))
            # Pods are refused until their namespace has it.
            until(lambda: cluster.server.items("v1", "ServiceAccount", NAMESPACE))
            yield cluster
        finally:
            cluster.planes.planes.clear()
            cluster.planes.stop()


def _logs(cluster: Cluster) -> str:
    files = sorted(cluster.folder.glob("*/machine.log")) + sorted(cluster.folder.glob("*/disk/log/*.log"))
    return "\n".join(f"{file}:\n{file.read_text()[-2000:]}" for file in files)


def test_the_first_nodes_are_real_and_report_their_instance_type(cluster: Cluster) -> None:
    for name in cluster.names[:2]:
        node = cluster.node(name)
        assert node["metadata"]["annotations"]["podwright.io/kubelet"] == "real"
        assert node["status"]["nodeInfo"]["containerRuntimeVersion"].startswith("containerd://")
        capacity, expected = node["status"]["capacity"], kubelet_allocatable(ROW)
        assert capacity["cpu"] == str(ROW.vcpu)
        assert parse_quantity(capacity["memory"]) == ROW.memory_gib * 1024**3
        assert node["status"]["allocatable"]["cpu"] == f"{expected.cpu_millis}m"
        assert parse_quantity(node["status"]["allocatable"]["memory"]) == expected.memory_mib * 1024**2
        assert node["status"]["allocatable"]["pods"] == str(expected.pods)
        addresses = {item["type"]: item["address"] for item in node["status"]["addresses"]}
        assert addresses == {"InternalIP": addresses["InternalIP"], "Hostname": name, "InternalDNS": "localhost"}
    simulated = cluster.node(cluster.names[2])["metadata"]["annotations"]
    assert (simulated["kwok.x-k8s.io/node"], "podwright.io/kubelet" in simulated) == ("fake", False)


@pytest.mark.parametrize(("resource", "count"), [("nvidia.com/gpu", "8"), ("vpc.amazonaws.com/efa", "16")])
def test_devices_are_advertised_as_the_catalog_has_them(cluster: Cluster, resource: str, count: str) -> None:
    for name in cluster.names[:2]:
        becomes(count, lambda name=name: cluster.node(name)["status"]["allocatable"].get(resource))


def test_pods_of_whole_nodes_meet_over_tcp_and_have_logs(cluster: Cluster) -> None:
    first, second, _ = cluster.names
    rank_0 = cluster.run("rank-0", first, RANK_0, WHOLE_NODE)
    address = until(lambda: cluster.pod(rank_0)["status"].get("podIP"), lambda: cluster.kubectl("describe", "pods"))
    rank_1 = cluster.run("rank-1", second, RANK_1, WHOLE_NODE, MASTER_ADDR=address)
    for pod in (rank_0, rank_1):
        until(lambda pod=pod: cluster.phase(pod) == "Succeeded", lambda: cluster.kubectl("describe", "pods"))
    assert cluster.kubectl("logs", "rank-0") == "rank 0 of 2 met rank 1\n"
    assert cluster.kubectl("logs", "rank-1") == "rank 1 of 2 met rank 0\n"


@pytest.mark.parametrize("address", ["None", ""], ids=["headless", "with an address"])
def test_services_have_names_on_both_nodes(cluster: Cluster, address: str) -> None:
    first, second, _ = cluster.names
    name = f"service{bool(address):d}"
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"selector": {"app": name}, "ports": [{"port": PORT}]} | ({"clusterIP": address} if address else {}),
    }
    cluster.server.create(service)
    server = cluster.run(f"{name}-server", first, SERVER, labels={"app": name})
    becomes("Running", lambda: cluster.phase(server))
    for node in (first, second):
        client = cluster.run(f"{name}-{node[-5:]}", node, CLIENT, SERVER_NAME=name)
        until(lambda client=client: cluster.phase(client) == "Succeeded", lambda: _logs(cluster))
        assert cluster.kubectl("logs", client["metadata"]["name"]) == "the server answers\n"
    cluster.server.delete(server)


@pytest.fixture(scope="module")
def volumes(cluster: Cluster) -> None:
    """Two claims of the same folder: one for writing."""
    values = LustreValues(id="fs-0123456789abcdef0", dns_name="fs.fsx.us-east-1.amazonaws.com", mount_name="abcdefgh")
    for name, read_only in (("results", False), ("data", True)):
        for item in lustre_volume(NAMESPACE, name, values, path="/team", read_only=read_only):
            cluster.server.create(item)


@pytest.mark.usefixtures("volumes")
def test_pods_of_both_nodes_share_a_file_system(cluster: Cluster) -> None:
    writes = "open('/results/file', 'w').write('written by rank 0')"
    reads = "print(open('/data/file').read()); open('/data/other', 'w')"
    first, second, _ = cluster.names
    writer = cluster.run("writes", first, writes, claims=["results"])
    until(lambda: cluster.phase(writer) == "Succeeded", lambda: cluster.kubectl("describe", "pod", "writes"))
    reader = cluster.run("reads", second, reads, claims=["data"])
    until(lambda: cluster.phase(reader) == "Failed", lambda: cluster.kubectl("describe", "pod", "reads"))
    log = cluster.kubectl("logs", "reads")
    assert "written by rank 0\n" in log
    assert "Read-only file system: '/data/other'" in log
    # The kubelet deletes a pod once its volumes are unmounted.
    deleted = cluster.kubectl("delete", "pods", "writes", "reads", "--wait")
    assert [line.partition('" ')[0] for line in deleted.splitlines()] == ['pod "writes', 'pod "reads']
    assert [file.read_text() for file in cluster.folder.parent.glob("file-systems/*/*/team/file")] == [
        "written by rank 0"
    ]


def test_pods_reach_the_kubernetes_api(cluster: Cluster) -> None:
    pod = cluster.run("asks", cluster.names[1], ASK_API)
    until(lambda: cluster.phase(pod) == "Succeeded", lambda: cluster.kubectl("logs", "asks"))
    assert cluster.kubectl("logs", "asks") == f"v{pins().part('kubernetes').version}\n"


def test_commands_run_in_containers(cluster: Cluster) -> None:
    pod = cluster.run("waits", cluster.names[0], SLEEPS)
    becomes("Running", lambda: cluster.phase(pod))
    assert cluster.kubectl("exec", "waits", "--", "python", "-c", "print(6 * 7)") == "42\n"
    # This machine's own files and devices are out of reach.
    program = f"import os; print(os.path.exists('/dev/nvidia0'), os.path.exists({__file__!r}))"
    assert cluster.kubectl("exec", "waits", "--", "python", "-c", program) == "False False\n"
    assert "Read-only file system" in cluster.kubectl("exec", "waits", "--", "touch", "/usr/file")
    cluster.server.delete(pod)


def test_the_kubelet_measures_containers(cluster: Cluster) -> None:
    pod = cluster.run("measured", cluster.names[0], SLEEPS)
    becomes("Running", lambda: cluster.phase(pod))
    port = cluster.node(cluster.names[0])["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
    keys = cluster.plane.kubelets
    client = keys.client("kube-apiserver", "kube-apiserver")
    trusting = ssl.create_default_context(cafile=str(keys.file))
    trusting.load_cert_chain(client.certificate, client.key)

    def metrics() -> str:
        with urllib.request.urlopen(f"https://localhost:{port}/metrics/cadvisor", context=trusting) as answer:
            return answer.read().decode()

    until(lambda: re.search(r'container_memory_working_set_bytes\{.*container="main".*pod="measured"', metrics()))
    cluster.server.delete(pod)


@pytest.mark.parametrize(("code", "phase"), [("0", "Succeeded"), ("3", "Failed")])
def test_a_container_without_its_program_is_simulated(cluster: Cluster, code: str, phase: str) -> None:
    pod = cluster.run(f"absent-{code}", cluster.names[0], command=["absent-launcher", "train.py"])
    becomes("Running", lambda: cluster.phase(pod))
    expected = "simulated by the sandbox: this machine has no program absent-launcher, and the sandbox uses no images\n"
    until(
        lambda: cluster.kubectl("logs", f"absent-{code}").startswith(f"{expected}absent-{code} on {cluster.names[0]}")
    )
    annotations = {RUNS_FOR: "1s", EXIT_CODE: code}
    cluster.server.merge(pod, {"metadata": {"annotations": annotations}})
    becomes(phase, lambda: cluster.phase(pod))
    [status] = cluster.pod(pod)["status"]["containerStatuses"]
    assert status["state"]["terminated"]["exitCode"] == int(code)


def test_a_killed_program_starts_again_and_pods_run_on(cluster: Cluster) -> None:
    node = cluster.names[0]
    pod = cluster.run("survives", node, SLEEPS)
    becomes("Running", lambda: cluster.phase(pod))
    for program in ("containerd", PROGRAMS.kubelet, PROGRAMS.kube_proxy, PROGRAMS.coredns, sys.executable):
        # The first process of a node runs Python, too, and ends the node with it.
        [former] = [pid for pid in cluster.processes(program, node) if pid not in cluster.machine(node)]
        os.kill(former, signal.SIGKILL)
        until(lambda program=program, former=former: set(cluster.processes(program, node)) - {former})
    until(lambda: cluster.kubectl("exec", "survives", "--", "echo", "here") == "here\n", lambda: _logs(cluster))
    statuses = cluster.pod(pod)["status"]["containerStatuses"]
    assert [item["restartCount"] for item in statuses] == [0]
    cluster.server.delete(pod)


def test_a_container_ends_with_its_shim_and_starts_again(cluster: Cluster) -> None:
    node = cluster.names[0]
    pod = cluster.run("orphaned", node, SLEEPS, restart="Always")
    becomes("Running", lambda: cluster.phase(pod))
    [former] = cluster.processes_of(pod)
    # The shim is in a session of its own, and the parent of the container's first process.
    parent = int(Path(f"/proc/{former}/stat").read_text().rpartition(") ")[2].split()[1])
    assert Path(f"/proc/{parent}/comm").read_text() == "containerd-shim\n"
    os.kill(parent, signal.SIGKILL)
    becomes([1], lambda: [item["restartCount"] for item in cluster.pod(pod)["status"].get("containerStatuses", ())])
    assert _state(former) == ""
    cluster.server.delete(pod)


@pytest.mark.usefixtures("volumes")
def test_a_drained_node_lets_processes_end(cluster: Cluster) -> None:
    node = cluster.names[0]
    drained = {"app": "drained"}
    polite = cluster.run("polite", node, ENDS_BY_SIGTERM, labels=drained, claims=["results"], grace=600)
    stubborn = cluster.run("stubborn", node, IGNORES_SIGTERM, labels=drained, grace=1)
    for pod in (polite, stubborn):
        becomes("Running", lambda pod=pod: cluster.phase(pod))
        # Python has set its handler.
        until(lambda pod=pod: cluster.kubectl("logs", pod["metadata"]["name"]) == "ready\n")
    [process] = cluster.processes_of(stubborn)
    output = cluster.kubectl("drain", node, "--force", "--ignore-daemonsets", "--pod-selector=app=drained")
    assert output.splitlines()[-1] == f"node/{node} drained"
    # The first one wrote that into a file system, which outlives it. The other one was killed after its grace.
    [file] = cluster.folder.parent.glob("file-systems/*/*/team/polite")
    assert file.read_text() == "saved"
    assert _state(process) == ""
    waiting = cluster.run("waits-for-node", node, "print('it runs')")
    until(lambda: "1 node(s) were unschedulable" in cluster.refusal(waiting))
    cluster.kubectl("uncordon", node)
    becomes("Succeeded", lambda: cluster.phase(waiting))


def test_pods_run_on_in_quarantine_and_none_starts(cluster: Cluster) -> None:
    node = cluster.names[0]
    pod = cluster.run("before", node, SLEEPS)
    becomes("Running", lambda: cluster.phase(pod))
    taint = f"{MARK}={MARKED}:NoSchedule"
    cluster.kubectl("taint", "nodes", node, taint)
    refused = cluster.run("during", node, "print('it runs')")
    until(lambda: "1 node(s) had untolerated taint(s)" in cluster.refusal(refused))
    assert cluster.kubectl("exec", "before", "--", "echo", "here") == "here\n"
    assert [item["restartCount"] for item in cluster.pod(pod)["status"]["containerStatuses"]] == [0]
    cluster.kubectl("taint", "nodes", node, f"{taint}-")
    becomes("Succeeded", lambda: cluster.phase(refused))
    cluster.server.delete(pod)


def test_a_rebooted_node_comes_back_without_its_processes(cluster: Cluster) -> None:
    item = cluster.service.nodes[0]
    name = f"hyperpod-{item.instance_id}"
    pod = cluster.run("restarted", name, SLEEPS)
    becomes("Running", lambda: cluster.phase(pod))
    item.boot_seconds, item.launched, item.boots = 3600, now(), 1
    until(lambda: not cluster.is_ready(name))
    assert cluster.machine(name) == []
    item.boot_seconds = 0
    until(lambda: cluster.is_ready(name), lambda: _logs(cluster))
    becomes("Failed", lambda: cluster.phase(pod))
    again = cluster.run("afterwards", name, "print('after the reboot')")
    becomes("Succeeded", lambda: cluster.phase(again))
    assert cluster.kubectl("logs", "afterwards") == "after the reboot\n"


def test_a_reboot_between_two_looks_ends_the_processes(cluster: Cluster) -> None:
    item = cluster.service.nodes[0]
    name = f"hyperpod-{item.instance_id}"
    former, before = cluster.record(name), cluster.node(name)["status"]["nodeInfo"]["bootID"]
    item.boots += 1
    until(lambda: cluster.is_ready(name) and cluster.record(name) != former, lambda: _logs(cluster))
    expected = cluster.service.kubernetes_nodes(REGION, NAME)[0]["status"]["nodeInfo"]["bootID"]
    assert expected != before
    # The kubelet says so itself.
    becomes(expected, lambda: cluster.node(name)["status"]["nodeInfo"]["bootID"])


def test_broken_nodes_are_silent_until_they_are_rebooted(cluster: Cluster) -> None:
    hung, lost = cluster.names[:2]
    nodes = cluster.planes.real_nodes_with(hung)
    kubelets = {name: cluster.processes(PROGRAMS.kubelet, name)[0] for name in (hung, lost)}
    nodes.break_node(hung, "hangs")
    nodes.break_node(lost, "no-network")
    becomes("T", lambda: _state(kubelets[hung]))
    assert _state(kubelets[lost]) != "T"
    # The node lifecycle controller waits for 50 s.
    until(lambda: not cluster.is_ready(hung) and not cluster.is_ready(lost))
    for item in cluster.service.nodes[:2]:
        item.boots += 1
    until(lambda: all(map(cluster.is_ready, (hung, lost))), lambda: _logs(cluster))
    assert not {_state(pid) for pid in kubelets.values()} - {""}
    with pytest.raises(
        ValueError, match="is a simulated node, or does not run; hangs, no-network, full-disk need a real one"
    ):
        cluster.planes.real_nodes_with(cluster.names[2])


def _state(pid: int) -> str:
    """What a process does, as procfs says it by a letter; empty once it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
    except OSError:
        return ""


def test_a_full_disk_evicts_pods_until_the_node_is_replaced(cluster: Cluster) -> None:
    node = cluster.names[1]
    pod = cluster.run("evicted", node, SLEEPS)
    becomes("Running", lambda: cluster.phase(pod))
    nodes = cluster.planes.real_nodes_with(node)
    nodes.break_node(node, "full-disk")
    # This machine's disk is not: of the node's 100 GiB it has what was written.
    assert (cluster.folder / node / "disk.img").stat().st_blocks * 512 < 2**30
    becomes("True", lambda: cluster.condition(node, "DiskPressure"))
    becomes("Failed", lambda: cluster.phase(pod))
    status = cluster.pod(pod)["status"]
    assert status["reason"] == "Evicted"
    assert status["message"].startswith("The node was low on resource: ephemeral-storage.")
    # It is ready, so HyperPod does nothing, and Kubernetes places nothing on it.
    assert cluster.is_ready(node)
    refused = cluster.run("too-late", node, "print('it runs')")
    until(lambda: "1 node(s) had untolerated taint(s)" in cluster.refusal(refused))
    assert "node.kubernetes.io/disk-pressure" in [item["key"] for item in cluster.node(node)["spec"]["taints"]]
    # A reboot frees nothing.
    cluster.service.nodes[1].boots += 1
    boot = cluster.service.kubernetes_nodes(REGION, NAME)[1]["status"]["nodeInfo"]["bootID"]
    becomes(boot, lambda: cluster.node(node)["status"]["nodeInfo"]["bootID"])
    assert (nodes.disk(node) / "full-disk").exists()


def test_a_replaced_node_is_a_new_real_one(cluster: Cluster) -> None:
    former = cluster.service.nodes[1]
    fresh = cluster.service.launched(former.spot)
    former_name, name = f"hyperpod-{former.instance_id}", f"hyperpod-{fresh.instance_id}"
    cluster.service.nodes[1] = fresh
    until(lambda: cluster.is_ready(name), lambda: _logs(cluster))
    assert cluster.machine(former_name) == []
    assert not (cluster.folder / former_name).exists()
    assert cluster.node(name)["metadata"]["annotations"]["podwright.io/kubelet"] == "real"
    assert cluster.condition(name, "DiskPressure") == "False"
    assert not any(former.instance_id in group for group in names("podwright-"))


def test_a_killed_node_starts_again(cluster: Cluster) -> None:
    name = cluster.names[0]
    former = cluster.record(name)
    os.kill(former, signal.SIGKILL)
    until(lambda: former not in cluster.machine(name))
    becomes(2, lambda: (cluster.node(name), len(cluster.machine(name)))[1])
    until(lambda: cluster.is_ready(name), lambda: _logs(cluster))
