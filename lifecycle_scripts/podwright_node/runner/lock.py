"""One run at a time."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from . import commands
from .failure import Failure

PATIENCE_SECONDS = 300


@contextmanager
def held(path: Path, patience: float = PATIENCE_SECONDS) -> Iterator[None]:
    """Hold the lock in that file while the steps run.

    Commands of this run inherit it. A run that was killed leaves commands behind that still copy or mount something;
    this one begins when the last of them is gone.

    Raises:
        Failure: another run still holds the lock after `patience` seconds.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        end = time.monotonic() + patience
        while not _taken(file.fileno()):
            if time.monotonic() > end:
                raise Failure(
                    f"another run, or a command that it left behind, still holds {path} after {patience:.0f} s",
                    f"`fuser -v {path}` on the node tells which",
                )
            time.sleep(0.05)
        commands.INHERITED.append(file.fileno())
        try:
            yield
        finally:
            commands.INHERITED.remove(file.fileno())


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
