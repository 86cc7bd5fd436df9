"""One node: `python -m podwright.sandbox.nodes.machine FOLDER NETWORK`, with its settings in FOLDER.

This process stays outside. Its child is the first process of the node, and starts the node's programs again when they
end. The node ends with its first process, that with this one, and this one with its standard input: however the
sandbox ends, nothing of the node runs on.
"""

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from . import cgroups, kernel
from .hardware import write_hardware
from .images import Image, Registry
from .relays import relay
from .settings import (
    CONTAINERD,
    KUBERNETES,
    PAUSE_IMAGE,
    REGISTRY,
    NodeSettings,
    commands,
    python_folders,
    search_path,
    shared_paths,
    write_files,
)

MESSAGES: Final = "disk/log/messages"
"""A node's system log, in its folder. Pods find it in the node's /var/log."""
DISK: Final = "disk.img"
"""A node's disk, in its folder."""
DISK_BYTES: Final = 100 * 2**30
"""Size of a node's disk."""
_LAYOUT: Final = Path(__file__).with_name("layout.sh")
_NAMESPACES: Final = kernel.NEW_MOUNTS | kernel.NEW_CGROUP | kernel.NEW_HOST_NAME | kernel.NEW_IPC | kernel.NEW_NETWORK
_LOOPBACK: Final = "127.0.0.1"
_BACKLOG: Final = 128
_PAUSE_SECONDS: Final = 0.5
_START_SECONDS: Final = 60.0
_VARIABLES: Final = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"}


def main() -> int:
    """Run a node until standard input ends, or its first process does."""
    folder, network = Path(sys.argv[1]), int(sys.argv[2])
    node = NodeSettings.read(folder / "settings.json")
    hardware = (node.cpus, node.threads_per_core, node.memory_kib, node.huge_pages)
    write_hardware(folder / "hardware", *hardware, node.boot)
    write_files(node, folder / "disk")
    (folder / "root").mkdir(exist_ok=True)
    _make_disk(folder / DISK)
    cgroups.create(node.cgroup)
    try:
        ready, answering = os.pipe()
        first = kernel.fork_first_process()
        if not first:
            os.close(ready)
            _run_node(node, folder, network, answering)
        os.close(answering)
        try:
            if os.read(ready, 1):
                _serve(node, first)
        except OSError as error:
            print(f"the node cannot start: {error}", file=sys.stderr, flush=True)
            return 1
        finally:
            with suppress(ProcessLookupError):
                os.kill(first, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(first, 0)
    finally:
        cgroups.remove(node.cgroup)
    return 0


def _make_disk(file: Path) -> None:
    """Make the node's disk, which takes the space of its content only. Without mke2fs, the node has none."""
    if file.exists() or shutil.which("mke2fs") is None:
        return
    unfinished = file.with_suffix(".unfinished")
    unfinished.touch()
    os.truncate(unfinished, DISK_BYTES)
    # An inode for each 64 KiB instead of 16, and a small journal, so that it takes a third of a second.
    options = ["-t", "ext4", "-m", "0", "-i", "65536", "-J", "size=16", "-E", "nodiscard,lazy_itable_init=1"]
    result = subprocess.run(["mke2fs", "-q", "-F", *options, str(unfinished)], stdin=subprocess.DEVNULL)
    if result.returncode:
        unfinished.unlink()
        return
    unfinished.rename(file)


def _serve(node: NodeSettings, first: int) -> None:
    """Connect the node with the API server, and serve its images, until it or standard input ends."""
    inside = os.open(f"/proc/{first}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    image = Image.of_machine(search_path(), python_folders())
    Registry(_listening(kernel.socket_in(inside), REGISTRY), image, lambda name: _name_image(first, name))
    from_node = _listening(kernel.socket_in(inside), KUBERNETES)
    to_node = _listening(socket.socket(), (_LOOPBACK, node.kubelet_port))

    async def run() -> None:
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        for descriptor in (sys.stdin.fileno(), os.pidfd_open(first)):
            loop.add_reader(descriptor, ended.set)
        tasks = [
            asyncio.create_task(relay(from_node, (_LOOPBACK, node.api_port), socket.socket)),
            asyncio.create_task(relay(to_node, (node.address, node.kubelet_port), lambda: kernel.socket_in(inside))),
        ]
        await ended.wait()
        for task in tasks:
            task.cancel()

    asyncio.run(run())


def _name_image(first: int, name: str) -> None:
    """Give the node's image another name: containerd checks digests, so an image by digest cannot be pulled.

    The kubelet has it when it tries again.
    """
    address = f"--address=/proc/{first}/root{CONTAINERD}"
    command = ["ctr", address, "--namespace=k8s.io", "images", "tag", "--force", PAUSE_IMAGE, name]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        print(f"{name} cannot be named: {result.stderr.strip()}", file=sys.stderr, flush=True)


def _listening(new: socket.socket, address: tuple[str, int]) -> socket.socket:
    """Listen at an address. Raises OSError with the address, such as for a port that another program has."""
    new.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        new.bind(address)
    except OSError as error:
        raise OSError(error.errno, f"{address[0]}:{address[1]}: {error.strerror}") from error
    new.listen(_BACKLOG)
    return new


def _run_node(node: NodeSettings, folder: Path, network: int, answering: int) -> None:
    """Be the first process of the node."""
    kernel.die_with_parent()
    try:
        cgroups.enter(node.cgroup)
        kernel.unshare(_NAMESPACES)
        _lay_out(node, folder, network)
        os.write(answering, b"r")
        os.close(answering)
        os.close(network)
        _run_programs(node)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"the node cannot start: {error}", file=sys.stderr, flush=True)
    os._exit(1)


def link_of(node: NodeSettings) -> str:
    """Return the name of the end of a node's network card that is outside of the node."""
    return f"n{node.kubelet_port}"


def _lay_out(node: NodeSettings, folder: Path, network: int) -> None:
    """Mount the node's root and enter it."""
    root = folder / "root"
    folders = [str(root), str(folder / "disk"), str(folder / "hardware"), node.file_systems]
    arguments = [*folders, node.name, node.address, node.pods, link_of(node), str(network)]
    command = ["bash", str(_LAYOUT), *arguments, *shared_paths(), *node.programs.folders]
    subprocess.run(command, check=True, pass_fds=[network], stdin=subprocess.DEVNULL)
    kernel.change_root(str(root))


def _run_programs(node: NodeSettings) -> None:
    """Start the node's programs, and each again whenever it ends; reap what the node's processes leave behind."""
    os.environ.clear()
    os.environ.update(_VARIABLES)
    running: dict[int, str] = {}
    while True:
        for name, command in commands(node).items():
            if name not in running.values():
                running[_start(name, command)] = name
            if name == "containerd":
                _wait_for(Path(CONTAINERD))
        ended, _ = os.wait()
        if running.pop(ended, None):
            time.sleep(_PAUSE_SECONDS)


def _start(name: str, command: list[str]) -> int:
    """Start a program with a log of its own. Returns its process id."""
    log = (os.POSIX_SPAWN_OPEN, 1, f"/var/log/{name}.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    actions = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0), log, (os.POSIX_SPAWN_DUP2, 1, 2)]
    return os.posix_spawnp(command[0], command, os.environ, file_actions=actions, setsid=True)


def _wait_for(address: Path) -> None:
    """Wait until a program listens on a socket. Raises OSError if it never does."""
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect(str(address))
                return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(main())
