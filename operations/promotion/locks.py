"""One promotion of a project at a time, and none beside the commands of one that was killed.

The first lock is held by the promotion itself, the second also by the commands that it runs: they inherit it, and the
kernel frees it when the last of them has ended, however that came.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout, lock_descriptor

from ...config.errors import CommandError

_POLL_SECONDS = 0.5


@contextmanager
def only_promotion(folder: Path, waiting: Callable[[], None]) -> Iterator[int]:
    """Hold both locks. Yields the file descriptor that commands inherit; `waiting` is called once before a wait.

    Raises:
        CommandError: another promotion of this project is at work.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        own = FileLock(folder / "promotion.lock").acquire(blocking=False)
    except Timeout:
        hint = "it continues by itself; run this again when it has ended, to see what it did or to resume from there"
        raise CommandError("another `podwright promote` is at work on this project", hint) from None
    with own, (folder / "commands.lock").open("a") as shared:
        # Only closed, never unlocked: a FileLock would free it under commands that still hold it.
        if not lock_descriptor(shared.fileno(), blocking=False):
            waiting()
            lock_descriptor(shared.fileno(), poll_interval=_POLL_SECONDS)
        yield shared.fileno()
