"""What is left of real nodes when their processes are killed, and what the next start removes. No API server runs."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from control_plane_parts import needs_parts
from needs import needs
from podwright.operations.programs.process import command_lines
from podwright.planning.helm.operators import NODE_PARTS
from podwright.sandbox.control_plane.cache import Cache
from podwright.sandbox.control_plane.pins import pins
from podwright.sandbox.kubernetes.certificates import Authority
from podwright.sandbox.nodes import cgroups, real_nodes
from podwright.sandbox.nodes.real_nodes import RealNodes
from podwright.sandbox.nodes.support import obstacle, programs
from podwright.sandbox.protocol.json_objects import JsonObject
from waiting import becomes, until

OBSTACLE = obstacle(pins(), Cache.of_user())
pytestmark = [needs_parts(*NODE_PARTS), needs(OBSTACLE is None, str(OBSTACLE))]

NODE = "hyperpod-i-0123456789abcdef0"
PROGRAMS = programs(pins(), Cache.of_user())
OWNER = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_killed_nodes import nodes_of, object_of
nodes = nodes_of(Path(sys.argv[1]))
while True:
    nodes.follow({name: object_of(name) for name in sys.argv[3:]})
    time.sleep(0.1)
"""


class Api:
    """A control plane that does not run."""

    api_port = 9

    def __init__(self, folder: Path) -> None:
        self.users = self.kubelets = Authority.open(folder / "keys")


def nodes_of(folder: Path) -> RealNodes:
    """The nodes of a sandbox, whose state is in a folder."""
    return RealNodes(folder / "nodes", Api(folder), PROGRAMS, 2)


def object_of(name: str) -> JsonObject:
    """The Node object of a ready node."""
    return {
        "metadata": {"name": name, "labels": {"node.kubernetes.io/instance-type": "ml.m5.4xlarge"}},
        "status": {
            "capacity": {},
            "conditions": [{"type": "Ready", "status": "True"}],
            "addresses": [{"type": "InternalIP", "address": "10.16.0.10"}, {"type": "Hostname", "address": name}],
        },
    }


class Sandbox:
    """A process that owns nodes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        command = [sys.executable, "-c", OWNER, str(folder), str(Path(__file__).parent), NODE]
        variables = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "HTTPS_PROXY": "http://127.0.0.1:9"}
        self.process = subprocess.Popen(command, env=variables)
        until(lambda: len(self.processes("containerd")) == len(self.processes(PROGRAMS.kubelet)) == 1)

    @property
    def machines(self) -> list[int]:
        """The processes of its nodes that have the nodes' folders in their command lines."""
        folder = str(self.folder / "nodes" / NODE).encode()
        return sorted(pid for pid, words in command_lines().items() if folder in words)

    def processes(self, program: str) -> list[int]:
        """The processes of its nodes that run a program."""
        spaces = {space for pid in self.machines if (space := _space(pid)) != _space(os.getpid())}
        named = [pid for pid, words in command_lines().items() if words[:1] == [program.encode()]]
        return [pid for pid in named if _space(pid) in spaces]

    @property
    def groups(self) -> list[str]:
        """The control groups of its nodes."""
        return cgroups.names(RealNodes.prefix_of(self.folder / "nodes"))

    def kill(self) -> None:
        """Kill it, as nobody can prevent."""
        self.process.kill()
        self.process.wait()


def _space(pid: int) -> str:
    """The process namespace of a process; empty once it has ended."""
    try:
        return str(Path(f"/proc/{pid}/ns/pid").readlink())
    except OSError:
        return ""


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[Sandbox]:
    """A sandbox with one node."""
    made = Sandbox(tmp_path)
    try:
        yield made
    finally:
        made.kill()
        becomes([], lambda: made.machines)
        nodes_of(tmp_path)


def host(folder: Path) -> tuple[list[str], list[str], list[str]]:
    """The mounts and loop devices below a folder, and the network interfaces of this machine."""
    mounts = [line for line in Path("/proc/self/mounts").read_text().splitlines() if str(folder) in line]
    backing = [file.read_text() for file in Path("/sys/block").glob("loop*/loop/backing_file")]
    loops = [file for file in backing if file.startswith(str(folder))]
    return mounts, loops, sorted(file.name for file in Path("/sys/class/net").iterdir())


def test_nothing_is_left_when_the_sandbox_is_killed(sandbox: Sandbox) -> None:
    mounts, loops, interfaces = host(sandbox.folder)
    assert (len(sandbox.machines), len(sandbox.groups), len(mounts), len(loops)) == (2, 1, 0, 1)
    programs = sandbox.processes("containerd") + sandbox.processes(PROGRAMS.kubelet)
    sandbox.kill()
    becomes([], lambda: sandbox.machines)
    assert [pid for pid in programs if _space(pid)] == []
    becomes([], lambda: sandbox.groups)
    # The kernel unmounts the node's disk once its last process has ended.
    becomes(([], [], interfaces), lambda: host(sandbox.folder))


def test_nodes_ask_no_proxy(sandbox: Sandbox) -> None:
    for program in ("containerd", PROGRAMS.kubelet):
        [pid] = sandbox.processes(program)
        assert b"HTTPS_PROXY" not in Path(f"/proc/{pid}/environ").read_bytes()


@pytest.mark.parametrize("index", [0, 1], ids=["outside", "first"])
def test_the_next_start_removes_what_two_kills_leave(sandbox: Sandbox, index: int) -> None:
    victim = sandbox.machines[index]
    sandbox.process.send_signal(signal.SIGSTOP)
    os.kill(victim, signal.SIGKILL)
    sandbox.kill()
    becomes([], lambda: sandbox.machines)
    fresh = nodes_of(sandbox.folder)
    assert sandbox.groups == []
    fresh.follow({NODE: object_of(NODE)})
    until(lambda: len(sandbox.processes(PROGRAMS.kubelet)) == 1)
    assert fresh.running == [NODE]
    fresh.stop()
    assert (sandbox.machines, sandbox.groups) == ([], [])


def test_a_node_that_hangs_is_ended_by_the_next_start(sandbox: Sandbox) -> None:
    for pid in sandbox.machines:
        os.kill(pid, signal.SIGSTOP)
    sandbox.kill()
    assert len(sandbox.machines) == 2
    nodes_of(sandbox.folder)
    becomes([], lambda: sandbox.machines)
    becomes([], lambda: sandbox.groups)


def test_a_node_whose_port_is_busy_starts_at_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    nodes, choose = nodes_of(tmp_path), real_nodes.bound_ports
    monkeypatch.setattr(real_nodes, "_PAUSE_SECONDS", 0.0)
    with socket.create_server(("127.0.0.1", 0)) as occupied:
        port = occupied.getsockname()[1]
        monkeypatch.setattr(real_nodes, "bound_ports", lambda _: [port])
        try:
            nodes.follow({NODE: object_of(NODE)})
            becomes([], lambda: nodes.running)
            monkeypatch.setattr(real_nodes, "bound_ports", choose)
            nodes.follow({NODE: object_of(NODE)})
            assert f"started again: the node cannot start: [Errno 98] 127.0.0.1:{port}: Address" in caplog.text
            becomes("running", lambda: _answers(tmp_path))
        finally:
            nodes.stop()


def _answers(folder: Path) -> str:
    """Whether the relay to a node's kubelet listens."""
    port = json.loads((folder / "nodes" / NODE / "settings.json").read_text())["kubelet_port"]
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except ConnectionRefusedError:
        return "refused"
    return "running"


def test_two_sandboxes_have_nodes_of_the_same_name_and_address(sandbox: Sandbox, tmp_path: Path) -> None:
    folder = tmp_path / "second"
    folder.mkdir()
    second = Sandbox(folder)
    try:
        assert (len(sandbox.groups), len(second.groups)) == (1, 1)
        assert sandbox.groups != second.groups
        second.kill()
        becomes(([], []), lambda: (second.machines, second.groups))
        assert len(sandbox.processes(PROGRAMS.kubelet)) == 1
    finally:
        second.kill()
