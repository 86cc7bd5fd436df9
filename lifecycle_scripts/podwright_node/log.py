"""What happens on the node: a line for people on standard output, and the same as JSON in a file of its own."""

from __future__ import annotations

import json
import sys
import threading
from datetime import datetime, timezone
from pathlib import Path
from typing import Any


class Log:
    """Appends events to a file of JSON lines and prints them. Steps of several threads may write to it."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a", encoding="utf-8")
        self._lock = threading.Lock()

    def __enter__(self) -> Log:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def say(self, event: str, **facts: Any) -> None:
        """Record an event with its facts."""
        time = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        words = " ".join(f"{name}={_word(value)}" for name, value in facts.items())
        with self._lock:
            self._file.write(json.dumps({"time": time, "event": event, **facts}) + "\n")
            self._file.flush()
            sys.stdout.write(f"{time} podwright: {event} {words}".rstrip() + "\n")
            sys.stdout.flush()


def _word(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return json.dumps(text) if " " in text and text[0] not in '[{"' else text
