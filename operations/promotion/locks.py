"""One promotion of a project at a time, and none beside the commands of one that was killed.

The first lock is held by the promotion itself, the second also by the commands that it runs: they inherit it, and the
kernel frees it when the last of them has ended, however that came.
"""

import fcntl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ...config.errors import CommandError

_LOOK_SECONDS = 0.5


@contextmanager
def only_promotion(folder: Path, waiting: Callable[[], None]) -> Iterator[int]:
    """Hold both locks. Yields the file descriptor that commands inherit; `waiting` is called once before a wait.

    Raises:
        CommandError: another promotion of this project is at work.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "promotion.lock").open("a") as own, (folder / "commands.lock").open("a") as shared:
        if not _taken(own.fileno()):
            hint = "it goes on by itself; run this again when it has ended, to see what it did or to go on from there"
            raise CommandError("another `podwright promote` is at work on this project", hint)
        told = False
        while not _taken(shared.fileno()):
            if not told:
                waiting()
            told = True
            time.sleep(_LOOK_SECONDS)
        yield shared.fileno()


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
