"""A container that runs on a real node, as this machine sees it: its processes, and its standard input."""

import json
import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ...operations.programs.process import command_line
from ..protocol.json_objects import JsonObject
from . import cgroups, containers

_ENDED: Final = (ProcessLookupError, FileNotFoundError, PermissionError)
"""Errors of a process that ends meanwhile."""


@dataclass(frozen=True, slots=True)
class RunningContainer:
    """A container and its processes, by their ids on this machine."""

    processes: list[int]

    @classmethod
    def find(cls, group: str, identifier: str) -> "RunningContainer":
        """Return a container of a node; one that has ended has no processes.

        Args:
            group: The node's control group.
            identifier: The container's id, as containerd names it.
        """
        return cls(cgroups.processes(group, identifier))

    @property
    def simulated(self) -> int | None:
        """The process that simulates the container; None if its own program runs."""
        program = containers.SIMULATED.encode()
        return next((pid for pid in self.processes if program in command_line(pid)), None)

    def write(self, text: str) -> None:
        """Let a simulated container print a text."""
        self._tell({"print": text})

    def end(self, code: int) -> None:
        """End the container: a simulated one with this exit code, any other by SIGKILL."""
        if self.simulated is not None:
            self._tell({"exit": code})
            return
        for pid in self.processes:
            with suppress(*_ENDED):
                os.kill(pid, signal.SIGKILL)

    def _tell(self, message: JsonObject) -> None:
        with suppress(*_ENDED), Path(f"/proc/{self.simulated}/fd/0").open("w", encoding="utf-8") as lines:
            lines.write(json.dumps(message) + "\n")
