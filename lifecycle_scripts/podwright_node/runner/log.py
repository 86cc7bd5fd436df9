"""What happens on the node: a line for people on standard output, and the same as JSON in a file of its own."""

from __future__ import annotations

import errno
import json
import os
import sys
import threading
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TextIO

RESERVE_BYTES = 256 * 1024


class Log:
    """Appends events to a file of JSON lines and prints them. Steps of several threads may write to it.

    A full root volume is one of the things that it has to tell. So it holds some space back, and gives it away when the
    volume is full.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._reserve = path.with_name(f".{path.name}.reserve")
        with self._reserve.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, RESERVE_BYTES)
        self._file = path.open("a", encoding="utf-8")
        self._lock = threading.Lock()

    def __enter__(self) -> Log:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()
        self._reserve.unlink(missing_ok=True)

    def say(self, event: str, **facts: Any) -> None:
        """Record an event with its facts. What a step's thread says carries the name of the step."""
        thread = threading.current_thread()
        if thread is not threading.main_thread():
            facts = {"step": thread.name, **facts}
        time = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        words = " ".join(f"{name}={_word(value)}" for name, value in facts.items())
        with self._lock:
            self._put(self._file, json.dumps({"time": time, "event": event, **facts}))
            self._put(sys.stdout, f"{time} podwright: {event} {words}".rstrip())

    def metrics(self, document: dict[str, Any]) -> None:
        """Print a document alone on its line: only so does CloudWatch find the metrics in it."""
        with self._lock:
            self._put(sys.stdout, json.dumps(document))

    def _put(self, file: TextIO, line: str) -> None:
        file.write(line + "\n")
        try:
            file.flush()
        except OSError as error:
            if error.errno != errno.ENOSPC or not self._reserve.exists():
                raise
            self._reserve.unlink()
            file.flush()


def _word(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return json.dumps(text) if " " in text and text[0] not in '[{"' else text
