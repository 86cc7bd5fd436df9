"""What commands write to a terminal or a pipe: findings, failures and JSON."""

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO

from ...config import findings as _findings
from ...config.errors import CommandError
from ...config.findings import Finding


def write_findings(findings: Iterable[Finding], stream: TextIO) -> None:
    """Print findings; in colour on a terminal that has colours, unless NO_COLOR is set (no-color.org)."""
    colour = stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    _findings.write_findings(findings, stream, colour)


def write_line(text: str = "") -> None:
    """Print one line of a command's answer."""
    print(text, flush=True)


def write_note(text: str) -> None:
    """Print one line about what is under way; it goes to stderr, as the answer may be JSON."""
    print(text, file=sys.stderr, flush=True)


def write_error(error: CommandError) -> None:
    """Print why a command stopped."""
    write_note(f"podwright: {error}" + (f"\n    → {error.hint}" if error.hint else ""))


def write_json(value: Any) -> None:
    """Print a value as JSON for machines."""
    write_line(json.dumps(value, indent=2, ensure_ascii=False))


def write_answer(as_json: bool, document: Any, lines: Iterable[str]) -> None:
    """Print what a command has to say: `document` for machines, or `lines`, which are made only then, for people."""
    if as_json:
        write_json(document)
        return
    for line in lines:
        write_line(line)


def write_file(file: Path, text: str, *, option: str) -> None:
    """Write a file that an option of the command line names. Raises CommandError."""
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        reason = f"{file} cannot be written: {error.strerror}"
        raise CommandError(reason, f"name another file with {option}", 2) from None


def from_here(file: Path) -> Path:
    """A file as somebody in this folder names it: relative to it where it lies below."""
    return file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file
