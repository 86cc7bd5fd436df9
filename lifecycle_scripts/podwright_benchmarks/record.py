"""The record of one run, of a node or of a job over several."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from .judge import VERSION, verdict


class Started:
    """A run that has begun."""

    def __init__(self) -> None:
        """It begins now."""
        self._moment, self._clock = datetime.now(timezone.utc), time.monotonic()

    def record(
        self, facts: Mapping[str, Any], instance_type: str, mode: str, results: list[dict[str, Any]]
    ) -> dict[str, Any]:
        """The record that docs/benchmark.schema.json describes, but group and instance id: the caller knows them."""
        return {
            "version": 1,
            "cluster": facts["cluster"]["name"],
            "group": "",
            "instance_id": None,
            "instance_type": instance_type,
            "started": self._moment.isoformat(timespec="milliseconds"),
            "seconds": round(time.monotonic() - self._clock, 3),
            "mode": mode,
            "thresholds_version": VERSION,
            "results": results,
            "verdict": verdict(results),
        }
