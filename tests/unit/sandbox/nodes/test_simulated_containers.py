"""Which containers of a real node are simulated, what their program does, and when the sandbox ends a container."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from podwright.sandbox.hyperpod.pod_ends import EXIT_CODE, RUNS_FOR
from podwright.sandbox.hyperpod.real_pods import RealPods, exit_code
from podwright.sandbox.hyperpod.repair import FAULT_KINDS, xid_fault
from podwright.sandbox.nodes import containers, simulated
from podwright.sandbox.nodes.containers import ENTRY, GATES, SIMULATED, program_of, simulate, why_simulated
from podwright.sandbox.nodes.running import RunningContainer
from podwright.sandbox.protocol.clock import now
from waiting import until

NODE, POD = "hyperpod-i-0123456789abcdef0", "train-worker-0"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The root of a container, with a link that leads into what the node shares with its containers."""
    (tmp_path / "root/podwright").mkdir(parents=True)
    (tmp_path / "root/podwright/busybox").touch()
    (tmp_path / "root/bin").symlink_to("usr/bin")
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared/train.py").touch()
    return tmp_path / "root"


def container(root: Path, *arguments: str, pod: str = POD, folder: str = "/") -> dict[str, Any]:
    """The configuration of a container, which has this machine's programs and a volume at /opt/train."""
    mounts = [
        {"destination": "/usr", "type": "bind", "source": "/usr"},
        {"destination": "/opt/train", "type": "bind", "source": str(root.parent / "shared")},
        {"destination": "/dev/shm", "type": "tmpfs", "source": "shm"},
    ]
    return {
        "annotations": {"io.kubernetes.cri.sandbox-name": pod, "io.kubernetes.cri.container-name": "main"},
        "process": {"args": [*arguments], "cwd": folder, "env": ["PATH=/usr/bin:/bin"]},
        "mounts": mounts,
    }


@pytest.mark.parametrize(
    "arguments",
    [
        ["env", "train.py-is-not-a-file"],
        ["/usr/bin/env", "true"],
        # A link of this machine into /usr.
        ["/bin/sh", "-c", "python train.py"],
        ["sh", "/opt/train/train.py"],
        ["sh", "--script=absent.py"],
        # Files that a program writes or names, and commands in a shell's own words.
        ["touch", "/tmp/absent.py"],
        ["find", "/usr", "-name", "absent.py"],
        ["sh", "-ec", "absent.sh"],
        ["/podwright/busybox", "sleep", "1"],
        [*ENTRY, "script", "start", "env"],
    ],
    ids=" ".join,
)
def test_a_container_with_its_program_runs(root: Path, arguments: list[str]) -> None:
    assert why_simulated(container(root, *arguments), root) == ""


@pytest.mark.parametrize(
    ("link", "target", "runs"),
    [
        # An absolute target is a path of the container, not of this machine.
        ("current.py", "/opt/train/train.py", True),
        ("current.py", "/opt/train/absent.py", False),
        ("current.py", "{shared}/train.py", False),
        ("current.py", "../train/./train.py", True),
        ("current.py", "../../../../../opt/train/train.py", True),
        ("current.py", "current.py", False),
        # A link between folders, as a mounted ConfigMap has one.
        ("current.py", "..data/train.py", True),
        ("current.py", "/run/secrets/train.py", False),
    ],
)
def test_links_are_followed_in_the_container(root: Path, link: str, target: str, *, runs: bool) -> None:
    shared = root.parent / "shared"
    (shared / "..version").mkdir()
    (shared / "..version/train.py").touch()
    (shared / "..data").symlink_to("/opt/train/..version")
    (shared / link).symlink_to(target.format(shared=shared))
    assert (why_simulated(container(root, "sh", link, folder="/opt/train"), root) == "") == runs
    assert (why_simulated(container(root, f"/opt/train/{link}"), root) == "") == runs


def test_a_script_is_looked_up_from_the_working_directory(root: Path) -> None:
    assert why_simulated(container(root, "sh", "train.py", folder="/opt/train"), root) == ""
    assert why_simulated(container(root, "sh", "train.py"), root) != ""


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["absent-launcher", "--steps", "3"], "this machine has no program absent-launcher, "),
        (["/opt/train/absent"], "this machine has no program /opt/train/absent, "),
        (["sh", "train.py", "--config", "8b.yaml"], "this machine has no file train.py in /, "),
        (["sh", "--config=8b.py", "train.py"], "this machine has no file train.py in /, "),
        (["sh", "/dev/shm/absent.sh"], "this machine has no file /dev/shm/absent.sh in /, "),
        ([*ENTRY, "script", "start"], "it has no command, "),
        ([*ENTRY, "script", "start", "absent-launcher"], "this machine has no program absent-launcher, "),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_a_container_without_its_program_is_simulated(root: Path, arguments: list[str], reason: str) -> None:
    assert why_simulated(container(root, *arguments), root) == f"{reason}and the sandbox uses no images"


def test_kuberays_shells_need_ray(root: Path) -> None:
    shell = container(root, "/bin/sh", "-c", "ulimit -n 65536; ray start --head")
    shell["process"]["env"].append("RAY_memory_monitor_refresh_ms=0")
    assert why_simulated(shell, root) == "", "a variable of somebody's own"
    shell["process"]["env"].append("FQ_RAY_IP=head")
    assert why_simulated(shell, root) == "this machine has no program ray, and the sandbox uses no images"
    (root / "podwright/ray").touch()
    shell["process"]["env"][0] += ":/podwright"
    assert why_simulated(shell, root) == ""


@pytest.mark.parametrize("gate", GATES)
def test_what_a_gate_measures_is_simulated(root: Path, gate: str) -> None:
    assert why_simulated(container(root, "env", pod=f"{gate}0123-x"), root).startswith("it proves GPUs")
    assert why_simulated(container(root, "env", pod=f"my-{gate}0123"), root) == ""


def test_the_container_that_holds_a_pods_network_runs(root: Path) -> None:
    pause = container(root, "/pause")
    del pause["annotations"]["io.kubernetes.cri.container-name"]
    assert why_simulated(pause, root) == ""


def test_a_bundle_is_changed_before_runc_creates_it(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = root.parent
    file = bundle / "config.json"
    file.write_text(json.dumps(container(root, "absent-launcher") | {"root": {"path": "root"}}))
    monkeypatch.setattr(sys, "argv", ["containers.py", "--root", "/run", "create", "--bundle", str(bundle), "id"])
    containers.main()
    changed = json.loads(file.read_text())
    *python, program, reason = changed["process"]["args"]
    assert (Path(python[0]).is_symlink(), program) == (False, SIMULATED)
    assert reason.startswith("this machine has no program absent-launcher")
    assert changed["mounts"][-1]["destination"] == SIMULATED
    before = file.read_text()
    file.write_text(json.dumps(container(root, "env") | {"root": {"path": "root"}}))
    containers.main()
    assert program_of(json.loads(file.read_text())) == ["env"]
    assert file.read_text() != before


@pytest.fixture
def process() -> Iterator[subprocess.Popen[str]]:
    """A simulated container, without the container."""
    started = container(Path("/"), "train.py")
    simulate(started, "it is a test")
    command = [Path(simulated.__file__) if word == SIMULATED else word for word in started["process"]["args"]]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "simulated by the sandbox: it is a test\n"
        yield process
        process.kill()


def test_a_simulated_container_prints_and_ends_as_it_is_told(
    process: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(containers, "SIMULATED", simulated.__file__)
    running = RunningContainer([process.pid])
    assert running.simulated == process.pid
    running.write("first line\nsecond line\n")
    running.end(3)
    assert process.stdout
    assert process.stdout.read() == "first line\nsecond line\n"
    assert process.wait() == 3
    # It ended meanwhile.
    running.write("too late")


def test_a_container_that_does_not_listen_yet_gets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(containers, "SIMULATED", simulated.__file__)
    command = [sys.executable, "-c", "import time; time.sleep(600)", simulated.__file__]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as process:
        try:
            # The kernel shows a command line some time after the program has started.
            until(lambda: RunningContainer([process.pid]).simulated)
            assert RunningContainer([process.pid]).write("lost") == 0
        finally:
            process.kill()


def test_a_container_that_hangs_blocks_nobody(process: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(containers, "SIMULATED", simulated.__file__)
    running, log = RunningContainer([process.pid]), "\N{SNOWMAN}\n" * 50_000
    process.send_signal(signal.SIGSTOP)
    printed = running.write(log)
    assert 0 < printed < len(log)
    assert running.write(log) == 0
    process.send_signal(signal.SIGCONT)
    assert process.stdout
    assert process.stdout.read(printed) == log[:printed]
    assert running.write("end\n") == 4
    running.end(4)
    assert process.stdout.read() == "end\n"


def test_a_simulated_container_that_is_stopped_fails_as_programs_do(process: subprocess.Popen[str]) -> None:
    process.terminate()
    assert process.wait() == 143


def test_a_container_whose_program_runs_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as process:
        assert RunningContainer([process.pid]).simulated is None
        RunningContainer([process.pid]).end(0)
        assert process.wait() == -9


def pod(annotations: dict[str, str] | None = None, *names: str, seconds: float = 60) -> dict[str, Any]:
    """A pod whose containers have run for so many seconds."""
    started = now() - timedelta(seconds=seconds)
    statuses = [
        {
            "name": name,
            "containerID": f"containerd://{name}",
            "state": {"running": {"startedAt": started.strftime("%Y-%m-%dT%H:%M:%SZ")}},
        }
        for name in names or ("main",)
    ]
    return {
        "metadata": {"name": POD, "labels": {"app.kubernetes.io/name": "train"}, "annotations": annotations or {}},
        "spec": {"nodeName": NODE, "containers": [{"name": name} for name in names or ("main",)]},
        "status": {"phase": "Running", "containerStatuses": statuses},
    }


@pytest.mark.parametrize(
    ("annotations", "code"),
    [
        ({}, None),
        ({EXIT_CODE: "1"}, None),
        ({RUNS_FOR: "30s"}, 0),
        ({RUNS_FOR: "30s", EXIT_CODE: "7"}, 7),
        ({RUNS_FOR: "0.5s"}, 0),
        ({RUNS_FOR: "1m30s"}, None),
        ({RUNS_FOR: "1h"}, None),
        ({RUNS_FOR: "500ms"}, 0),
        ({RUNS_FOR: "90000ms"}, None),
        ({RUNS_FOR: "2m500ms"}, None),
        ({RUNS_FOR: "0.5m29s250ms"}, 0),
        ({RUNS_FOR: "30"}, None),
        ({RUNS_FOR: "30sx"}, None),
        ({RUNS_FOR: "soon"}, None),
    ],
    ids=str,
)
def test_a_container_ends_by_its_pods_annotations(annotations: dict[str, str], code: int | None) -> None:
    item = pod(annotations)
    assert exit_code(item, item["status"]["containerStatuses"][0]) == code


def test_the_submitter_of_a_ray_job_ends_alone() -> None:
    item = pod({RUNS_FOR: "2s"}, "ray-head", "ray-job-submitter")
    assert [exit_code(item, status) for status in item["status"]["containerStatuses"]] == [None, 0]


class Logs:
    """Real nodes without pods, and what their system logs have."""

    running: list[str] = []

    def __init__(self, *lines: str) -> None:
        self.lines = lines

    def new_messages(self) -> Iterator[tuple[str, str]]:
        yield from ((NODE, line) for line in self.lines)

    def container(self, node: str, identifier: str) -> RunningContainer:
        raise AssertionError("no pod runs")


class SlowContainer:
    """A simulated container whose program listens late, and reads its log in parts."""

    simulated = 1

    def __init__(self, *takes: int) -> None:
        self.takes, self.messages = list(takes), list[str | int]()

    def write(self, text: str) -> int:
        count = min(self.takes.pop(0), len(text))
        self.messages.append(text[:count])
        return count

    def end(self, code: int) -> None:
        self.messages.append(code)


class Agents:
    """HyperPod's agents."""

    job_faults: dict[str, str] = {}

    def __init__(self) -> None:
        self.read = list[tuple[str, ...]]()

    def find_xid(self, *values: str) -> None:
        self.read.append(values)


def test_a_slow_container_prints_all_of_its_log_before_it_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    container, agents = SlowContainer(0, 10, 1000, 1000), Agents()
    logs = Logs()
    monkeypatch.setattr(logs, "container", lambda node, identifier: container)
    pods = RealPods(tmp_path / "kubeconfig", "us-east-1", "here", logs)
    monkeypatch.setattr(pods, "_pods", lambda: iter([pod({RUNS_FOR: "1s", EXIT_CODE: "4"})]))
    pods.follow(agents)
    # What goes wrong later changes no log that has begun.
    agents.job_faults = {"train": "fails"}
    for _ in range(3):
        pods.follow(agents)
    log = f"{POD} on {NODE}: nothing ran (sandbox)\n"
    assert container.messages == ["", log[:10], log[10:], 4, "", 4]


def test_a_sidecar_runs_on_and_other_init_containers_succeed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    item = pod(None, "first")
    item["status"]["initContainerStatuses"] = item["status"].pop("containerStatuses")
    item["spec"]["initContainers"] = [{"name": "first"}]
    container, logs = SlowContainer(*[1000] * 4), Logs()
    monkeypatch.setattr(logs, "container", lambda node, identifier: container)
    pods = RealPods(tmp_path / "kubeconfig", "us-east-1", "here", logs)
    monkeypatch.setattr(pods, "_pods", lambda: iter([item]))
    item["spec"]["initContainers"][0]["restartPolicy"] = "Always"
    pods.follow(Agents())
    assert container.messages[1:] == []
    del item["spec"]["initContainers"][0]["restartPolicy"]
    pods.follow(Agents())
    assert container.messages[2:] == [0]


def test_an_agent_reads_the_xids_of_its_nodes_log(tmp_path: Path) -> None:
    agents = Agents()
    logs = Logs(
        "Nov 28 06:00:00 node kernel: NVRM: Xid (PCI:0000:53:00): 74, pid='<unknown>', name=<unknown>",
        "Nov 28 06:00:01 node kernel: eth0: link becomes ready",
    )
    RealPods(tmp_path / "kubeconfig", "us-east-1", "here", logs).follow(agents)
    assert agents.read == [("us-east-1", "here", NODE, "74, pid='<unknown>', name=<unknown>")]
    assert xid_fault(agents.read[0][3]).action == "replace"
    assert xid_fault("73, pid=1").action == "reboot"
    assert xid_fault("31, pid=4711").condition == FAULT_KINDS["xid-application"].condition == ""
