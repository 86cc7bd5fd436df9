"""Whether nodes of the sandbox can be real on a machine, how many, and what is said where they cannot."""

import errno
import os
import shutil
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import ANY, Mock

import pytest

from podwright.operations.aws import sandbox_clusters, sandbox_server
from podwright.operations.aws.account import Account
from podwright.operations.aws.sandbox_server import Running, SandboxError
from podwright.operations.commands.sandbox import _write_nodes
from podwright.planning.helm.operators import NODE_PARTS
from podwright.sandbox import __main__ as server_main
from podwright.sandbox.control_plane.cache import Cache
from podwright.sandbox.control_plane.control_plane import ControlPlane
from podwright.sandbox.control_plane.pins import Pins, minor_of, pins
from podwright.sandbox.eks import control_planes
from podwright.sandbox.eks.control_planes import ControlPlanes, Webhooks
from podwright.sandbox.nodes import cgroups, settings, support
from podwright.sandbox.nodes.support import NodeBudget, Offer, obstacle, offer

AT = ("us-west-2", "eks-1")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    """A machine that has all that real nodes need."""
    cache = Cache(tmp_path / "cache")
    for part in map(pins().part, NODE_PARTS):
        cache.unfinished(part).mkdir(parents=True)
        for name in part.files:
            (cache.unfinished(part) / name).touch()
        cache.finish(part, 1)
    plugins, groups = tmp_path / "plugins", tmp_path / "groups"
    for name in ("cpu", "memory", "pids"):
        (groups / name).mkdir(parents=True)
        (groups / name / "tasks").touch()
    plugins.mkdir()
    (plugins / "ptp").touch()
    monkeypatch.setattr(support, "CNI", str(plugins))
    monkeypatch.setattr(cgroups, "_ROOT", groups)
    monkeypatch.setattr(support, "_PROBE", ["true"])
    monkeypatch.setattr(support.os, "geteuid", lambda: 0)
    monkeypatch.setattr(support.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(support, "_available_bytes", lambda: 64_000_000_000)
    return cache


def test_nodes_are_real_where_everything_is_there(cache: Cache) -> None:
    assert obstacle(pins(), cache) is None
    assert offer(2, pins(), cache) == Offer(2)
    assert offer(0, pins(), cache) == Offer(0, "`--real-nodes` is 0")


def test_only_linux_has_real_nodes(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert offer(2, pins(), cache) == Offer(
        0, "real nodes need Linux", "run the sandbox in a virtual machine with Linux"
    )


def test_namespaces_need_root(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(support.os, "geteuid", lambda: 1000)
    reason = "real nodes need root, for namespaces and control groups"
    assert obstacle(pins(), cache) == (reason, "stop the sandbox, and start it as root")


@pytest.mark.parametrize(("program", "package"), support._PROGRAMS.items())
def test_absent_programs_are_named_by_their_packages(
    cache: Cache, monkeypatch: pytest.MonkeyPatch, program: str, package: str
) -> None:
    monkeypatch.setattr(support.shutil, "which", lambda name: None if name == program else name)
    action = f"`apt-get install {package}`"
    assert obstacle(pins(), cache) == ("real nodes need programs that are not installed", action)


def test_the_plugins_of_the_network_are_a_package(cache: Cache) -> None:
    Path(support.CNI, "ptp").unlink()
    assert "→ `apt-get install containernetworking-plugins`" in str(obstacle(pins(), cache))


def test_the_kubelet_is_a_part_of_the_control_plane(cache: Cache) -> None:
    cache.folder(pins().part("kubelet")).rename(cache.root / "other")
    action = "`podwright sandbox kubernetes install`"
    assert obstacle(pins(), cache) == ("real nodes need kubelet", action)


@pytest.mark.parametrize(("minor", "joins"), [("1.33", False), ("1.35", True)])
def test_a_kubelet_joins_no_older_cluster(cache: Cache, minor: str, *, joins: bool) -> None:
    chosen: Pins = pins().of_minor(minor)
    version = pins().part("kubelet").version
    reason = f"the kubelet {version} does not join Kubernetes {minor}"
    action = f"create the cluster with Kubernetes {minor_of(version)}"
    assert obstacle(chosen, cache) == (None if joins else (reason, action))


def test_a_container_with_root_may_have_no_namespaces(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(support, "_PROBE", ["sh", "-c", "echo unshare failed: Operation not permitted >&2; exit 1"])
    reason = (
        "real nodes need permission for Linux namespaces, mounts and device files: "
        "unshare failed: Operation not permitted"
    )
    assert offer(2, pins(), cache) == Offer(0, reason, "start a container of Docker with --privileged")


def test_a_machine_without_control_groups(cache: Cache) -> None:
    shutil.rmtree(cgroups._ROOT)
    cgroups._ROOT.mkdir()
    reason = f"real nodes need control groups, and {cgroups._ROOT} has none that can be written"
    assert obstacle(pins(), cache) == (reason, "mount them; start a container of Docker with --privileged")


def test_control_groups_of_version_1_need_their_controllers(cache: Cache) -> None:
    shutil.rmtree(cgroups._ROOT / "memory")
    reason = f"real nodes need the control groups memory in {cgroups._ROOT}"
    assert obstacle(pins(), cache) == (reason, "mount memory there")


@pytest.fixture
def version_2(cache: Cache) -> Path:
    """A machine with control groups of version 2."""
    root = cgroups._ROOT
    for folder in root.iterdir():
        shutil.rmtree(folder)
    (root / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    (root / "cgroup.subtree_control").write_text("cpu pids\n")
    return root


def test_control_groups_of_version_2_hand_on_their_controllers(
    cache: Cache, version_2: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert obstacle(pins(), cache) is None
    assert (version_2 / "cgroup.subtree_control").read_text() == "+memory"
    (version_2 / "cgroup.subtree_control").write_text("cpu pids\n")

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))

    # As the kernel does where the group has processes, such as that of a container.
    monkeypatch.setattr(Path, "write_text", refuse)
    assert obstacle(pins(), cache) == (
        f"real nodes need the control groups' controller memory, and {version_2} does not hand it on: "
        "Device or resource busy",
        "start a container of Docker with --cgroupns=host",
    )


def test_overlays_are_not_needed() -> None:
    assert 'snapshotter = "native"' in settings._containerd()


LIMITS = [
    # Without a limit, version 1 has a number.
    (1, {"": ("9223372036854771712", 5)}, None),
    (1, {"": ("3000", 500), "docker/a": ("2000", 1000)}, 1100),
    (1, {"": ("1500", 500), "docker/a": ("2000", 100)}, 1100),
    # Docker mounts the group of the container only, whose path is another one.
    (1, {"": ("2000", 1000)}, 1100),
    (2, {"": ("max", 5)}, None),
    (2, {"docker": ("max", 5), "docker/a": ("2000", 1000)}, 1100),
]


@pytest.mark.parametrize(("version", "groups", "expected"), LIMITS)
def test_memory_is_that_of_the_groups_around_the_sandbox(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    version: int,
    groups: dict[str, tuple[str, int]],
    expected: int | None,
) -> None:
    limit, usage, cached = cgroups._MEMORY_FILES[version == 2]
    if version == 2:
        (tmp_path / "cgroup.controllers").write_text("memory\n")
    for name, (stated, used) in groups.items():
        group = tmp_path / ("" if version == 2 else "memory") / name
        group.mkdir(parents=True, exist_ok=True)
        (group / limit).write_text(f"{stated}\n")
        (group / usage).write_text(f"{used}\n")
        (group / "memory.stat").write_text(f"anon 7\n{cached} 100\n")
    own = tmp_path / "own"
    own.write_text("0::/docker/a\n" if version == 2 else "5:cpu,cpuacct:/x\n4:memory:/docker/a\n0::/y\n")
    monkeypatch.setattr(cgroups, "_ROOT", tmp_path)
    monkeypatch.setattr(cgroups, "_OWN", own)
    assert cgroups.memory_left() == expected


def test_all_clusters_of_a_server_share_its_memory(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(support, "_available_bytes", lambda: 3_000_000_000)
    budget = NodeBudget(2)
    # Nodes that have not started yet take no memory, so all of it is free at each question.
    assert [budget.take().count for _ in range(3)] == [2, 1, 0]
    budget.give_back(2)
    assert budget.take().count == 2
    budget.give_back(2)
    # Other programs have taken memory since.
    monkeypatch.setattr(support, "_available_bytes", lambda: 1_700_000_000)
    granted = budget.take()
    assert granted.count == 1
    assert granted.why_not_more.startswith("1.7 GB of memory are left for this and other clusters, and a real node ")


@pytest.fixture
def planes(cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ControlPlanes:
    """Control planes of a cluster that gets two real nodes, of the two that this machine can have."""
    monkeypatch.setattr(support, "_available_bytes", lambda: 2_300_000_000)
    monkeypatch.setattr(control_planes, "obstacle", lambda *_: "")
    monkeypatch.setattr(control_planes, "cluster_objects", list)
    monkeypatch.setattr(control_planes.Cache, "of_user", lambda: cache)
    planes = ControlPlanes(tmp_path, "111122223333", Webhooks("", tmp_path, ""), "real", real_nodes=NodeBudget(2))
    planes.planes[AT] = cast(ControlPlane, SimpleNamespace(pins=pins(), kubeconfig=None, stop=lambda: None))
    return planes


@pytest.mark.parametrize("failing", ["RealNodes", "_Followers.of"])
def test_nodes_of_a_cluster_that_cannot_be_followed_are_free_again(
    planes: ControlPlanes, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no threads are left")

    monkeypatch.setattr(control_planes, "RealNodes", lambda *_: None)
    monkeypatch.setattr(f"podwright.sandbox.eks.control_planes.{failing}", fail)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no threads are left"):
            planes.follow(cast(Any, None))
    assert planes.real_nodes.take().count == 2


def test_nodes_of_a_deleted_cluster_are_free_again_even_if_they_do_not_stop(
    planes: ControlPlanes, monkeypatch: pytest.MonkeyPatch
) -> None:
    granted = planes.real_nodes.take()

    def close() -> None:
        raise TimeoutError("a node does not stop")

    planes._followers[AT] = cast(Any, SimpleNamespace(granted=granted, close=close))
    assert planes.real_nodes.take().count == 0
    with pytest.raises(TimeoutError):
        planes.delete(*AT)
    assert planes.real_nodes.take().count == 2


def test_a_cluster_is_not_deleted_while_it_gets_its_nodes(
    planes: ControlPlanes, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked, granted = list[bool](), list[Offer]()

    def real_nodes(*_: object) -> None:
        other = threading.Thread(target=lambda: locked.append(not planes._following.acquire(blocking=False)))
        other.start()
        other.join()

    def followers(*arguments: Any) -> Any:
        granted.extend(item for item in arguments if isinstance(item, Offer))
        return Mock(granted=granted[0], real_nodes=None, real_pods=None)

    monkeypatch.setattr(control_planes, "RealNodes", real_nodes)
    monkeypatch.setattr("podwright.sandbox.eks.control_planes._Followers.of", followers)
    planes.planes[AT] = Mock(pins=pins(), restart_ended=list)
    planes.follow(cast(Any, None))
    assert (locked, len(granted)) == ([True], 1)
    for end in (lambda: planes.delete(*AT), planes.stop):
        planes._following = Mock()
        end()
        planes._following.acquire.assert_called_once_with(timeout=ANY)
        planes._following.release.assert_called_once_with()
    assert planes.real_nodes.take().count == 2
    planes.follow(cast(Any, None))
    assert planes._followers == {}, "a deleted cluster gets no nodes"


def test_the_nodes_of_a_cluster_are_those_that_it_got(planes: ControlPlanes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_planes, "RealNodes", lambda *_: None)

    def followers(*arguments: Any) -> Any:
        granted = next(item for item in arguments if isinstance(item, Offer))
        return SimpleNamespace(granted=granted)

    monkeypatch.setattr("podwright.sandbox.eks.control_planes._Followers.of", followers)
    monkeypatch.setattr(support, "_available_bytes", lambda: 1_700_000_000)
    assert planes.granted_nodes(*AT).count == 1, "before its nodes start"
    with pytest.raises(AttributeError):
        # These followers do nothing.
        planes.follow(cast(Any, None))
    # Since then memory is free.
    monkeypatch.setattr(support, "_available_bytes", lambda: 64_000_000_000)
    granted = planes.granted_nodes(*AT)
    assert granted.count == 1
    assert granted.why_not_more.startswith("1.7 GB of memory are left")
    assert planes.granted_nodes("us-west-2", "eks-2").count == 2


def test_a_server_that_starts_without_free_memory_offers_its_nodes_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requested = []

    def sandbox(*arguments: Any) -> None:
        requested.append(arguments[-1])
        raise SystemExit

    monkeypatch.setattr(server_main, "offer", lambda *_: Offer(0, "0.1 GB of memory are left"))
    monkeypatch.setattr(server_main, "Sandbox", sandbox)
    listener = SimpleNamespace(getsockname=lambda: ("127.0.0.1", 2))
    monkeypatch.setattr(server_main, "socket", SimpleNamespace(socket=lambda fileno: listener))
    monkeypatch.setattr(sys, "argv", ["sandbox", "--real-nodes", "2", "1", str(tmp_path), "3", "4"])
    with pytest.raises(SystemExit):
        server_main.main()
    assert requested == [2]


def test_memory_is_measured_within_the_limit_of_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "memory_left", lambda: 5)
    assert support._available_bytes() == 5
    monkeypatch.setattr(cgroups, "memory_left", lambda: None)
    assert support._available_bytes() > 5


@pytest.mark.parametrize(("available", "count"), [(900_000_000, 0), (1_700_000_000, 1), (2_300_000_000, 2)])
def test_memory_limits_the_number_of_nodes(
    cache: Cache, monkeypatch: pytest.MonkeyPatch, available: int, count: int
) -> None:
    monkeypatch.setattr(support, "_available_bytes", lambda: available)
    assert offer(2, pins(), cache).count == count
    assert [bool(text) for text in offer(2, pins(), cache)[1:]] == [count < 2] * 2


def test_the_status_says_which_nodes_are_real(capsys: pytest.CaptureFixture[str]) -> None:
    _write_nodes(Running(1, 2, 3, "log", "real", real_nodes=2))
    printed = " ".join(capsys.readouterr().out.split())
    assert "The first 2 nodes of each cluster are real" in printed
    assert "All other nodes are simulated: their pods run nothing." in printed
    _write_nodes(Running(1, 2, 3, "log", "real", why_simulated="real nodes need Linux", more_real="run it on Linux"))
    assert capsys.readouterr().out.splitlines() == [
        "All nodes are simulated, since real nodes need Linux: their pods run nothing.",
        "    → run it on Linux",
        "The sandbox checks this again for each new cluster; `podwright status` shows a cluster's result.",
    ]


@pytest.mark.parametrize(
    ("count", "reason", "words"),
    [
        (2, "", "the first 2 nodes are real, and no container starts on the others"),
        (1, "memory is short", "the first node is real, and no container starts on the others, since memory is short"),
        (0, "it is no Linux", "no container starts: all nodes are simulated, since it is no Linux"),
    ],
)
def test_a_deployment_says_in_a_line_which_nodes_are_real(
    monkeypatch: pytest.MonkeyPatch, count: int, reason: str, words: str
) -> None:
    answer = {"eks-1": {"kubernetes": "real", "missing": [], "real_nodes": count, "why_simulated": reason}}
    monkeypatch.setattr(sandbox_clusters, "call", lambda *_: answer)
    assert sandbox_clusters.real_nodes("eks-1", Account("111122223333", "us-west-2", "http://localhost:1", {})) == words


@pytest.mark.parametrize(("text", "count"), [("", 2), ("0", 0), ("5", 5)])
def test_a_variable_sets_the_number(monkeypatch: pytest.MonkeyPatch, text: str, count: int) -> None:
    monkeypatch.setenv("PODWRIGHT_SANDBOX_REAL_NODES", text)
    assert sandbox_server._real_nodes() == count


@pytest.mark.parametrize("text", ["two", "-1", "1.5"])
def test_a_variable_that_is_no_number(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("PODWRIGHT_SANDBOX_REAL_NODES", text)
    with pytest.raises(SandboxError, match=f"PODWRIGHT_SANDBOX_REAL_NODES is '{text}'; allowed: a whole number from 0"):
        sandbox_server._real_nodes()
