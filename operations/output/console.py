"""What commands write to a terminal or a pipe: findings, failures and JSON."""

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

from ...config.errors import CommandError
from ...config.findings import Finding, counted, described
from .moving import settle, tell
from .terminal import has_colours, new_console, width_of
from .wrapping import spans, wrapped

if TYPE_CHECKING:
    from rich.console import RenderableType

    from .tables import Block

REPORTS: Final = ".podwright/reports"
"""Where a project keeps what commands write for people to read, unless told otherwise: no promotion takes it along."""
_COLOURS: Final = {"error": "1;31", "warning": "1;33", "info": "36", "accepted": "2"}
_ADDRESS: Final = re.compile(r"<(https?://[^>\s]+)>")
_HANG: Final = 4


@dataclass(slots=True)
class Taken:
    """What a command said to a caller in this process, instead of printing it."""

    documents: list[Any] = field(default_factory=list)
    """What it would print as JSON."""
    texts: list[str] = field(default_factory=list)
    """Text that programs read too: files, pages, manifests."""
    findings: list[Finding] = field(default_factory=list)


_TAKEN: Final[ContextVar[Taken | None]] = ContextVar("taken", default=None)


@contextmanager
def taken() -> Iterator[Taken]:
    """Take what commands of this thread say, so that nothing of it is printed. What they note still is."""
    result = Taken()
    token = _TAKEN.set(result)
    try:
        yield result
    finally:
        _TAKEN.reset(token)


def write_findings(findings: Iterable[Finding], stream: TextIO) -> None:
    """Print findings, the worst last: it stands next to what somebody types then. In colour where there are colours."""
    if receiver := _TAKEN.get():
        receiver.findings += findings
        return
    settle()
    width = width_of(stream)
    for level, line, advice in described(findings):
        first, *others = wrapped(line, width, _HANG)
        if has_colours(stream):
            first = first.replace(f"  {level}  ", f"  \x1b[{_COLOURS[level]}m{level}\x1b[0m  ", 1)
        print(first, *others, *wrapped(advice, width), sep="\n", file=stream)


def write_refusal(findings: Sequence[Finding]) -> None:
    """Print the findings for which a command did nothing, and last how many there are."""
    write_findings(findings, sys.stderr)
    write_note(f"nothing was done: {counted(findings)}")


def write_markdown(page: str) -> None:
    """Print a page: as it is drawn on a terminal, else as it is written."""
    if _TAKEN.get() or not sys.stdout.isatty():
        write_text(page.rstrip())
        return
    from rich.markdown import Markdown

    # Addresses are shown, not hidden behind their words; one without words is shown once.
    _write(Markdown(_ADDRESS.sub(r"\1", page), hyperlinks=False), sys.stdout)


@contextmanager
def whole_screen() -> "Iterator[Callable[[Sequence[Block]], None]]":
    """A terminal that shows nothing but what is handed over last; it is as it was afterwards."""
    from rich.console import Group
    from rich.live import Live

    with Live(console=new_console(sys.stdout), screen=True, auto_refresh=False) as live:
        yield lambda blocks: live.update(Group(*blocks), refresh=True)


def write_text(text: str) -> None:
    """Print text that programs read too, or that stands elsewhere so: a file, a script, a log, a command."""
    if receiver := _TAKEN.get():
        receiver.texts.append(text)
        return
    settle()
    print(text, flush=True)


def write_line(block: "str | RenderableType" = "") -> None:
    """Print a part of a command's answer: a line or lines, as wide as the terminal is, or a table."""
    _write(block, sys.stdout)


def write_note(block: "str | RenderableType") -> None:
    """Print what is under way, or about to be; it goes to stderr, as the answer may be JSON."""
    _write(block, sys.stderr)


def write_to(stream: TextIO, block: "str | RenderableType") -> None:
    """Print a part of an answer where somebody else says."""
    _write(block, stream)


def _write(block: "str | RenderableType", stream: TextIO) -> None:
    settle()
    width = width_of(stream)
    if isinstance(block, str):
        if stream is sys.stderr:
            tell(block.strip())
        for line in block.split("\n"):
            print(*wrapped(line, width), sep="\n", file=stream)
    else:
        _draw(block, stream, width)
    stream.flush()


def _draw(block: "RenderableType", stream: TextIO, width: int | None) -> None:
    """Print what rich draws, without the blanks at the ends of its lines."""
    from rich.text import Text

    console = new_console(stream)
    with console.capture() as drawn:
        if isinstance(block, Text):
            for indent, start, end in spans(block.plain, width):
                console.print(Text(" " * indent).append_text(block[start:end]), soft_wrap=True)
        else:
            console.print(block, crop=False)
    stream.writelines(f"{line.rstrip()}\n" for line in drawn.get().splitlines())


def write_error(error: CommandError) -> None:
    """Print why a command stopped."""
    write_note(f"podwright: {error}" + (f"\n    → {error.hint}" if error.hint else ""))


def write_json(value: Any) -> None:
    """Print a value as JSON for machines."""
    if receiver := _TAKEN.get():
        receiver.documents.append(value)
        return
    write_text(json.dumps(value, indent=2, ensure_ascii=False))


def write_answer(as_json: bool, document: Any, lines: "Iterable[str | RenderableType]") -> None:
    """Print what a command has to say: `document` for machines, or `lines`, which are made only then, for people."""
    if as_json:
        write_json(document)
        return
    for line in lines:
        write_line(line)


def write_file(file: Path, text: str, *, option: str) -> None:
    """Write a file that an option of the command line names, with the folders on its way. Raises CommandError."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        reason = f"{file} cannot be written: {error.strerror}"
        raise CommandError(reason, f"name another file with {option}", 2) from None


def from_here(file: Path) -> Path:
    """A file as somebody in this folder names it: relative to it where it lies below."""
    return file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file
