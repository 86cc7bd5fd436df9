"""Ports of this machine: those that a process listens on, and one that is free."""

import ipaddress
import random
import socket
import struct
from pathlib import Path

_LISTENS = "0A"
# Below the ports that Linux gives to clients (from 32768) and those of control planes (from 12000), so a port is still
# free when the program that gets it begins to listen.
_PORTS = range(10_000, 12_000)


def free_port() -> int:
    """Return a port of 127.0.0.1 that no process listens on."""
    return next(port for port in random.sample(_PORTS, len(_PORTS)) if _is_free(port))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


def addresses(pid: int) -> set[str]:
    """The addresses of all interfaces that a process listens on."""
    sockets = {
        fields[9]: fields[1].partition(":")[0]
        for table in ("/proc/net/tcp", "/proc/net/tcp6")
        for fields in map(str.split, Path(table).read_text().splitlines()[1:])
        if fields[3] == _LISTENS
    }
    numbers = {
        target.removeprefix("socket:[").removesuffix("]")
        for file in Path(f"/proc/{pid}/fd").iterdir()
        for target in _targets(file)
    }
    return {_address(sockets[number]) for number in numbers & sockets.keys()}


def _targets(file: Path) -> list[str]:
    """What a file descriptor leads to: nothing where it was closed after it was listed."""
    try:
        return [str(file.readlink())]
    except FileNotFoundError:
        return []


def _address(digits: str) -> str:
    """Of the kernel's table, which has words of four bytes in the machine's order."""
    words = [int(digits[start : start + 8], 16) for start in range(0, len(digits), 8)]
    return str(ipaddress.ip_address(b"".join(struct.pack("=I", word) for word in words)))
