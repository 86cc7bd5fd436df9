"""The processor seconds of a command include what processes use that nobody waits for."""

import json
import subprocess
import sys
from pathlib import Path
from runpy import run_path

import pytest

from needs import needs

TREE = Path(__file__).resolve().parents[1] / "bench" / "tree.py"
pytestmark = needs(sys.platform == "linux", "Linux, whose prctl adopts orphans")
USE = "import time\nwhile time.process_time() < 0.4: pass\n"
"""A program that ends after it has used 0.4 s of a processor."""


def cost(tmp_path: Path, program: str) -> dict[str, float]:
    result = tmp_path / "cost.json"
    subprocess.run([sys.executable, "-P", TREE, result, sys.executable, "-c", program])
    return json.loads(result.read_text())


@pytest.mark.parametrize("waits", ["subprocess.run", "subprocess.Popen"])
def test_a_child_counts_whether_or_not_its_parent_waits(tmp_path: Path, waits: str) -> None:
    measured = cost(tmp_path, f"import subprocess, sys, os\n{waits}([sys.executable, '-c', {USE!r}])\nos._exit(0)")
    assert measured["code"] == 0
    assert measured["processor"] >= 0.4


def test_the_exit_code_is_that_of_the_command(tmp_path: Path) -> None:
    assert cost(tmp_path, "raise SystemExit(3)")["code"] == 3


def test_a_running_process_is_counted_with_its_children() -> None:
    child = USE + "print(flush=True); input()"
    program = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {child!r}])"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        used = run_path(str(TREE))["seconds_of"](process.pid)
        process.communicate(b"\n")
    assert used >= 0.4
