"""What the commands answer with `--json`, asked for in this process: nothing is started, and nothing printed."""

import argparse
import json
import threading
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from ...config.errors import CommandError
from ...config.findings import Finding
from ..cli import parser_of
from ..command_help import plain
from ..output.console import taken

_SYNTHESIZING: Final = ("deploy", "diff", "render", "report", "scale", "submit", "upgrade")
_SYNTHESIS: Final = threading.Lock()
"""One at a time: a synthesis takes half a gigabyte, and charts are rendered by the one Node of this process."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command output."""

    command: str
    """As a person types it."""
    code: int
    """Its exit code: 1 where a check failed, which is an answer and no error."""
    document: Any
    """What it prints with `--json`; a text where it prints one; None where it prints neither."""


class Rejection(CommandError):
    """A command that stopped, with what it had found before."""

    def __init__(self, error: CommandError, findings: list[Finding]) -> None:
        super().__init__(str(error), error.hint, error.code)
        self.findings = findings


class _Parser(argparse.ArgumentParser):
    """Raises what argparse would print before it ends the process."""

    def error(self, message: str) -> NoReturn:
        raise CommandError(plain(message), f"`{self.prog} --help` lists what there is", 2)

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """What ends a process, such as --help, does not end a server."""
        self.error(message or "it only prints, and ends")


def answer(project: Path, words: Sequence[str], *, sandbox: bool = False) -> Answer:
    """Run one command, such as `("cost", "prod", "--json")`.

    Args:
        project: The folder of the project.
        words: The command and its arguments. Values of options are joined to them by `=`, so that no value is taken
            for an option.
        sandbox: Go to the sandbox, whatever account an environment names.

    Raises:
        Rejection: the command stopped; with what it found before.
        InvalidFile: a file that cannot be read.
    """
    with taken() as output, _SYNTHESIS if words[0] in _SYNTHESIZING else nullcontext():
        try:
            parsed = parser_of(words[0], _Parser).parse_args(list(words))
            parsed.project = project
            if sandbox and hasattr(parsed, "sandbox"):
                parsed.sandbox = True
            code = parsed.run(parsed)
        except CommandError as error:
            raise Rejection(error, output.findings) from error
    document = output.documents[-1] if output.documents else "\n".join(output.texts) or None
    if document is None:
        # A deployment that findings stop says so with them alone.
        error = CommandError(f"`{typed(words)}` stopped", "fix what the findings say", code)
        raise Rejection(error, output.findings)
    option = ("--sandbox",) if getattr(parsed, "sandbox", False) and "--sandbox" not in words else ()
    # Enumerations, tuples and dates become what JSON has.
    return Answer(typed((*words, *option)), code, json.loads(json.dumps(document, default=str)))


def typed(words: Sequence[str]) -> str:
    """A command as a person types it."""
    return " ".join(("podwright", *words))
