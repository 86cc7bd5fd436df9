"""PyTorch, the agent of HyperPod's training operator, and Ray for the containers of real nodes: a virtual environment.

It is optional, and installed in the user's cache next to the control plane. An environment is complete if it has the
file of its requirements, which is written last.
"""

import importlib.util
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ...config.errors import CommandError
from ...operations.output.console import write_note
from .cache import Cache, State

NAME: Final = "pytorch"
INSTALL: Final = "podwright sandbox kubernetes install --pytorch"
"""The command that installs it."""
GIGABYTES: Final = 4.1
"""Size of the installed environment."""
PINS: Final = Path(__file__).with_name("pytorch_requirements.txt")

_DOWNLOADED_GIGABYTES: Final = 2.6
_WRITTEN: Final = "requirements.txt"
_SYSTEM: Final = "linux"
_FIX: Final = "see that pip reaches a package index and the disk has space"


@dataclass(frozen=True, slots=True)
class PyTorch:
    """The environment on this machine."""

    folder: Path

    @classmethod
    def of_user(cls) -> "PyTorch":
        """The environment of the user who runs this, for the version of the running Python."""
        return cls(Cache.of_user().root.with_name(f"training-{sys.implementation.cache_tag}"))

    @property
    def programs(self) -> Path:
        """The folder of `python`, `torchrun`, `hyperpodrun` and `ray`."""
        return self.folder / "bin"

    @property
    def python_home(self) -> Path:
        """The folder of the Python that the installed environment is based on."""
        return (self.programs / "python").resolve().parent.parent

    @property
    def version(self) -> str:
        """The pinned version of PyTorch."""
        return dict(line.split("==") for line in _pins(PINS))["torch"]

    @property
    def state(self) -> State:
        """State of the installation."""
        if not self.folder.exists():
            return State.MISSING
        if not (self.folder / _WRITTEN).exists():
            return State.HALF_BUILT
        is_current = _pins(self.folder / _WRITTEN) == _pins(PINS) and (self.programs / "python").exists()
        return State.INSTALLED if is_current else State.OUTDATED

    def install(self, cache: Cache) -> None:
        """Install missing packages, with progress on stderr. A failed or interrupted installation leaves no files.

        Args:
            cache: Cache of the control plane, whose lock this holds.

        Raises:
            CommandError: This machine has no package index, too little space, or another system than Linux.
        """
        require_linux()
        if self.state is State.INSTALLED:
            write_note(f"{NAME} {self.version} is installed")
            return
        with cache.locked():
            self._require_space()
            write_note(f"{NAME} {self.version}: installing {GIGABYTES} GB, which takes minutes")
            try:
                self._write()
            except BaseException:
                shutil.rmtree(self.folder, ignore_errors=True)
                raise

    def _write(self) -> None:
        """Write the environment, or update one with other requirements."""
        is_whole = self.state is State.OUTDATED and (self.programs / "python").exists()
        (self.folder / _WRITTEN).unlink(missing_ok=True)
        if not is_whole:
            _run([sys.executable, "-m", "venv", "--without-pip", "--clear", str(self.folder)], "create its folder")
        python = str(self.programs / "python")
        pip = [sys.executable, "-m", "pip", f"--python={python}", "install"]
        if importlib.util.find_spec("pip") is None:
            # uv creates environments without pip.
            _run([python, "-I", "-m", "ensurepip"], "install pip", f"install pip for {sys.executable}")
            pip = [python, "-m", "pip", "install"]
        options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-compile"]
        _run([*pip, *options, f"--requirement={PINS}"], "install PyTorch")
        # Nodes mount it read-only. Without byte code each process would compile PyTorch again.
        compiling = [python, "-I", "-m", "compileall", "-q", "-j", "0", str(self.folder / "lib")]
        _run(compiling, "compile PyTorch")
        shutil.copyfile(PINS, self.folder / _WRITTEN)

    def _require_space(self) -> None:
        """Raise CommandError if the disk of the environment or of pip's temporary files is too small."""
        installed, temporary = self.folder.parent, Path(tempfile.gettempdir())
        needs = {installed: GIGABYTES, temporary: _DOWNLOADED_GIGABYTES}
        if installed.stat().st_dev == temporary.stat().st_dev:
            needs = {installed: sum(needs.values())}
        for folder, needed in needs.items():
            free = shutil.disk_usage(folder).free / 1e9
            if free < needed:
                raise CommandError(
                    f"{folder} has {free:.1f} GB left, and PyTorch takes up to {needed:.1f} GB there",
                    "free some, or point XDG_CACHE_HOME and TMPDIR to larger disks",
                )

    def remove(self) -> bool:
        """Delete the environment. Returns False if it did not exist."""
        exists = self.folder.exists()
        shutil.rmtree(self.folder, ignore_errors=not exists)
        return exists


def require_linux() -> None:
    """Raise CommandError on another system than Linux."""
    if sys.platform != _SYSTEM:
        raise CommandError("PyTorch is for real nodes, which need Linux", "leave --pytorch out", 2)


def _pins(file: Path) -> list[str]:
    """Return the requirements of a file without its comments."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def _run(command: list[str], action: str, fix: str = _FIX) -> None:
    """Run a program of the installation at low priority. Raises CommandError with the last line of its error."""
    low_priority = ["nice", "-n", "10"] if shutil.which("nice") else []
    result = subprocess.run([*low_priority, *command], capture_output=True, text=True)
    if result.returncode:
        lines = (result.stderr or result.stdout).strip().splitlines() or ["it said nothing"]
        raise CommandError(f"podwright could not {action}: {lines[-1]}", f"{fix}, then `{INSTALL}` again")
