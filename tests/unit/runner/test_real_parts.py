"""Tests of real parts run with `bin/test --all`, or where their path is named."""

import re
from pathlib import Path

import pytest

import controller
from changes import Change
from choice import Chooser, table
from coverage_map import CoverageMap
from real_parts import REAL_PARTS, needs_all

ROOT = Path(__file__).resolve().parents[3]
NEEDS_A_PART = re.compile(r"^pytestmark = (?!needs\(sys\.platform)", re.MULTILINE)
"""A test file whose every test is skipped without a part, except one that needs Linux."""


def test_every_listed_path_exists() -> None:
    assert [path for path in REAL_PARTS if not (ROOT / path).exists()] == []


def test_files_that_are_skipped_without_a_part_are_listed() -> None:
    files = {file: file.relative_to(ROOT).as_posix() for file in sorted((ROOT / "tests").rglob("test_*.py"))}
    skipped = [path for file, path in files.items() if NEEDS_A_PART.search(file.read_text(encoding="utf-8"))]
    assert "tests/node/software/test_software.py" in skipped
    # An NVIDIA GPU is a mark of its own, and upstream's cases have their own command.
    own = ("tests/gpu/", "tests/conformance/")
    assert [path for path in skipped if not needs_all(path) and not path.startswith(own)] == []


@pytest.mark.parametrize(
    ("named", "selected", "left_out"),
    [
        ("tests", "tests/node/slurm/test_slurm_files.py", "tests/node/slurm/test_slurm_cluster.py"),
        ("tests/node/slurm", "tests/node/slurm/test_slurm_files.py", "tests/node/slurm/test_slurm_cluster.py"),
        ("tests/node/slurm/test_slurm_cluster.py::test_a", "tests/node/slurm/test_slurm_cluster.py", None),
        ("tests/browser", "tests/browser/test_site_in_chromium.py", None),
        ("tests/kubernetes/engines", "tests/kubernetes/engines/test_real_kueue.py", None),
    ],
)
def test_a_named_path_runs(
    named: str, selected: str, left_out: str | None, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(request.config, "args", [named])
    monkeypatch.setattr(request.config.option, "all", False)
    files = controller.test_files(request.config, ROOT)
    assert selected in files
    assert left_out not in files
    monkeypatch.setattr(request.config.option, "all", True)
    assert left_out is None or left_out in controller.test_files(request.config, ROOT)


def test_a_changed_test_of_a_real_part_is_named(tmp_path: Path) -> None:
    path = "tests/node/test_kernels.py"
    changes = [Change(path, "old = 1\n", "new = 1\n")]
    recorded = CoverageMap(tmp_path / "none.sqlite")
    left_out = Chooser(ROOT, recorded, {}).choose(changes)
    assert path not in left_out.files
    # Whoever changes a source changes what the type checker judges.
    types = "tests/contract/code/test_types.py"
    assert f"Run with --all only: {types}, {path}\n  → bin/test --all --changed" in table(left_out, "main", 1, recorded)
    assert path in Chooser(ROOT, recorded, {}, real_parts=True).choose(changes).files
