"""The record of what was changed through the server: a line of JSON for each step, appended and never rewritten."""

import getpass
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

FILE: Final = ".podwright/audit/mcp.jsonl"
"""Where a project keeps it."""


def record(project: Path, **facts: Any) -> None:
    """Append a line, on the disk before this returns: what is not recorded is not done. Raises OSError."""
    file = project / FILE
    file.parent.mkdir(parents=True, exist_ok=True)
    line = {"time": datetime.now(UTC).isoformat(timespec="seconds"), "user": getpass.getuser()} | facts
    # One write of one line: several servers of a project append to the same file.
    handle = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(handle, (json.dumps(line, ensure_ascii=False) + "\n").encode())
        os.fsync(handle)
    finally:
        os.close(handle)
