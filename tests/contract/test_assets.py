"""An asset's hash depends on what it ships and on nothing else."""

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from podwright.constructs.common.assets import shipped_files, staged

ROOT = Path(__file__).resolve().parents[2]

# Imports every handler with bytecode writing on, and prints the digest of every folder that becomes an asset.
DIGESTS = """
import importlib, json, pathlib, sys
sys.dont_write_bytecode = False
from podwright.operations.programs.node import use_bundled_node
use_bundled_node()
from podwright.constructs.common import assets
room = pathlib.Path(assets.__file__).parents[1]
folders = sorted(path.parent for path in room.glob("*/*/handler*/index.py"))
for folder in folders:
    importlib.import_module(".".join(("podwright.constructs", *folder.relative_to(room).parts, "index")))
folders += [room / "common/handler_runtime", room.parent / "lifecycle_scripts"]
digests = {}
for folder in folders:
    with assets.staged(assets.shipped_files(folder)) as copy:
        digests[folder.relative_to(room.parent).as_posix()] = copy.digest
print(json.dumps({"at": str(room), "digests": digests}))
"""


def digests(cwd: Path, **environment: str) -> tuple[str, dict[str, str]]:
    """Where podwright was imported from, and the digest of each folder."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-P", "-c", DIGESTS]
    result = subprocess.run(command, cwd=cwd, env=clean | environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    actual = json.loads(result.stdout)
    return actual["at"], actual["digests"]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """podwright as pip installs its wheel."""
    tree, target = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("installed")
    for name in ("config", "planning", "constructs", "cdk8s_charts", "stacks", "operations", "sandbox",
                 "lifecycle_scripts", "environments", "bin", "docs"):  # fmt: skip
        shutil.copytree(ROOT / name, tree / name)
    for name in ("pyproject.toml", "cdk.json"):
        shutil.copy(ROOT / name, tree)
    pip = [sys.executable, "-m", "pip", "--quiet"]
    offline = ["--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([*pip, "install", *offline, "--target", target, tree], check=True)
    return target


def test_same_from_checkout_and_wheel_and_after_importing_every_handler(installed: Path, tmp_path: Path) -> None:
    checkout, here = digests(tmp_path)
    wheel, existing = digests(tmp_path, PYTHONPATH=str(installed))
    assert Path(checkout).resolve() == ROOT / "constructs"
    assert Path(wheel).is_relative_to(installed)
    assert list(Path(wheel).rglob("handler/__pycache__")), "the handlers were not imported with bytecode writing on"
    assert here == existing == digests(tmp_path, PYTHONPATH=str(installed))[1]
    assert {"constructs/hyperpod/lifecycle_publication/handler", "lifecycle_scripts"} <= set(here)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a/deep").mkdir(parents=True)
    (tmp_path / "a/run.sh").write_bytes(b"#!/bin/bash\necho\n")
    (tmp_path / "a/deep/index.py").write_bytes(b"print()\n")
    (tmp_path / "a/deep/data.bin").write_bytes(b"\0\r\n")
    return tmp_path / "a"


def digest(folder: Path) -> str:
    with staged(shipped_files(folder)) as copy:
        return copy.digest


def test_what_does_not_ship_changes_nothing(folder: Path) -> None:
    before = digest(folder)
    for path in (".hidden", "deep/.cache/x", "deep/__pycache__/index.pyc", "deep/index.pyc", "tests/a.py", "py.typed"):
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text("x")
    assert digest(folder) == before


def test_umask_times_and_line_endings_change_nothing(folder: Path) -> None:
    before = digest(folder)
    (folder / "run.sh").write_bytes(b"#!/bin/bash\r\necho\r\n")
    (folder / "run.sh").chmod(0o600)
    os.utime(folder / "deep/index.py", (0, 0))
    assert digest(folder) == before


@pytest.mark.parametrize("change", ["content", "name", "binary line ending"])
def test_what_ships_changes_it(folder: Path, change: str) -> None:
    before = digest(folder)
    match change:
        case "content":
            (folder / "run.sh").write_text("#!/bin/bash\n")
        case "name":
            (folder / "run.sh").rename(folder / "go.sh")
        case _:
            (folder / "deep/data.bin").write_bytes(b"\0\n")
    assert digest(folder) != before


def test_the_copy_has_fixed_modes_and_line_endings(folder: Path) -> None:
    (folder / "run.sh").write_bytes(b"#!/bin/bash\r\n")
    (folder / "run.sh").chmod(0o600)
    with staged(shipped_files(folder, at="x")) as copy:
        assert stat.S_IMODE((copy.path / "x/run.sh").stat().st_mode) == 0o755
        assert stat.S_IMODE((copy.path / "x/deep/index.py").stat().st_mode) == 0o644
        assert (copy.path / "x/run.sh").read_bytes() == b"#!/bin/bash\n"
        assert (copy.path / "x/deep/data.bin").read_bytes() == b"\0\r\n"
    assert not copy.path.exists()
