"""The commands of the documentation's pages, and the comments in a page's source about running them.

A fence without a language, or with `sh` or `bash`, holds commands, one a line; a backslash continues a line. In a fence
with language `console` the lines that begin with `$ ` do. Fences of other languages hold none. HTML comments, which the
site does not show, control the rest. Before a fence, for this one and the following ones, the folder:

    <!-- run in: an empty folder -->
    <!-- run in: a checkout -->         a clone of this one, which is not set up
    <!-- run in: a project -->          with the environments of this checkout, and a sandbox, which simulates the AWS
                                        account 111122223333; the default of a page
    <!-- run in: the project NAME -->   one project for all pages that name it; they run in the order of their paths

Before a fence, for this one:

    <!-- not run: REASON -->            none of its commands can run here
    <!-- not run: REASON: TEXT -->      commands that begin with the text cannot run here
    <!-- run first: COMMAND -->         a preparation of the reader; it runs once in a project
    <!-- run with: TEXT = COMMAND -->   the text is an example, which the output of the command replaces
    <!-- run exits: STATUS: TEXT -->    commands that begin with the text end with this exit status
    <!-- run writes: FILE -->           the fence is the content of a file, and has no commands
"""

import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[2]

REASONS: Final = {
    "account": "It needs an AWS account: credentials, quotas, or what the sandbox does not answer.",
    "purchase": "It buys something.",
    "other system": "It runs on or against another system: a node, a registry, a cluster of Slurm, the internet.",
    "console": "It takes over a terminal: a shell, a question, a display that stays.",
}
"""Allowed reasons for not running a command in the sandbox."""

PROGRAMS: Final = frozenset(
    {
        *(".venv/bin/podwright", "bin/deploy", "bin/docs", "bin/setup", "bin/test", "podwright"),
        *("aws", "cd", "cdk", "curl", "export", "git", "kubectl", "pip", "python3", "sbatch", "scontrol", "srun"),
        "torchrun",
    }
)
"""Programs that commands of pages start. Add a program here, or give its fence another language."""

_PART: Final = re.compile(
    r"^ *<!-- (?P<kind>(?:not )?run\b[a-z ]*)(?:: (?P<value>.*?))? -->$"
    r"|^(?P<indent> *)```(?P<language>[\w-]*)\n(?P<block>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
_KINDS: Final = ("not run", "run in", "run first", "run with", "run exits", "run writes")
_FOLDERS: Final = {"an empty folder": "empty", "a checkout": "checkout", "a project": "project"}
_PROJECT: Final = re.compile(r"the project ([a-z-]+)")
_LANGUAGES: Final = ("", "sh", "bash")
_CONTINUED: Final = re.compile(r" *\\\n *")


class PageError(ValueError):
    """A comment about running commands is invalid; the message contains the page and the line."""


@dataclass(frozen=True)
class Folder:
    """A folder for running commands."""

    kind: str
    """`project`, `empty` or `checkout`."""
    name: str
    """Name of the project; by default the name of the page."""


@dataclass(frozen=True)
class Command:
    """A command of a page."""

    text: str
    line: int
    folder: Folder
    mark: str = ""
    """The reason for not running it, one of REASONS; empty for a command that runs."""
    status: int = 0
    """The expected exit status."""
    first: tuple[str, ...] = ()
    """Its preparations, which run once in a project."""
    examples: Mapping[str, str] = field(default_factory=dict)
    """Commands whose output replaces an example, by the text of the example."""


@dataclass(frozen=True)
class File:
    """A file that the reader writes."""

    path: str
    line: int
    folder: Folder
    text: str


@dataclass(frozen=True)
class Page:
    """A page with its commands and files, in their order."""

    name: str
    """Path in the checkout."""
    parts: tuple[Command | File, ...]

    @property
    def commands(self) -> tuple[Command, ...]:
        """All commands, including those that do not run."""
        return tuple(part for part in self.parts if isinstance(part, Command))


@dataclass(frozen=True)
class _Note:
    """A comment about the next fence."""

    kind: str
    value: str
    where: str

    @property
    def head(self) -> str:
        """The part of the value before the text that selects commands."""
        return self.value.partition(": ")[0]

    @property
    def pair(self) -> tuple[str, str]:
        """Of `run with`: the example, and the command."""
        text, _, command = self.value.partition(" = ")
        return text, command

    def concerns(self, text: str) -> bool:
        """True if it applies to this command."""
        match self.kind:
            case "run first":
                return True
            case "run with":
                return self.pair[0] in text
            case _:
                return self.kind != "run writes" and text.startswith(self.value.partition(": ")[2])


class _Start(NamedTuple):
    """The position of a fence, and the folder for its commands."""

    page: str
    line: int
    folder: Folder


def names() -> list[str]:
    """The paths of all pages of the documentation."""
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in sorted(listed.stdout.splitlines()) if "/" not in name or name.startswith("docs/")]


def pages() -> list[Page]:
    """The pages that have commands. Raises PageError."""
    every = [page(name, (ROOT / name).read_text(encoding="utf-8")) for name in names()]
    return [each for each in every if each.commands]


def page(name: str, text: str) -> Page:
    """Parse the source of a page.

    Raises:
        PageError: A comment has an unknown form, precedes no fence or selects no command, or two select the same one.
    """
    folder, notes, parts = Folder("project", name), list[_Note](), list[Command | File]()
    for part in _PART.finditer(text):
        line = text.count("\n", 0, part.start()) + 1
        if part["block"] is not None:
            block = re.sub(rf"^{part['indent']}", "", part["block"], flags=re.MULTILINE)
            parts += _fence(_Start(name, line + 1, folder), part["language"], block, notes)
            notes = []
            continue
        note = _note(f"{name}:{line}", part["kind"], part["value"] or "")
        if note.kind == "run in":
            folder = _folder(name, note)
        else:
            notes.append(note)
    if notes:
        raise PageError(f"{notes[0].where}: no fence comes after this comment")
    return Page(name, tuple(parts))


def _note(where: str, kind: str, value: str) -> _Note:
    """Parse a comment. Raises PageError."""
    note = _Note(kind, value, where)
    if kind not in _KINDS or not value:
        raise PageError(f"{where}: the comment `{kind}` is none of {', '.join(f'`{each}: …`' for each in _KINDS)}")
    if kind == "not run" and note.head not in REASONS:
        raise PageError(f"{where}: {note.head!r} is not a reason; there are {', '.join(REASONS)}")
    if kind == "run with" and not note.pair[1]:
        raise PageError(f"{where}: `run with` has the form TEXT = COMMAND")
    if kind == "run exits" and not note.head.isdecimal():
        raise PageError(f"{where}: `run exits` has the form STATUS: TEXT")
    return note


def _folder(name: str, note: _Note) -> Folder:
    """Return the folder that a comment names. Raises PageError."""
    if note.value in _FOLDERS:
        return Folder(_FOLDERS[note.value], name)
    if project := _PROJECT.fullmatch(note.value):
        return Folder("project", project[1])
    raise PageError(f"{note.where}: `run in` has {', '.join(_FOLDERS)} and `the project NAME`")


def lines(language: str, block: str) -> Iterator[tuple[int, str]]:
    """Yield the commands of a fence, each with its line in the fence, from 0."""
    if language == "console":
        yield from ((n, line[2:]) for n, line in enumerate(block.splitlines()) if line.startswith("$ "))
        return
    command, start = "", 0
    for number, line in enumerate(block.splitlines() if language in _LANGUAGES else ()):
        start = start if command else number
        command += line + "\n"
        if not line.endswith("\\"):
            text = _CONTINUED.sub(" ", command).strip()
            if text and not text.startswith("#"):
                yield start, text
            command = ""


def _fence(start: _Start, language: str, block: str, notes: list[_Note]) -> Iterator[Command | File]:
    """Yield the parts of a fence, with the comments applied. Raises PageError."""
    yield from (File(note.value, start.line, start.folder, block) for note in notes if note.kind == "run writes")
    of_no_command = [note for note in notes if note.kind != "run writes"]
    for number, text in lines(language, block):
        about = [note for note in notes if note.concerns(text)]
        of_no_command = [note for note in of_no_command if note not in about]
        yield _command(text, start.line + number, start, about)
    if of_no_command:
        raise PageError(f"{of_no_command[0].where}: this comment is about no command of the fence")


def _command(text: str, line: int, start: _Start, about: list[_Note]) -> Command:
    """Return a command with its comments applied. Raises PageError."""
    ends = [note for note in about if note.kind in ("not run", "run exits")]
    if len(ends) > 1:
        raise PageError(f"{start.page}:{line}: two comments are about `{text}`")
    return Command(
        text,
        line,
        start.folder,
        mark="".join(note.head for note in ends if note.kind == "not run"),
        status=sum(int(note.head) for note in ends if note.kind == "run exits"),
        first=tuple(note.value for note in about if note.kind == "run first"),
        examples=dict(note.pair for note in about if note.kind == "run with"),
    )
