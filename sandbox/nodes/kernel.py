"""System calls for namespaces that Python 3.11 has no function for. Linux only."""

import ctypes
import os
import signal
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

NEW_MOUNTS: Final = 0x00020000
NEW_CGROUP: Final = 0x02000000
NEW_HOST_NAME: Final = 0x04000000
NEW_IPC: Final = 0x08000000
NEW_PROCESSES: Final = 0x20000000
NEW_NETWORK: Final = 0x40000000
"""Flags of unshare(2), which the kernel calls CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWPID
and CLONE_NEWNET."""

_PARENT_DEATH_SIGNAL: Final = 1
_DETACH: Final = 2
_Made = TypeVar("_Made")


def _call(name: str, *arguments: object) -> None:
    """Call a function of the C library. Raises OSError if it fails."""
    library = ctypes.CDLL(None, use_errno=True)
    if getattr(library, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def unshare(namespaces: int) -> None:
    """Give this thread new namespaces; with NEW_PROCESSES, its next child."""
    _call("unshare", namespaces)


def fork_first_process() -> int:
    """Fork the first process of a new process namespace. Returns its id, and 0 in that process itself."""
    own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    unshare(NEW_PROCESSES)
    process = os.fork()
    if process:
        # Until its next children are of its own namespace again, it can start no thread.
        _call("setns", own, NEW_PROCESSES)
    os.close(own)
    return process


def die_with_parent() -> None:
    """Let the kernel kill this process when its parent ends, however that ends."""
    _call("prctl", _PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)


def change_root(root: str) -> None:
    """Make a mounted folder the root of this mount namespace, and detach everything else."""
    os.chdir(root)
    # The old root is mounted over the new one, and detached from there.
    _call("pivot_root", b".", b".")
    _call("umount2", b".", _DETACH)
    os.chdir("/")


def socket_in(network: int) -> socket.socket:
    """Return a TCP socket of the network namespace of a file descriptor. It works in every thread."""

    def make() -> socket.socket:
        _call("setns", network, NEW_NETWORK)
        return socket.socket()

    return _in_thread(make)


def new_network() -> int:
    """Return the file descriptor of a new network namespace, which lasts as long as a process holds it."""

    def make() -> int:
        unshare(NEW_NETWORK)
        return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)

    return _in_thread(make)


def _in_thread(make: Callable[[], _Made]) -> _Made:
    """Call a function in a thread of its own, whose namespace ends with it."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(make).result()
