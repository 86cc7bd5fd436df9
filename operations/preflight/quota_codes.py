"""Codes of quotas by name, remembered from earlier runs in `.podwright/quota-codes.json`.

SageMaker lists its quotas a hundred at a time and has thousands, which takes longer than preflight may. A code leads to
its quota at once. A code is of no account or region, and never trusted: the quota behind it has to bear the name.
"""

import json
import os
from pathlib import Path
from typing import Final

Codes = dict[str, dict[str, str]]
"""Service code → name of a quota → its code."""
_FILE: Final = Path(".podwright") / "quota-codes.json"


def read_codes(project: Path) -> Codes:
    """What earlier runs in the project have seen; nothing when there was none, or the file is damaged."""
    try:
        return json.loads((project / _FILE).read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        # It is read anew in seconds, and nothing else depends on it.
        return {}


def write_codes(project: Path, codes: Codes) -> None:
    """Keep what this run has seen, all of it or nothing."""
    file = project / _FILE
    file.parent.mkdir(exist_ok=True)
    # Of checks that came too late, threads may still be adding to it.
    text = json.dumps({service: dict(names) for service, names in list(codes.items())}, indent=1, sort_keys=True)
    part = file.with_suffix(f".{os.getpid()}")
    part.write_text(text + "\n", encoding="utf-8")
    part.replace(file)
