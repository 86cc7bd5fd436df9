"""The shared file systems as this node reaches them: one large file, and many small ones."""

from __future__ import annotations

import os
import shutil
import socket
import time
from pathlib import Path
from typing import Callable

from .measured import Measured, Say

BLOCK = 4 << 20
MIB = {"quick": 1024, "thorough": 16384}
FILES = {"quick": 500, "thorough": 5000}
LONGEST_SECONDS = {"quick": 15.0, "thorough": 120.0}
"""After this long writing stops: the rate is known by then, and a slow file system must not hold the boot up."""


def measure(path: Path, name: str, mode: str, say: Say, mib: int | None = None) -> list[Measured]:
    """Write and read back a file in GB/s, and create, look up and remove small files a second, below `path`.

    Every node has a folder of its own there, which goes away at the end. Reads come from the servers as far as the
    kernel drops its cache when it is told to.

    Args:
        path: Where the file system is mounted.
        name: Its kind; results are called after it, such as lustre_write.
        mode: quick or thorough.
        say: Writes into the node's log.
        mib: Size of the file, if another than the mode's.
    """
    say("measuring", program="files", place=str(path))
    folder = path / f".podwright-benchmark-{socket.gethostname()}-{os.getpid()}"
    try:
        folder.mkdir()
        try:
            return [
                *_large(folder / "large", name, mib or MIB[mode], LONGEST_SECONDS[mode]),
                *_small(folder, name, FILES[mode]),
            ]
        finally:
            shutil.rmtree(folder)
    except OSError as error:
        # No failure: a shared file system that is full refuses every node, and replacing them would fix nothing. That
        # this node has it mounted and may write, the step of the mount has checked.
        return [Measured(f"{name}_write", (), None, "GB/s", f"{path}: {error}")]


def _large(path: Path, name: str, mib: int, longest: float) -> list[Measured]:
    """Write and read one large file and give both rates. Stops after `longest` seconds."""
    block = os.urandom(BLOCK)  # compression finds nothing in it
    blocks, began = 0, time.monotonic()
    with path.open("wb", buffering=0) as file:
        while blocks < mib * (1 << 20) // BLOCK and time.monotonic() - began < longest:
            file.write(block)
            blocks += 1
        os.fsync(file.fileno())
        written = time.monotonic() - began
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    wrong, read = 0, 0.0
    with path.open("rb", buffering=0) as file:
        for _ in range(blocks):
            began = time.monotonic()
            got = file.read(BLOCK)
            read += time.monotonic() - began
            wrong += got != block
    size = blocks * BLOCK / 1e9
    note = f"{blocks * BLOCK >> 20} MiB"
    return [
        Measured(f"{name}_write", (), size / written, "GB/s", note),
        Measured(f"{name}_read", (), size / read, "GB/s", note),
        Measured(f"{name}_wrong", (), float(wrong), "errors", f"blocks of {BLOCK >> 20} MiB"),
    ]


def _small(folder: Path, name: str, count: int) -> list[Measured]:
    paths = [folder / f"small-{index}" for index in range(count)]

    def rate(action: Callable[[Path], object]) -> float:
        began = time.monotonic()
        for path in paths:
            action(path)
        return count / (time.monotonic() - began)

    return [
        Measured(f"{name}_create", (), rate(lambda path: path.open("xb").close()), "files/s"),
        Measured(f"{name}_stat", (), rate(lambda path: path.stat()), "files/s"),
        Measured(f"{name}_remove", (), rate(lambda path: path.unlink()), "files/s"),
    ]
