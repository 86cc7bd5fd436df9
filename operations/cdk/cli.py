"""Running the CDK CLI for one environment of a project."""

import os
import selectors
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from ...config.errors import CommandError
from ..aws.account import Account
from ..output.console import from_here
from ..output.moving import settle
from .app import runs_our_app
from .inputs import SynthesisInputs
from .progress import Progress
from .synthesis import annotated_errors, assembly_of, refused

# -I: Python must not import a module of the project's folder in place of a library.
_CLI: Final = (sys.executable, "-I", "-m", "podwright.operations.programs.node")
# As `podwright init` writes it.
_WITHOUT_CDK_JSON: Final = (
    "--app",
    f'"{sys.executable}" -P -m podwright.bin.app',
    "--no-version-reporting",
    "--no-asset-metadata",
    "--no-notices",
)
_STOPPING_SECONDS: Final = 20


@dataclass(frozen=True, slots=True)
class Synthesized:
    """A cloud assembly that the CLI can deploy."""

    folder: Path
    lock: int | None = None
    """File descriptor that keeps a stored assembly from being deleted; None for an assembly outside the store."""


@dataclass(frozen=True, slots=True)
class Cdk:
    """The CDK CLI on a project's app, narrowed to one environment and set up for the account that it belongs to."""

    project: Path
    environment: str
    """Its name, which is the name of its stage."""
    inputs: SynthesisInputs
    account: Account
    log: Path
    """File that the whole output of the app and of the CLI is added to."""

    @contextmanager
    def synthesized(
        self, progress: Progress, *, validated: bool = False, incomplete: bool = False
    ) -> Iterator[Synthesized]:
        """Give the environment's cloud assembly: the stored one if its inputs are unchanged, else a new one.

        Args:
            progress: Told how long the synthesis took.
            validated: CDK's validator has to accept the templates, now or in an earlier run.
            incomplete: Accept templates with stand-ins for artifacts that the project lacks. A deletion needs only the
                names and the order of the stacks.

        Raises:
            CommandError: the app failed, the validator refused a template, or the project lacks an artifact.
        """
        if not runs_our_app(self.project):
            yield self._of_own_app(progress, incomplete=incomplete)
            return
        with assembly_of(self.inputs, progress, validated=validated, log=self.log) as stored:
            if not incomplete and (errors := annotated_errors(stored.folder)):
                raise refused(errors)
            yield Synthesized(stored.folder, stored.lock)

    def validate(self, assembly: Synthesized, progress: Progress) -> None:
        """Have CDK's validator accept an assembly, unless it has done so before.

        Raises:
            CommandError: the validator refuses a template, or the files are no longer those of the assembly.
        """
        if not runs_our_app(self.project):
            return
        with assembly_of(self.inputs, progress, validated=True, log=self.log) as stored:
            # The validator read the files as they are now. The user may have edited one while a question was open.
            if stored.folder != assembly.folder:
                raise CommandError(
                    f"nothing was deployed: the files of {self.environment} have changed since this command read them",
                    "run the same command again, which shows the changes of the new files",
                )

    def run(self, assembly: Synthesized, *arguments: str) -> int:
        """Run on an assembly with the terminal's own input and output. Returns the exit code."""
        forget_the_dead(assembly.folder)
        settle()
        # The CLI writes to the terminal, so only its exit code is returned.
        return subprocess.run(
            [*_CLI, *arguments, "--app", str(assembly.folder)],
            cwd=self.project,
            env=self._variables(),
            pass_fds=_kept(assembly),
        ).returncode

    def follow(self, progress: Progress, *arguments: str, assembly: Synthesized | None = None) -> int:
        """Run on an assembly, or without the project; tell `progress` what happens, and return the exit code.

        An interrupt reaches the CLI as well; it is waited for, so that nothing continues unseen.
        """
        source = () if assembly is None else ("--app", str(assembly.folder))
        return self._follow(progress, [*arguments, *source], assembly, within_project=assembly is not None)

    def _of_own_app(self, progress: Progress, *, incomplete: bool) -> Synthesized:
        """Synthesize an app of the user's own by the CLI. Its inputs are unknown, so nothing is reused."""
        folder = self.project / ".podwright/cdk.out" / self.environment
        words = ["synth", "--quiet", f"{self.environment}/*", *_synthesis(self.project, folder, self.inputs.context)]
        words += ["--ignore-errors"] if incomplete else []
        if self._follow(progress, words, Synthesized(folder), within_project=True):
            last = "\n".join(f"    {line}" for line in progress.last)
            raise CommandError(f"the CDK CLI failed:\n{last}", f"the whole output is in {from_here(self.log)}")
        return Synthesized(folder)

    def _follow(
        self, progress: Progress, words: Sequence[str], assembly: Synthesized | None, *, within_project: bool
    ) -> int:
        """Start the CLI, copy its output to the log, and return its exit code."""
        if assembly is not None:
            forget_the_dead(assembly.folder)
        progress.begin(words[0])
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with (
            # Unbuffered, so that the log is complete when the process is killed.
            self.log.open("ab", buffering=0) as log,
            subprocess.Popen(
                [*_CLI, *words],
                # Outside the project the CLI finds no cdk.json, so it starts no app.
                cwd=self.project if within_project else self.log.parent,
                env=self._variables(),
                # The moving line would hide a question that the CLI asks on the terminal.
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=_kept(assembly),
            ) as process,
        ):
            assert process.stdout is not None
            try:
                for line in _lines(process.stdout, log):
                    if line is None:
                        progress.tick()
                    else:
                        progress.line(line)
                code = process.wait()
                progress.end()
                return code
            except KeyboardInterrupt:
                try:
                    process.wait(_STOPPING_SECONDS)
                # The terminal sends Ctrl-C to the CLI too. Terminate it if it has not stopped by itself.
                except subprocess.TimeoutExpired:
                    process.terminate()
                raise
            finally:
                progress.close()

    def _variables(self) -> dict[str, str]:
        return {**self.account.variables, "PODWRIGHT_PYTHON": sys.executable}


def _kept(assembly: Synthesized | None) -> tuple[int, ...]:
    """Returns the file descriptors that the CLI inherits, so that its assembly is kept if podwright is killed."""
    return () if assembly is None or assembly.lock is None else (assembly.lock,)


def run_app(project: Path, *arguments: str, output: Path, context: Mapping[str, str]) -> int:
    """Run the CDK CLI on all of a project's app, with the terminal and the process's credentials; the exit code."""
    forget_the_dead(output)
    words = [*_CLI, *arguments, *_synthesis(project, output, context)]
    return subprocess.run(words, cwd=project, env={**os.environ, "PODWRIGHT_PYTHON": sys.executable}).returncode


def forget_the_dead(assembly: Path) -> None:
    """Remove the locks of killed CLIs from the folder of an assembly.

    The CLI respects the lock of every process that exists. A killed process exists until its parent asks for its exit
    code, which never happens in a container whose first process is not an init.
    """
    for lock in assembly.glob("*.lock"):
        # `read.PID.NUMBER.lock`, or `synth.lock` with the process id in it.
        pid = lock.name.split(".")[1] if lock.name.startswith("read.") else lock.read_text().strip()
        status = Path("/proc", pid, "stat")
        # State Z in /proc: the process has ended, and its parent has not asked for its exit code. The name before the
        # state may contain brackets.
        if pid.isdigit() and status.exists() and status.read_text().rpartition(") ")[2].startswith("Z"):
            lock.unlink()


def _synthesis(project: Path, output: Path, context: Mapping[str, str]) -> list[str]:
    own = [] if (project / "cdk.json").is_file() else _WITHOUT_CDK_JSON
    messages = [word for key, value in context.items() for word in ("--context", f"{key}={value}")]
    return [*own, "--output", str(output), *messages]


def _lines(stream: IO[bytes], log: IO[bytes]) -> Iterator[str | None]:
    """Lines of a pipe, copied to `log`; None about once a second."""
    pending = b""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while True:
            if selector.select(timeout=1):
                # read1 returns after the first bytes; read would wait for a whole block.
                chunk = stream.read1(65536)  # pyrefly: ignore[missing-attribute]
                if not chunk:
                    break
                log.write(chunk)
                *lines, pending = (pending + chunk).split(b"\n")
                yield from (line.decode(errors="replace") for line in lines)
            # A tick, so that time passes on the line while the CLI says nothing.
            yield None
    if pending:
        yield pending.decode(errors="replace")
