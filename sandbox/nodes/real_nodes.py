"""The nodes of one cluster whose kubelets and containers really run on this machine."""

import hashlib
import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from ...config.catalog.instance_types import catalog
from ...operations.programs.process import command_line
from ...planning.node.allocatable import kubelet_allocatable
from ..control_plane.processes import bound_ports
from ..kubernetes.certificates import Authority, Pair
from ..protocol.json_objects import JsonObject
from . import cgroups, kernel, machine
from .cluster_services import NAMES_USER
from .running import RunningContainer
from .settings import Credentials, Files, NodeSettings, Programs

_LOG = logging.getLogger(__name__)
_TYPE: Final = "node.kubernetes.io/instance-type"
_HUGE_PAGES: Final = "hugepages-2Mi"
_PROCESS: Final = "process"
_SETTINGS: Final = "settings.json"
_STOP_SECONDS: Final = 10.0
_PAUSE_SECONDS: Final = 10.0
"""Time before a node that ended is started again."""
FULL_DISK: Final = "full-disk"
NODE_FAULTS: Final = {
    "hangs": "its processes freeze until it is rebooted or replaced",
    "no-network": "it reaches neither the API server nor other nodes, and its processes run on",
    FULL_DISK: "one percent of its disk is free, so its kubelet evicts its pods",
}
"""What can happen to a real node besides what HyperPod's agent reads in its log."""
_FREE_SHARE: Final = 0.01
"""Share of a full disk that is free. The kubelet evicts pods below 2 % (settings.py)."""
_NETWORKS: Final = range(1, 255)
_LAST_LINES: Final = 3


class Api(Protocol):
    """The control plane that nodes join."""

    @property
    def api_port(self) -> int:
        """The loopback port of its API server."""
        ...

    @property
    def users(self) -> Authority:
        """The authority of the API server's certificate and those of its users."""
        ...

    @property
    def kubelets(self) -> Authority:
        """The authority of the certificates of kubelets' servers, and of the API server as their client."""
        ...


@dataclass(slots=True)
class _Machine:
    """A node that was started."""

    settings: NodeSettings
    process: subprocess.Popen[bytes]
    started: float
    read: int
    """Offset of the first unread byte of its system log."""

    @property
    def runs(self) -> bool:
        return self.process.poll() is None

    @property
    def root(self) -> Path:
        """The node's root, as its init process sees it, which is the first child of `process`."""
        pid = self.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
        if not children:
            raise ValueError(f"{self.settings.name} has not started yet")
        return Path(f"/proc/{children[0]}/root")


@dataclass
class RealNodes:
    """The real nodes of one cluster."""

    folder: Path
    """The folder of the nodes' disks, settings and logs."""
    api: Api
    programs: Programs
    count: int
    """The most that run at a time."""
    _machines: dict[str, _Machine] = field(default_factory=dict)
    _network: int | None = None

    def __post_init__(self) -> None:
        """Remove what is left of an earlier sandbox that was killed."""
        self.file_systems.mkdir(parents=True, exist_ok=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        for record in self.folder.glob(f"*/{_PROCESS}"):
            _end(int(record.read_text(encoding="ascii")), record.parent)
            record.unlink()
        cgroups.remove(self.prefix_of(self.folder))

    @property
    def file_systems(self) -> Path:
        """The folder of the cluster's file systems, which nodes share and which outlasts them."""
        return self.folder.with_name("file-systems")

    @staticmethod
    def prefix_of(folder: Path) -> str:
        """Return what the names of control groups begin with; nodes of other folders have others."""
        return f"podwright-{hashlib.sha256(str(folder).encode()).hexdigest()[:8]}-"

    @property
    def running(self) -> list[str]:
        """Names of the nodes whose processes run."""
        return [name for name, item in self._machines.items() if item.runs]

    def container(self, node: str, identifier: str) -> RunningContainer:
        """Return a container of a node, by its id."""
        return RunningContainer.find(f"{self.prefix_of(self.folder)}{node}", identifier)

    def disk(self, name: str) -> Path:
        """Return the folder at which a running node's own disk is mounted, as this machine sees it.

        Raises:
            ValueError: The node does not run, or its files are on this machine's disk.
        """
        item = self._machine(name)
        try:
            folder = item.root / "var/lib"
            device = folder.stat().st_dev
            backing = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/loop/backing_file")
            file = Path(backing.read_text().strip()) if backing.exists() else None
        except (FileNotFoundError, ProcessLookupError) as error:
            raise ValueError(f"{name} does not run") from error
        # Before its first process has entered the node, its root is this machine's.
        if file != (self.folder / name / machine.DISK).resolve():
            raise ValueError(
                f"{name} uses this machine's disk, which {FULL_DISK} would fill. A node gets a disk of its own if "
                "mke2fs (`apt-get install e2fsprogs`) and a loop device are there when it starts"
            )
        return folder

    def _machine(self, name: str) -> _Machine:
        if name not in self._machines:
            raise ValueError(f"{name} does not run")
        return self._machines[name]

    def break_node(self, name: str, fault: str) -> None:
        """Let a fault happen to a running node. It lasts until a reboot or replacement; a full disk, until replacement.

        Args:
            name: The node's name.
            fault: One of NODE_FAULTS.

        Raises:
            ValueError: The node does not run, or has no disk that can be full.
        """
        item = self._machine(name)
        if fault == FULL_DISK:
            _fill(self.disk(name))
            return
        if fault == "hangs":
            cgroups.stop_processes(item.settings.cgroup)
            return
        assert self._network is not None
        link = ["ip", "link", "set", machine.link_of(item.settings), "down"]
        subprocess.run(["nsenter", f"--net=/proc/self/fd/{self._network}", *link], check=True, pass_fds=[self._network])
        # It relays between the node and the API server.
        item.process.send_signal(signal.SIGSTOP)

    def new_messages(self) -> Iterator[tuple[str, str]]:
        """Yield each line that was written to a node's system log since the last call, with the node's name."""
        for name, item in self._machines.items():
            try:
                with (self.folder / name / machine.MESSAGES).open("rb") as file:
                    # A pod that mounts the log may have truncated it.
                    item.read = min(item.read, file.seek(0, os.SEEK_END))
                    file.seek(item.read)
                    lines = file.read()
            except FileNotFoundError:
                # A pod may delete it, too.
                item.read = 0
                continue
            # A line that is still being written is read the next time.
            complete = lines[: lines.rfind(b"\n") + 1]
            item.read += len(complete)
            yield from ((name, line) for line in complete.decode(errors="replace").splitlines())

    def follow(self, nodes: Mapping[str, JsonObject]) -> None:
        """Stop the nodes that should not run, with the disks of those that are deleted, and start those that should.

        Args:
            nodes: The Node objects of the real nodes, by name. One that is not ready is one whose instance restarts.
        """
        ready = {name for name, node in nodes.items() if _is_ready(node)}
        for name, item in list(self._machines.items()):
            # A reboot may be over before it is seen.
            if name not in ready or item.settings.boot != _boot_of(nodes[name]):
                self._stop(name)
        for folder in self.folder.iterdir():
            if folder.name not in nodes:
                shutil.rmtree(folder)
        for name in nodes.keys() & ready:
            self._start(name, nodes[name])

    def stop(self) -> None:
        """Stop all of them. What their disks hold stays."""
        for name in list(self._machines):
            self._stop(name)
        if self._network is not None:
            os.close(self._network)
            self._network = None

    def _start(self, name: str, node: JsonObject) -> None:
        """Start a node that does not run; one that ended by itself after a pause."""
        former = self._machines.get(name)
        if former and (former.runs or time.monotonic() - former.started < _PAUSE_SECONDS):
            return
        folder = self.folder / name
        (folder / "disk").mkdir(parents=True, exist_ok=True)
        log = folder / "machine.log"
        if former:
            last = log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LAST_LINES:]
            _LOG.warning("the node %s had ended, and is started again: %s", name, " ".join(last))
            self._stop(name)
        if self._network is None:
            self._network = kernel.new_network()
        settings = self.settings(name, node)
        settings.write(folder / _SETTINGS)
        messages = folder / machine.MESSAGES
        messages.parent.mkdir(exist_ok=True)
        messages.touch()
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", machine.__name__, str(folder), str(self._network)],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                pass_fds=[self._network],
                start_new_session=True,
            )
        (folder / _PROCESS).write_text(str(process.pid), encoding="ascii")
        self._machines[name] = _Machine(settings, process, time.monotonic(), messages.stat().st_size)

    def settings(self, name: str, node: JsonObject) -> NodeSettings:
        """What a node is started with, as its instance type has it."""
        row = catalog().get(node["metadata"]["labels"][_TYPE])
        [port] = bound_ports([0])
        taken = {item.settings.pods for item in self._machines.values()}
        pods = next(network for number in _NETWORKS if (network := f"10.244.{number}.0/24") not in taken)
        allocatable, cpus, memory_mib = kubelet_allocatable(row), row.cpus(None), round(row.memory_gib * 1024)
        huge_mib = int(node["status"]["capacity"].get(_HUGE_PAGES, "0Mi").removesuffix("Mi"))
        addresses = {item["type"]: item["address"] for item in node["status"]["addresses"]}
        return NodeSettings(
            name=name,
            address=addresses["InternalIP"],
            pods=pods,
            max_pods=allocatable.pods,
            cpus=cpus,
            threads_per_core=row.threads_per_core,
            memory_kib=memory_mib * 1024,
            huge_pages=huge_mib // 2,
            boot=_boot_of(node),
            reserved_cpu_millis=cpus * 1000 - allocatable.cpu_millis,
            # The kubelet subtracts huge pages itself.
            reserved_memory_mib=memory_mib - allocatable.memory_mib - huge_mib,
            programs=self.programs,
            kubelet_port=port,
            api_port=self.api.api_port,
            file_systems=str(self.file_systems),
            cgroup=f"{self.prefix_of(self.folder)}{name}",
            credentials=self._credentials(name),
        )

    def _credentials(self, name: str) -> Credentials:
        """The files of a node's kubelet."""
        users, servers = self.api.users, self.api.kubelets
        return Credentials(
            server=_files(servers.server("kubelet")),
            kubelet=_files(users.client(f"node-{name}", f"system:node:{name}", ["system:nodes"])),
            kube_proxy=_files(users.client("kube-proxy", "system:kube-proxy")),
            coredns=_files(users.client("coredns", NAMES_USER)),
            api_authority=str(users.file),
            clients_authority=str(servers.file),
        )

    def _stop(self, name: str) -> None:
        """Stop a node, which ends with its standard input."""
        item = self._machines.pop(name)
        assert item.process.stdin is not None
        item.process.stdin.close()
        try:
            item.process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            # Such as one that somebody stopped by a signal. The kernel ends the node with it.
            item.process.kill()
            item.process.wait()
            cgroups.remove(item.settings.cgroup)
        (self.folder / name / _PROCESS).unlink(missing_ok=True)


def _fill(disk: Path) -> None:
    """Reserve a disk's blocks for a file without writing them, so the file of the disk takes no more space."""
    space = os.statvfs(disk)
    size = int((space.f_bavail - space.f_blocks * _FREE_SHARE) * space.f_frsize)
    if size > 0:
        with (disk / FULL_DISK).open("ab") as file:
            os.posix_fallocate(file.fileno(), file.tell(), size)


def _boot_of(node: JsonObject) -> str:
    return node["status"].get("nodeInfo", {}).get("bootID", "")


def _is_ready(node: JsonObject) -> bool:
    return any(item["type"] == "Ready" and item["status"] == "True" for item in node["status"]["conditions"])


def _files(pair: Pair) -> Files:
    return Files(str(pair.certificate), str(pair.key))


def _end(process: int, folder: Path) -> None:
    """Kill a node's process if it is the one of this folder: process ids are given out again."""
    if str(folder).encode() in command_line(process):
        os.kill(process, signal.SIGKILL)
