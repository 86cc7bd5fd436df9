"""Copies of the checkout in which modules can be changed without touching the checkout itself."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from timing import ROOT

# What is no code of ours and needs no copy: the environment, and what .ci/run fetched.
_LINKED = (".venv", ".podwright/models", ".podwright/go", ".podwright/charts")
_PACKAGES = Path(".packages/podwright")


class Copy:
    """A copy of what Git tracks and does not ignore, with `podwright` as a package of the copy's rooms."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        for name in filter(None, listed.split("\0")):
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)
        for name in _LINKED:
            if (ROOT / name).exists():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).symlink_to(ROOT / name)
        (folder / _PACKAGES).mkdir(parents=True)
        for link in next((ROOT / ".venv").glob("lib/python*/site-packages/podwright")).iterdir():
            (folder / _PACKAGES / link.name).symlink_to(folder / link.name)
        # Byte code of all that is not changed; a changed module is read from its source.
        self.run([sys.executable, "-m", "compileall", "-q", "."], written=True)

    def run(
        self, command: Sequence[str], *, written: bool = False, timeout: float | None = None, **variables: str
    ) -> int | None:
        """Exit code of a command in the copy, at low priority; None when it took longer than `timeout` seconds."""
        path = os.pathsep.join([str(self.folder / _PACKAGES.parent), str(ROOT / "tests/runner")])
        environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", **variables}
        if written:
            del environment["PYTHONDONTWRITEBYTECODE"]
        process = subprocess.Popen(
            ["nice", "-n", "4", *command],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            return process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None
        finally:
            _end(process)

    def pytest(self, *arguments: str, timeout: float | None = None, **variables: str) -> int | None:
        """The same of a run of pytest, one process."""
        command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
        return self.run(command, timeout=timeout, **variables)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it started and left."""
    try:
        os.killpg(process.pid, 9)
    except ProcessLookupError:
        return
    process.wait()
