"""How many nodes of a group the benchmarks have had replaced: a count that all nodes share.

Thresholds that are wrong make every node fail, and each replacement fails again. So a node asks for a place before it
has itself replaced, and there are only so many within some days. The count belongs to one version of the thresholds,
because a new version deserves a new trial. It is an object of S3 that nodes write on the condition that nobody wrote it
since they read it; two nodes never get the same place.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from ..runner import deadline
from ..runner.failure import Failure
from ..runner.object_store import NEW, Changed, Store
from ..runner.retry import pauses

ATTEMPTS = 20


@dataclass(frozen=True)
class ReplacementGrant:
    """The answer to a node that asked."""

    granted: bool
    reason: str


def claim(
    store: Store, *, group: str, thresholds: str, instance_id: str, most: int, window_days: int
) -> ReplacementGrant:
    """Ask for a place among the `most` replacements of a group within that many days. Who has one keeps it.

    Raises:
        Failure: the count is out of reach, or damaged.
    """
    name = f"replacements/{group}/{re.sub('[^A-Za-z0-9._-]', '-', thresholds) or 'none'}.json"
    pause = pauses()
    for _ in range(ATTEMPTS):
        entry = store.read(name)
        now = datetime.now(timezone.utc)
        claims = _recent(entry.value if entry else {}, now - timedelta(days=window_days), f"{store.uri}/{name}")
        if any(item["instance_id"] == instance_id for item in claims):
            return ReplacementGrant(True, "counted before")
        if len(claims) >= most:
            return ReplacementGrant(
                False, f"{len(claims)} of at most {most} nodes were replaced within {window_days} days"
            )
        claims.append({"instance_id": instance_id, "time": now.isoformat(timespec="seconds")})
        try:
            store.write(name, {"version": 1, "claims": claims}, over=entry.tag if entry else NEW)
        except Changed:
            deadline.pause(next(pause))
            continue
        return ReplacementGrant(True, f"replacement {len(claims)} of at most {most} within {window_days} days")
    raise Failure(f"{store.uri}/{name} was written by others {ATTEMPTS} times in a row", "look who writes there")


def _recent(value: dict[str, Any], since: datetime, uri: str) -> list[dict[str, str]]:
    try:
        claims = [{"instance_id": item["instance_id"], "time": item["time"]} for item in value.get("claims", [])]
        return [item for item in claims if datetime.fromisoformat(item["time"]) > since]
    except (KeyError, TypeError, ValueError) as error:
        raise Failure(f"{uri} is not a count of replacements ({error!r})", "delete it; nodes begin anew") from error
