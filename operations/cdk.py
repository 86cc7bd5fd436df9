"""Running the CDK CLI for one environment of a project."""

import selectors
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from .account import Account
from .progress import Progress

_STOPPING_SECONDS = 20


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
        return subprocess.run(self._command(*arguments), cwd=self.project, env=self._variables()).returncode

    def follow(self, progress: Progress, *arguments: str, synthesize: bool = True) -> int:
        """Run, tell `progress` what happens, and return the exit code.

        With `synthesize=False` the templates of the synthesis before are used. An interrupt reaches the CLI as well; it
        is waited for, so that nothing goes on unseen.
        """
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with (
            self.log.open("ab") as log,
            subprocess.Popen(
                self._command(*arguments, synthesize=synthesize),
                cwd=self.project,
                env=self._variables(),
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
                return process.wait()
            except KeyboardInterrupt:
                try:
                    process.wait(_STOPPING_SECONDS)
                except subprocess.TimeoutExpired:
                    process.terminate()
                raise
            finally:
                progress.close()

    def _command(self, *arguments: str, synthesize: bool = True) -> list[str]:
        command = [sys.executable, "-I", "-m", "podwright.operations.node", *arguments]
        if not synthesize:
            return [*command, "--app", str(self.assembly)]
        if not (self.project / "cdk.json").is_file():
            command += ["--app", f'"{sys.executable}" -P -m podwright.bin.app']
        context = [word for key, value in self.context.items() for word in ("--context", f"{key}={value}")]
        return [*command, "--output", str(self.assembly), *context]

    def _variables(self) -> dict[str, str]:
        return {**self.account.variables, "PODWRIGHT_PYTHON": sys.executable}


def _lines(stream: IO[bytes], log: IO[bytes]) -> Iterator[str | None]:
    """Lines of a pipe, copied to `log`; None about once a second."""
    pending = b""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while True:
            if selector.select(timeout=1):
                chunk = stream.read1(65536)  # type: ignore[attr-defined]
                if not chunk:
                    break
                log.write(chunk)
                *lines, pending = (pending + chunk).split(b"\n")
                yield from (line.decode(errors="replace") for line in lines)
            yield None
    if pending:
        yield pending.decode(errors="replace")
