"""Running the CDK CLI for one environment of a project."""

import os
import selectors
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Literal

from ..aws.account import Account
from ..output.moving import settle
from .progress import Progress

App = Literal["synthesize", "written", "none"]

# -I: no module beside the project is taken for one of the library.
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
class Cdk:
    """The CDK CLI on a project's app, narrowed to one environment and set up for the account that it belongs to."""

    project: Path
    environment: str
    """Its name, which is the name of its stage."""
    context: Mapping[str, str]
    """What the app is told, see `bin/app.py`."""
    account: Account
    log: Path
    """File that the whole output of `follow` is added to."""

    @property
    def assembly(self) -> Path:
        """Folder of the synthesized templates."""
        return self.project / ".podwright/cdk.out" / self.environment

    def run(self, *arguments: str) -> int:
        """Synthesize and run with the terminal's own input and output. Returns the exit code."""
        forget_the_dead(self.assembly)
        settle()
        # The exit code alone: what the CLI says goes to the terminal.
        return subprocess.run(
            [*_CLI, *arguments, *self._synthesis()], cwd=self.project, env=self._variables()
        ).returncode

    def follow(self, progress: Progress, *arguments: str, app: App = "synthesize") -> int:
        """Run, tell `progress` what happens, and return the exit code.

        `app` says whether to synthesize, to use what the synthesis before wrote, or to do without the project. An
        interrupt reaches the CLI as well; it is waited for, so that nothing continues unseen.
        """
        forget_the_dead(self.assembly)
        progress.begin(arguments[0], synthesizes=app == "synthesize")
        self.log.parent.mkdir(parents=True, exist_ok=True)
        source = {"synthesize": self._synthesis(), "written": ["--app", str(self.assembly)], "none": []}[app]
        with (
            # Unbuffered, so that the log is complete when the process is killed.
            self.log.open("ab", buffering=0) as log,
            subprocess.Popen(
                [*_CLI, *arguments, *source],
                # Where there is no cdk.json, the CLI looks for no app.
                cwd=self.log.parent if app == "none" else self.project,
                env=self._variables(),
                # A question on a terminal would wait behind the moving line, where nobody sees it.
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
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
                # The CLI has got the same Ctrl-C and stops by itself; a while later it is asked to.
                except subprocess.TimeoutExpired:
                    process.terminate()
                raise
            finally:
                progress.close()

    def _synthesis(self) -> list[str]:
        return _synthesis(self.project, self.assembly, self.context)

    def _variables(self) -> dict[str, str]:
        return {**self.account.variables, "PODWRIGHT_PYTHON": sys.executable}


def run_app(project: Path, *arguments: str, output: Path, context: Mapping[str, str]) -> int:
    """Run the CDK CLI on all of a project's app, with the terminal and the process's credentials; the exit code."""
    forget_the_dead(output)
    words = [*_CLI, *arguments, *_synthesis(project, output, context)]
    return subprocess.run(words, cwd=project, env={**os.environ, "PODWRIGHT_PYTHON": sys.executable}).returncode


def forget_the_dead(assembly: Path) -> None:
    """Remove the locks of killed CLIs from the folder of an assembly.

    The CLI heeds the lock of each process that exists, and so does one that was killed as long as nobody has asked how
    it ended: forever in a container whose first process is no init.
    """
    for lock in assembly.glob("*.lock"):
        # `read.PID.NUMBER.lock`, or `synth.lock` with the process id in it.
        pid = lock.name.split(".")[1] if lock.name.startswith("read.") else lock.read_text().strip()
        status = Path("/proc", pid, "stat")
        # State Z in /proc: it has ended, and nobody has asked how. The name before it may hold brackets of its own.
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
                # read1 returns what is there; read would wait for a whole block.
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
