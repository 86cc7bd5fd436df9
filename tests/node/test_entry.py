"""The scripts that HyperPod starts, tested in their own language."""

import subprocess
from pathlib import Path

from needs import needs_programs


@needs_programs("bats", package="bats")
def test_bats() -> None:
    result = subprocess.run(["bats", Path(__file__).parent / "entry.bats"], capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "1..7" in result.stdout
