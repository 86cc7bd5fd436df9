"""Starts the programs of tests/node that kill a node's set-up at each of its points, and reads what they saw."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

NODE = Path(__file__).parent


def kill_runs(program: str, folder: Path, task: dict[str, Any]) -> dict[str, Any]:
    """The answer of `program`, in tests/node, on `task`, in mounts of its own: whether runs agree, and cases."""
    command = ["unshare", "--mount", *([] if os.getuid() == 0 else ["--user", "--map-root-user"])]
    result = subprocess.run(
        [*command, sys.executable, NODE / program, folder],
        input=json.dumps(task),
        env={**os.environ, "PYTHONPATH": f"{NODE}:{NODE.parent / 'shared'}"},
        capture_output=True,
        text=True,
        timeout=1500,
    )
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    assert answer["code"] == 0, answer["log"]
    assert answer["unstable"] == [], "two undisturbed runs differ: nothing could be compared"
    return answer
