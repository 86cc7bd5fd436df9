"""The commands of the documentation's pages, and what the source of a page says about running them.

A fence without a language, or with `sh` or `bash`, holds commands, one a line; a backslash continues a line. In a fence
with language `console` the lines that begin with `$ ` do. Every other language holds none. Comments of HTML, which no
reader of the site sees, say the rest. In front of a fence, and from there on, where its commands are run:

    <!-- run in: an empty folder -->
    <!-- run in: a checkout -->         a clone of this one, which is not set up
    <!-- run in: a project -->          with the environments of this checkout, and a sandbox, which is also the AWS
                                        account 111122223333; so begins a page that says nothing
    <!-- run in: the project NAME -->   one that all pages share which name it; they come in the order of their paths

In front of a fence, and about this one:

    <!-- not run: REASON -->            none of its commands can be run here
    <!-- not run: REASON: TEXT -->      nor those that begin with the text
    <!-- run first: COMMAND -->         what a reader has done before, elsewhere; once in a project
    <!-- run with: TEXT = COMMAND -->   what the command prints takes the place of the text, which is an example
    <!-- run exits: STATUS: TEXT -->    commands that begin with the text end with this exit status
    <!-- run writes: FILE -->           not before commands: the fence is what the reader puts into the file
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
"""Why a command is not run in the sandbox. The list is closed."""

PROGRAMS: Final = frozenset(
    {
        *(".venv/bin/podwright", "bin/deploy", "bin/docs", "bin/setup", "bin/test", "podwright"),
        *("aws", "cd", "cdk", "curl", "export", "git", "kubectl", "pip", "python3", "sbatch", "scontrol", "srun"),
        "torchrun",
    }
)
"""What a command of a page begins with. Another program is a line here, or the fence is no fence of commands."""

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
    """A page says something about running its commands that cannot be meant; the text has the page and the line."""


@dataclass(frozen=True)
class Folder:
    """Where commands are run."""

    kind: str
    """`project`, `empty` or `checkout`."""
    name: str
    """Of the project; the page's own where no other shares it."""


@dataclass(frozen=True)
class Command:
    """A command of a page."""

    text: str
    line: int
    folder: Folder
    mark: str = ""
    """Why it is not run, one of REASONS; empty for a command that is run."""
    status: int = 0
    """The exit status that is right."""
    first: tuple[str, ...] = ()
    """What is run before it, once in a project."""
    examples: Mapping[str, str] = field(default_factory=dict)
    """Texts that are examples, and the commands that print what takes their place."""


@dataclass(frozen=True)
class File:
    """What a reader puts into a file."""

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
        """The commands, those that are not run included."""
        return tuple(part for part in self.parts if isinstance(part, Command))


@dataclass(frozen=True)
class _Note:
    """A comment that says something about the next fence."""

    kind: str
    value: str
    where: str

    @property
    def head(self) -> str:
        """What stands before the text that commands begin with."""
        return self.value.partition(": ")[0]

    @property
    def pair(self) -> tuple[str, str]:
        """Of `run with`: the example, and the command."""
        text, _, command = self.value.partition(" = ")
        return text, command

    def concerns(self, text: str) -> bool:
        """Whether it says something about this command."""
        match self.kind:
            case "run first":
                return True
            case "run with":
                return self.pair[0] in text
            case _:
                return self.kind != "run writes" and text.startswith(self.value.partition(": ")[2])


class _Start(NamedTuple):
    """Where a fence begins, and where its commands are run."""

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
    """A page by its source.

    Raises:
        PageError: a comment that is none of those above, that stands before no fence or that is about no command; a
            command of two comments.
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
    """What a comment says. Raises PageError."""
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
    """Where the next commands are run. Raises PageError."""
    if note.value in _FOLDERS:
        return Folder(_FOLDERS[note.value], name)
    if project := _PROJECT.fullmatch(note.value):
        return Folder("project", project[1])
    raise PageError(f"{note.where}: `run in` has {', '.join(_FOLDERS)} and `the project NAME`")


def lines(language: str, block: str) -> Iterator[tuple[int, str]]:
    """The commands of a fence, each with the number of its line in the fence, from 0."""
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
    """The parts of a fence, with what the comments before it say. Raises PageError."""
    yield from (File(note.value, start.line, start.folder, block) for note in notes if note.kind == "run writes")
    of_no_command = [note for note in notes if note.kind != "run writes"]
    for number, text in lines(language, block):
        about = [note for note in notes if note.concerns(text)]
        of_no_command = [note for note in of_no_command if note not in about]
        yield _command(text, start.line + number, start, about)
    if of_no_command:
        raise PageError(f"{of_no_command[0].where}: this comment is about no command of the fence")


def _command(text: str, line: int, start: _Start, about: list[_Note]) -> Command:
    """A command with the comments about it. Raises PageError."""
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
