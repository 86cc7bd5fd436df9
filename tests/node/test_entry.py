"""The scripts that HyperPod starts, tested in their own language."""

import shutil
import subprocess
from pathlib import Path

import pytest


def test_bats() -> None:
    bats = shutil.which("bats")
    if bats is None:
        pytest.skip("needs bats")
    result = subprocess.run([bats, Path(__file__).parent / "entry.bats"], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "1..7" in result.stdout
