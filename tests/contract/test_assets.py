"""An asset's hash depends on what it ships and on nothing else. test_packaging.py compares checkout and wheel."""

import os
import stat
from pathlib import Path

import pytest

from podwright.constructs.common.assets import shipped_files, staged


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
