"""Pyrefly has nothing to say."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_types() -> None:
    command = [Path(sys.executable).with_name("pyrefly"), "check", "--python-interpreter-path", sys.executable]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
