"""Starts the programs of tests/node that kill a node's set-up at each of its points, and reads what they saw."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parent


def kill_runs(program: str, folder: Path, task: dict[str, Any]) -> dict[str, Any]:
    """The answer of `program` on `task`, in mounts of its own: exit code, whether undisturbed runs agree, and cases."""
    command = ["unshare", "--mount", *([] if os.getuid() == 0 else ["--user", "--map-root-user"])]
    result = subprocess.run(
        [*command, sys.executable, TESTS / "node" / program, folder],
        input=json.dumps(task),
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        timeout=1500,
    )
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    assert answer["code"] == 0, answer["log"]
    assert answer["same"], "two undisturbed runs differ: nothing could be compared"
    return answer
