"""Runs the commands of the documentation's pages in their order (see page_commands)."""

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from page_commands import ROOT, Command, File, Folder, Page
from podwright.operations.aws import sandbox_server as server
from story import Terminal

ACCOUNT: Final = "111122223333"
"""The account of the documentation's environments, which the sandbox simulates."""
_NOWHERE: Final = {
    "AWS_ENDPOINT_URL": "http://localhost:1",
    "AWS_ACCESS_KEY_ID": "none",
    "AWS_SECRET_ACCESS_KEY": "none",
    "AWS_EC2_METADATA_DISABLED": "true",
}
"""Variables that hide the credentials of the user who runs the tests."""
_REGION: Final = "us-west-2"
_SCALE: Final = 0.1
_TAIL: Final = 2_000
_COMMAND_SECONDS: Final = 3_600
"""Limit for a command in seconds. One of them is the whole test suite."""


@dataclass(frozen=True)
class Outcome:
    """The result of a command."""

    page: str
    command: Command
    typed: str
    """The command with values in place of the page's examples."""
    status: int | None
    """Exit status; None if the command did not start or did not end in time."""
    seconds: float
    output: str
    """The end of its output."""

    @property
    def right(self) -> bool:
        """True if it ended with the exit status that its page states."""
        return self.status == self.command.status

    def __str__(self) -> str:
        where = f"{self.page}:{self.command.line}: `{self.typed}`"
        if self.right:
            return where
        ended = "did not end" if self.status is None else f"ended with {self.status}, not {self.command.status}"
        return f"{where} {ended}\n{self.output}"


@dataclass
class _Project:
    """A folder in which commands run, with the preparations that were run there."""

    terminal: Terminal
    done: set[str] = field(default_factory=set)

    def close(self) -> None:
        """Stop the sandboxes of all projects below the folder, and delete it."""
        for state in list(self.terminal.folder.rglob(str(server.STATE_DIRECTORY))):
            server.stop(state.parents[len(server.STATE_DIRECTORY.parts) - 1])
        shutil.rmtree(self.terminal.folder)
        shutil.rmtree(_home(self.terminal.folder))


def play(pages: Sequence[Page], folder: Path, *, kubernetes: str | None = None) -> Iterator[Outcome]:
    """Run the commands of pages in their order, except for those marked as not run.

    Args:
        pages: The pages. Pages that name the same project share its folder and sandbox.
        folder: An empty folder for the projects; each is deleted after the last page that shares it.
        kubernetes: Kind of the sandbox's clusters, `real` or `store`; by default real if the parts are installed.
    """
    parts = [(page.name, part) for page in pages for part in page.parts]
    last = {part.folder: number for number, (_, part) in enumerate(parts)}
    projects: dict[Folder, _Project] = {}
    with ExitStack() as stack:
        for number, (name, part) in enumerate(parts):
            if part.folder not in projects:
                projects[part.folder] = _opened(part.folder, folder / str(number), kubernetes)
                stack.callback(_close, projects, part.folder)
            if isinstance(part, File):
                _write(projects[part.folder], part)
            elif not part.mark:
                yield _outcome(name, part, projects[part.folder])
            if last[part.folder] == number:
                _close(projects, part.folder)


def _close(projects: dict[Folder, _Project], folder: Folder) -> None:
    if project := projects.pop(folder, None):
        project.close()


def _opened(kind: Folder, folder: Path, kubernetes: str | None) -> _Project:
    """Create a folder of a kind. For a project, start a sandbox and set the variables that select its account."""
    home = _home(folder)
    home.mkdir(parents=True)
    # By default, curl exits with 0 after an HTTP error.
    (home / ".curlrc").write_text("fail-with-body\n")
    # A promotion hashes the project's files, so the CDK's files must be outside.
    variables = {"CURL_HOME": str(home), "CDK_HOME": str(home), "CHECKOUT": str(ROOT)}
    variables |= {"PODWRIGHT_SANDBOX_KUBERNETES": kubernetes} if kubernetes else {}
    if kind.kind == "checkout":
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True)
        return _Project(Terminal(folder, _NOWHERE | variables))
    folder.mkdir()
    if kind.kind == "empty":
        return _Project(Terminal(folder, _NOWHERE | variables))
    podwright = Path(sys.executable).parent / "podwright"
    subprocess.run([podwright, "init", "."], cwd=folder, check=True, capture_output=True)
    shutil.copytree(ROOT / "environments", folder / "environments", dirs_exist_ok=True)
    shutil.copy(ROOT / "podwright.yaml", folder)
    running = server.start(folder, port=0, time_scale=_SCALE, kubernetes=kubernetes)
    return _Project(Terminal(folder, running.environment(_REGION, ACCOUNT) | variables))


def _home(folder: Path) -> Path:
    """Return the folder for the settings of curl and the CDK, next to the project."""
    return folder.with_name(f"{folder.name}-home")


def _write(project: _Project, file: File) -> None:
    target = (project.terminal.where or project.terminal.folder) / file.path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(file.text, encoding="utf-8")


def _outcome(page: str, command: Command, project: _Project) -> Outcome:
    """Run a command after its preparations. If one of those fails, the command has failed."""
    start, typed, output = time.perf_counter(), command.text, ""
    status: int | None = None
    try:
        for line in command.first:
            if line not in project.done:
                output = f"$ {line}\n{project.terminal.type(line)}"
                project.done.add(line)
        for example, value in command.examples.items():
            typed = typed.replace(example, project.terminal.type(value).strip())
        result = project.terminal.run(typed, _COMMAND_SECONDS)
        status, output = result.returncode, result.stdout + result.stderr
    except (AssertionError, subprocess.TimeoutExpired) as error:
        output += str(error)
    return Outcome(page, command, typed, status, time.perf_counter() - start, output[-_TAIL:])
