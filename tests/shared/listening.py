"""Where a process listens."""

import ipaddress
import struct
from pathlib import Path

_LISTENS = "0A"


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
