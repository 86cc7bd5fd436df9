"""What another podwright makes of an environment: where it is, its templates, and which differences matter."""

import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ...config.errors import CommandError
from ...planning.delivery.effects import Effect
from ..cdk.app import synthesize
from ..effects.changes import ResourceChange
from ..effects.templates import synthesized

NOTICED: Final = (
    Effect.INTERRUPTS,
    Effect.REMOVES_NODES,
    Effect.ROLLS_NODES,
    Effect.REFUSED,
    Effect.REPLACES,
    Effect.DELETES_DATA,
)
"""Effects that somebody has to know of before a new podwright is deployed."""
_ROOT: Final = Path(__file__).resolve().parents[2]
# No synthesis reads these, and they are half of a checkout.
_LEFT_OUT: Final = (":(exclude)tests", ":(exclude)docs")


def is_noticed(change: ResourceChange) -> bool:
    """Whether somebody has to know of a change: by its effect, or because what holds state gets another id."""
    return change.effect in NOTICED or (change.stateful and change.action in ("delete", "replace"))


def interpreter(old: str, folder: Path) -> tuple[str, str | None]:
    """The Python that has the other podwright, and what it has to look up packages in first.

    Raises:
        CommandError: `old` is neither a Python, nor a virtual environment, nor a commit.
    """
    specified = Path(old)
    python = specified / "bin/python" if specified.is_dir() else specified
    if python.is_file():
        return str(python.absolute()), None
    if not (_ROOT / ".git").exists():
        raise CommandError(
            f"--from {old} is not a Python", "give the Python of a virtual environment that has another podwright", 2
        )
    archive = folder.with_suffix(".tar")
    message = subprocess.run(
        ["git", "-C", str(_ROOT), "archive", f"--output={archive}", old, ".", *_LEFT_OUT],
        capture_output=True,
        text=True,
    )
    if message.returncode:
        raise CommandError(
            f"--from {old} is not a Python, and git says: {message.stderr.strip()}", "give a commit or a tag", 2
        )
    with tarfile.open(archive) as content:
        content.extractall(folder / "podwright", filter="data")
    return sys.executable, str(folder)


def synthesis(
    project: Path, python: str, path: str | None, context: Mapping[str, str], out: Path, name: str
) -> dict[str, Mapping[str, Any]]:
    """The templates that a podwright makes of an environment. Raises CommandError with its last lines if it cannot."""
    problem = synthesize(project, context, out, python=python, variables={"PYTHONPATH": path} if path else None)
    if problem is not None:
        raise CommandError(
            f"{path or python} does not synthesize {name}:\n{problem}", "fix the file, or compare versions nearer"
        )
    return {key: dict(template) for key, template in synthesized(out, name).items()}
