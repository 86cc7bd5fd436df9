"""The record of what teardowns left behind, so that it can be named and removed later."""

import json
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ...config.errors import CommandError
from .plan import Kept, Teardown


def record_file(project: Path, environment: str) -> Path:
    """Where the record of an environment lies."""
    return project / ".podwright" / "teardown" / f"{environment}.json"


def left_behind(project: Path, environment: str, account: str, region: str) -> list[Kept]:
    """What earlier teardowns of this environment left there. Raises CommandError for a record that cannot be read."""
    file = record_file(project, environment)
    if not file.is_file():
        return []
    try:
        record: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        if (record["account"], record["region"]) != (account, region):
            # The environment was in another account then; what is there belongs to that one.
            return []
        return [Kept(**item) for item in record["left"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CommandError(
            f"{file} cannot be read: {error}", "move it away; it only says what earlier teardowns left"
        ) from None


def write_record(project: Path, plan: Teardown, left: list[Kept], deleted: list[str]) -> Path:
    """Write what is left now: what was before and is now, without what was deleted. Returns the file."""
    file = record_file(project, plan.environment)
    before = left_behind(project, plan.environment, plan.account, plan.region)
    # By name: what is left twice stands once.
    items = {item.name: item for item in (*before, *left) if item.name not in deleted}
    file.parent.mkdir(parents=True, exist_ok=True)
    record = {
        "schema": 1,
        "environment": plan.environment,
        "account": plan.account,
        "region": plan.region,
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "left": [asdict(item) for item in items.values()],
    }
    file.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return file
