"""The nodes of a real API server, as the sandbox plays them: the logs of containers, and how pods end."""

import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client, config

from control_plane_parts import needs_parts
from podwright.operations.gates.nccl_table import parsed
from podwright.operations.programs.helm import tool
from podwright.sandbox.control_plane.cache import Cache
from podwright.sandbox.control_plane.control_plane import ControlPlane
from podwright.sandbox.eks.control_planes import ControlPlanes, Webhooks
from podwright.sandbox.hyperpod.repair import DRILL_LABEL
from waiting import CEILING_SECONDS, becomes

CACHE = Cache.of_user()
pytestmark = needs_parts()

NODE = "hyperpod-i-0123456789abcdef0"
NAMESPACE = "kubelets"
NCCL = ["mpirun", "-np", "16", "-N", "8", "/opt/nccl-tests/build/all_reduce_perf", "-b", "8M", "-e", "64M"]
OURS = {"app.kubernetes.io/managed-by": "podwright"}
Object = dict[str, Any]


class Service:
    """One node, and what is wrong with jobs."""

    def __init__(self) -> None:
        self.job_faults: Mapping[str, str] = {}
        self.is_away = False
        self.boots = 1
        self.drilled: list[str] = []

    def kubernetes_nodes(self, region: str, eks_cluster: str) -> list[Object]:
        return [
            {
                "metadata": {"name": NODE, "labels": {"node.kubernetes.io/instance-type": "ml.m5.4xlarge"}},
                "spec": {},
                "status": {
                    "conditions": [{"type": "Ready", "status": "Unknown" if self.is_away else "True"}],
                    "nodeInfo": {"bootID": f"boot-{self.boots}"},
                    "addresses": [
                        {"type": "InternalIP", "address": "10.0.0.10"},
                        {"type": "Hostname", "address": NODE},
                    ],
                },
            }
        ]

    def patch_node(self, region: str, eks_cluster: str, name: str, patch: Object) -> None:
        """Controllers annotate nodes."""

    def run_pod(self, region: str, eks_cluster: str, pod: Object) -> Object | None:
        self.drilled.append(pod["metadata"]["name"])


class Cluster:
    """A real cluster whose nodes follow a service, each time that somebody asks."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.plane, self.service = plane, Service()
        self.planes = ControlPlanes(folder, "111122223333", Webhooks("", folder, ""), new_clusters="real")
        self.planes.planes["us-east-1", "here"] = plane
        self.core: Any = client.CoreV1Api(config.new_client_from_config(str(plane.kubeconfig)))

    def run(self, name: str, *command: str, labels: Mapping[str, str] = OURS, restart_policy: str = "Always") -> None:
        """Make a pod of a job of this name."""
        labels = {"app.kubernetes.io/name": name, **labels}
        container = {"name": "main", "image": "example.com/train", "command": command}
        specification = {"containers": [container], "nodeName": NODE, "restartPolicy": restart_policy}
        body = {"metadata": {"name": name, "labels": labels}, "spec": specification}
        self.core.create_namespaced_pod(NAMESPACE, body)

    def phase(self, name: str) -> str:
        self.planes.follow(self.service)
        return self.core.read_namespaced_pod(name, NAMESPACE).status.phase

    def state(self, name: str) -> tuple[bool, int]:
        """Whether a pod is ready, and how often its container was started again."""
        self.planes.follow(self.service)
        status = self.core.read_namespaced_pod(name, NAMESPACE).status
        ready = any(item.type == "Ready" and item.status == "True" for item in status.conditions)
        return ready, status.container_statuses[0].restart_count

    def kubectl(self, *arguments: str) -> str:
        """Output of kubectl, or its complaint."""
        command = [str(tool("kubectl")), "--kubeconfig", str(self.plane.kubeconfig), "--namespace", NAMESPACE]
        result = subprocess.run([*command, *arguments], capture_output=True, text=True)
        return result.stdout or result.stderr


@pytest.fixture(scope="module")
def cluster(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(plane, tmp_path_factory.mktemp("kubelets"))
    made.planes.follow(made.service)
    made.core.create_namespace({"metadata": {"name": NAMESPACE}})
    becomes(1, lambda: len(made.core.list_namespaced_service_account(NAMESPACE).items))
    try:
        yield made
    finally:
        made.core.delete_namespace(NAMESPACE)
        made.core.delete_node(NODE)
        # The plane is everybody's.
        made.planes.planes.clear()
        made.planes.stop()


@pytest.fixture
def running(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[Callable[..., str]]:
    """Starts a pod, and says what it is called."""

    def start(name: str, *command: str) -> str:
        cluster.run(name, *command)
        becomes("Running", lambda: cluster.phase(name))
        return name

    yield start
    cluster.service.job_faults = {}
    cluster.kubectl("delete", "pods", "--all", "--now")


def test_a_nodes_addresses_are_hyperpods(cluster: Cluster) -> None:
    addresses = {item.type: item.address for item in cluster.core.read_node(NODE).status.addresses}
    assert addresses == {"InternalIP": "10.0.0.10", "Hostname": NODE, "InternalDNS": "localhost"}


def test_a_reboot_ends_the_containers_of_a_node(cluster: Cluster, running: Callable[..., str]) -> None:
    """They start again where the restart policy allows it; other pods have failed, and their owners make new ones."""
    running("again", "train.py")
    cluster.run("once", "train.py", restart_policy="Never")
    becomes("Running", lambda: cluster.phase("once"))
    cluster.service.is_away, cluster.service.boots = True, 2
    becomes((False, 0), lambda: cluster.state("again"))
    cluster.service.is_away = False
    becomes((True, 1), lambda: cluster.state("again"))
    assert cluster.core.read_node(NODE).status.node_info.boot_id == "boot-2"
    assert (cluster.phase("again"), cluster.phase("once")) == ("Running", "Failed")
    [container] = cluster.core.read_namespaced_pod("again", NAMESPACE).status.container_statuses
    assert container.last_state.terminated.exit_code == 255
    [container] = cluster.core.read_namespaced_pod("once", NAMESPACE).status.container_statuses
    assert (container.ready, container.state.running, container.state.terminated.exit_code) == (False, None, 255)
    assert cluster.state("again") == (True, 1), "one reboot, one restart"


def test_containers_have_logs(cluster: Cluster, running: Callable[..., str]) -> None:
    name = running("train", "train.py")
    line = f"train on {NODE}: nothing ran (sandbox)\n"
    assert cluster.kubectl("logs", name) == line
    time_of_line, _, rest = cluster.kubectl("logs", name, "--timestamps").partition(" ")
    assert (rest, time_of_line[-1]) == (line, "Z")
    assert 'previous terminated container "main" in pod "train" not found' in cluster.kubectl(
        "logs", name, "--previous"
    )


def test_a_log_is_followed_until_its_pod_ends(cluster: Cluster, running: Callable[..., str]) -> None:
    name = running("follows", "train.py")
    command = [tool("kubectl"), "--kubeconfig", cluster.plane.kubeconfig, "--namespace", NAMESPACE, "logs", "-f", name]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as reader:
        assert reader.stdout
        assert reader.stdout.readline()
        assert reader.poll() is None
        cluster.service.job_faults = {"follows": "fails"}
        becomes("Failed", lambda: cluster.phase(name))
        assert reader.wait(timeout=CEILING_SECONDS) == 0
    assert "it was told to fail" in cluster.kubectl("logs", name)


@pytest.mark.parametrize(
    ("fault", "is_fast", "is_right"), [("", True, True), ("slow", False, True), ("wrong", True, False)]
)
def test_benchmarks_print_what_is_wrong_with_them(
    cluster: Cluster, running: Callable[..., str], fault: str, *, is_fast: bool, is_right: bool
) -> None:
    cluster.service.job_faults = {"fabric": fault} if fault else {}
    name = running(f"fabric-{fault or 'well'}", *NCCL)
    becomes("Succeeded", lambda: cluster.phase(name))
    rows = parsed(cluster.kubectl("logs", name))
    assert [row.bytes for row in rows] == [2**23, 2**24, 2**25, 2**26]
    assert (rows[-1].busbw > 10, not any(row.wrong for row in rows)) == (is_fast, is_right)


def test_an_image_is_missing_until_it_is_there(cluster: Cluster, running: Callable[..., str]) -> None:
    name = running("image", "train.py")
    cluster.service.job_faults = {"image": "image"}
    becomes("Pending", lambda: cluster.phase(name))
    assert "ImagePullBackOff" in cluster.kubectl("get", "pod", name)
    refusal = 'container "main" in pod "image" is waiting to start: trying and failing to pull image'
    assert refusal in cluster.kubectl("logs", name)
    cluster.service.job_faults = {}
    becomes("Running", lambda: cluster.phase(name))


def test_a_drill_breaks_its_node_once_it_is_deleted(cluster: Cluster) -> None:
    """Whether somebody saw its end before that or not: who drills deletes it at once, and looks from then on."""
    for name in ("slow", "fast"):
        cluster.run(name, labels={DRILL_LABEL: "true"})
        becomes("Succeeded" if name == "slow" else "Running", partial(cluster.phase, name))
        assert name not in cluster.service.drilled
        cluster.kubectl("delete", "pod", name, "--now")
        cluster.planes.follow(cluster.service)
        cluster.planes.follow(cluster.service)
    assert cluster.service.drilled == ["slow", "fast"]


def test_nothing_else_is_answered(cluster: Cluster, running: Callable[..., str]) -> None:
    name = running("shell", "train.py")
    assert "nothing runs in the containers of the sandbox" in cluster.kubectl("exec", name, "--", "ls")
    assert "not found" in cluster.kubectl("logs", "nobody")


def test_the_api_server_alone_may_ask(cluster: Cluster) -> None:
    port = cluster.core.read_node(NODE).status.daemon_endpoints.kubelet_endpoint.port
    url = f"https://localhost:{port}/containerLogs/{NAMESPACE}/any/main"
    trusting = ssl.create_default_context(cafile=str(cluster.plane.kubelets.file))
    with pytest.raises((urllib.error.URLError, ssl.SSLError, ConnectionError)):
        urllib.request.urlopen(url, context=trusting, timeout=CEILING_SECONDS)
    # Not even who may do everything at the API server.
    keys = cluster.plane.kubeconfig.parent
    trusting.load_cert_chain(keys / "admin.crt", keys / "admin.key")
    with pytest.raises((urllib.error.URLError, ssl.SSLError, ConnectionError)):
        urllib.request.urlopen(url, context=trusting, timeout=CEILING_SECONDS)
