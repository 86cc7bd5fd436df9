"""bin/deploy, bin/test, bin/bench and bin/docs hand on what they were given, from wherever they are called."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose programs write their folder and arguments, one a line."""
    root = tmp_path / "a checkout"
    shutil.copytree(ROOT / "bin", root / "bin")
    (root / ".venv/bin").mkdir(parents=True)
    for program in ("bin/setup", ".venv/bin/podwright", ".venv/bin/python"):
        (root / program).write_text(f'#!/bin/sh\nprintf "%s\\n" {program} "$PWD" "$@"\n')
        (root / program).chmod(0o755)
    (tmp_path / "mine.yaml").touch()
    return root


def call(checkout: Path, launcher: str, *arguments: str) -> list[list[str]]:
    """What bin/setup got, and the program and arguments that followed it, which ran in the checkout."""
    command = [checkout / "bin" / launcher, *arguments]
    result = subprocess.run(command, cwd=checkout.parent, capture_output=True, text=True, check=True)
    lines = result.stdout.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(".venv/"))
    assert lines[start + 1] == str(checkout)
    return [lines[2:start], [lines[start], *lines[start + 2 :]]]


@pytest.mark.parametrize(
    ("arguments", "handed_on"),
    [
        ([], ["sandbox"]),
        (["--yes"], ["sandbox", "--yes"]),
        (["prod", "--dry-run"], ["prod", "--dry-run"]),
        (["mine.yaml", "-v"], ["{here}/mine.yaml", "-v"]),
        (["missing.yaml"], ["missing.yaml"]),
    ],
)
def test_deploy(checkout: Path, arguments: list[str], handed_on: list[str]) -> None:
    expected = [argument.format(here=checkout.parent) for argument in handed_on]
    assert call(checkout, "deploy", *arguments) == [["sandbox"], [".venv/bin/podwright", "deploy", *expected]]


def test_test(checkout: Path) -> None:
    setup, ran = call(checkout, "test", "-k", "two words", "--update-snapshots")
    assert setup == ["test"]
    assert ran == [".venv/bin/python", "-P", "tests/runner", "-k", "two words", "--update-snapshots"]


def test_bench(checkout: Path) -> None:
    assert call(checkout, "bench", "--help") == [["test"], [".venv/bin/python", "-P", "tests/bench", "--help"]]


def test_docs(checkout: Path) -> None:
    """Its own pin is missing here, so pip comes first."""
    _, ran = call(checkout, "docs", "--serve")
    assert ran[:4] == [".venv/bin/python", "-m", "pip", "install"]
    assert ran[-3:] == ["-P", "docs/site", "--serve"]


def test_a_failed_setup_stops_the_launcher(checkout: Path) -> None:
    (checkout / "bin/setup").write_text("#!/bin/sh\nexit 1\n")
    for launcher in ("deploy", "test", "bench", "docs"):
        result = subprocess.run([checkout / "bin" / launcher], capture_output=True, text=True)
        assert (result.returncode, result.stdout) == (1, "")
