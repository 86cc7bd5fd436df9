"""A container that runs on a real node, as this machine sees it: its processes, and its standard input."""

import json
import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Final

from ...operations.programs.process import command_line
from ..protocol.json_objects import JsonObject
from . import cgroups, containers

_CHARACTERS: Final = 500
"""Characters of a message: less than 4,096 bytes as JSON, so a pipe takes all of them or none."""
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

    def write(self, text: str) -> int:
        """Let a simulated container print a text, or as much as its pipe takes now. Returns how many characters."""
        chunks = (text[start : start + _CHARACTERS] for start in range(0, len(text), _CHARACTERS))
        return sum(len(chunk) for chunk in takewhile(lambda chunk: self._tell({"print": chunk}), chunks))

    def end(self, code: int) -> None:
        """End the container: a simulated one with this exit code, any other by SIGKILL."""
        if self.simulated is not None:
            self._tell({"exit": code})
            return
        for pid in self.processes:
            with suppress(*_ENDED):
                os.kill(pid, signal.SIGKILL)

    def _tell(self, message: JsonObject) -> bool:
        """Send a message. False if the program does not listen yet, has ended, or its pipe is full."""
        file = Path(f"/proc/{self.simulated}/fd/0")
        try:
            # Until the program has opened its pipe, this is /dev/null.
            if not str(file.readlink()).startswith("pipe:"):
                return False
            pipe = os.open(file, os.O_WRONLY | os.O_NONBLOCK)
        except _ENDED:
            return False
        try:
            os.write(pipe, json.dumps(message).encode() + b"\n")
        except (BlockingIOError, BrokenPipeError):
            return False
        finally:
            os.close(pipe)
        return True
