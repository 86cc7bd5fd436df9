"""Carrying out the steps of a promotion: each once for its content, in order, and none on top of a failure.

Everything that has to survive is written before it is relied on: that a step began before its commands start, that it
passed only when all have returned 0. So a promotion that dies anywhere is started again with the same command. What was
under way then runs again: commands bear that, a deployment waits for what CloudFormation is still doing, and a training
plan that was bought is found by its name.
"""

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from ...config.errors import CommandError, PodwrightError
from ...config.loading.project import Project
from ...planning.delivery.pipeline_steps import EVIDENCE, Step, stages
from .content import Content
from .record import Entry, Record

LOGS: Final = ".podwright/logs"
_TAIL: Final = 12
_POLL_SECONDS: Final = 0.2
_OWN: Final = "podwright"


class StepFailed(PodwrightError):
    """A step did not pass."""

    def __init__(self, step: Step, entry: Entry, last: Sequence[str]) -> None:
        super().__init__(step.name)
        self.step, self.entry, self.last = step, entry, last


@dataclass(frozen=True, slots=True)
class Promotion:
    """A run of `podwright promote`."""

    project: Path
    steps: tuple[Step, ...]
    """All steps, in order."""
    chosen: frozenset[str]
    """Names of those that this run is about."""
    content: Content
    read_content: Callable[[], Content]
    """Reads the files again."""
    record: Record
    tell: Callable[..., None]
    """Takes what happens: a word and values."""
    show: Callable[[str], None]
    """Takes what commands print."""
    by: str
    prepare: Callable[[str], None] = lambda environment: None
    """Called with an environment before it is looked at."""
    sandbox: bool = False
    profiles: Mapping[str, str] = field(default_factory=dict)
    """AWS profile of each environment that has one of its own."""

    def state(self, step: Step) -> Entry | None:
        """The entry of a step for this content, where it still says something about its environment."""
        entry = self.record.of(step.name, self.content.of(step.environment))
        if entry and step.environment and step.kind not in ("approval", "drift"):
            return None if self.record.overtaken(entry, f"{step.environment}.deploy") else entry
        return entry

    def forget(self) -> None:
        """Let the chosen steps run again."""
        for step in self.steps:
            entry = self.record.of(step.name, self.content.of(step.environment))
            if step.name in self.chosen and entry:
                # The entry of this content alone; what other content has passed stays proved.
                self.record.store.remove(f"{step.name}/{entry.content}.json")

    def run(self, approve: Callable[[Step], str | None], lock: int) -> bool:
        """Carry out what is missing. Returns False where a person has to approve first.

        Args:
            approve: Gives who approves a stage, or None where nobody can be asked.
            lock: File descriptor that commands inherit.

        Raises:
            StepFailed: a step did not pass; nothing that needs it was begun.
            CommandError: a stage before those that were chosen is not proved, or files changed meanwhile.
        """
        self._prove()
        for step in self.steps:
            if step.name not in self.chosen:
                continue
            entry = self.state(step)
            if entry and entry.state == "passed":
                self.tell("skipped", step=step.name, passed=_moment(entry.ended), commit=entry.commit)
                continue
            # Before each step, as hours may have passed since the last one.
            self._unchanged()
            if step.kind == "approval":
                who = approve(step)
                if who is None:
                    self.tell("waiting", step=step.name, evidence=self.to_read(step))
                    return False
                self.tell("approved", step=step.name, by=who)
                timestamp = time.time()
                self.record.put(replace(self._entry(step), state="passed", by=who, began=timestamp, ended=timestamp))
            else:
                self._carry_out(step, lock)
        return True

    def _prove(self) -> None:
        """Stop unless all that the chosen steps need, and that is not chosen itself, passed for this content."""
        for step in self.steps:
            for need in (name for name in step.needs if step.name in self.chosen and name not in self.chosen):
                needed = next(other for other in self.steps if other.name == need)
                entry = self.record.of(need, self.content.of(needed.environment))
                if entry is None or entry.state != "passed":
                    what = f"{need} has {'failed' if entry and entry.state == 'failed' else 'not passed'}"
                    other = self.record.last_passed(need, self.content.of(needed.environment))
                    proved = f"; what it last proved is commit {_short(other.commit)}" if other else ""
                    raise CommandError(
                        f"{step.name} needs {need}, and {what} for these files{proved}",
                        f"`podwright promote --from {needed.environment}` proves them first",
                    )

    def _unchanged(self) -> None:
        now = self.read_content()
        if now != self.content:
            raise CommandError(
                "files of the project changed during the promotion, so its stages would get different things",
                "run `podwright promote` again: it begins with what the new files have not passed",
            )

    def _entry(self, step: Step) -> Entry:
        # Written before the step begins: should this process die, the entry says what was under way.
        return Entry(step.name, self.content.of(step.environment), "started", time.time(), self.by, self.content.commit)

    def _carry_out(self, step: Step, lock: int) -> None:
        """Run the commands of a step until one fails, and record how it ended. Raises StepFailed."""
        if step.kind == "preflight" and step.environment:
            self.prepare(step.environment)
        entry = self._entry(step)
        log = self.project / LOGS / f"promote-{step.name}-{datetime.now().astimezone():%Y%m%d-%H%M%S}.log"
        shown = str(log.relative_to(self.project))
        self.record.put(entry)
        self.tell("started", step=step.name, commands=[self._line(step, line) for line in step.commands], log=shown)
        code = 0
        for line in step.commands:
            if code := self._command(step, line, log, lock):
                break
        ended = replace(
            entry,
            state="failed" if code else "passed",
            ended=time.time(),
            code=code or None,
            evidence=(shown, *self._written(step, entry.began)),
        )
        self.record.put(ended)
        if code:
            last = log.read_text(encoding="utf-8", errors="replace").rstrip().splitlines()[-_TAIL:]
            raise StepFailed(step, ended, last)
        seconds = round((ended.ended or 0) - ended.began, 1)
        self.tell("passed", step=step.name, seconds=seconds, evidence=list(ended.evidence))

    def _line(self, step: Step, line: str) -> str:
        """A command line as this run has it."""
        # Checks and tests look at files alone and know no sandbox.
        if not self.sandbox or step.kind in ("check", "tests") or line.split()[0] != _OWN:
            return line
        return f"{line} {'--stand-in' if step.kind == 'synth' else '--sandbox'}"

    def _command(self, step: Step, line: str, log: Path, lock: int) -> int:
        """Run one command line in the project, with its output in the log. Returns its exit code.

        The output goes to a file and not to a pipe, so that a command outlives a promotion that is killed.
        """
        words = self._line(step, line)
        own = words.split()[0] == _OWN
        # By this Python, whatever `podwright` is on PATH.
        program = [sys.executable, "-P", "-m", "podwright.operations.cli", *shlex.split(words)[1:]] if own else words
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a+b", buffering=0) as output:
            output.write(f"$ {words}\n".encode())
            output.seek(0, os.SEEK_END)
            with log.open("rb") as reading:
                reading.seek(0, os.SEEK_END)
                process = subprocess.Popen(
                    program,
                    # A command of the user's is a line of shell; ours are words, which no shell has to read.
                    shell=not own,
                    cwd=self.project,
                    env=self._variables(step),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    # The lock lives as long as any process that has the descriptor, so it covers a command that
                    # outlives this one.
                    pass_fds=(lock,),
                )
                try:
                    while True:
                        try:
                            process.wait(_POLL_SECONDS)
                        except subprocess.TimeoutExpired:
                            self._copy(reading)
                        else:
                            break
                except KeyboardInterrupt:
                    # A terminal interrupts the command as well; it is waited for, so that nothing continues unseen.
                    process.wait()
                    raise
                self._copy(reading)
        return process.returncode

    def _copy(self, reading: Any) -> None:
        for line in reading:
            self.show(line.decode(errors="replace").rstrip("\n"))

    def _variables(self, step: Step) -> dict[str, str]:
        profile = self.profiles.get(step.environment or "")
        chosen = {"AWS_PROFILE": profile} if profile else {}
        # Without it a command's lines come when it ends.
        return {**os.environ, **chosen, "PYTHONUNBUFFERED": "1"}

    def _written(self, step: Step, since: float) -> list[str]:
        """What a step left as evidence."""
        folder = self.project / EVIDENCE / (step.environment or "")
        if not step.environment or not folder.is_dir():
            return []
        # File systems keep times in whole seconds, some of them.
        files = sorted(file for file in folder.rglob("*") if file.is_file() and file.stat().st_mtime >= since - 1)
        return [str(file.relative_to(self.project)) for file in files]

    def to_read(self, approval: Step) -> list[str]:
        """What the one who approves should read."""
        entries = [self.record.of(name, self.content.of(name.rpartition(".")[0])) for name in approval.needs]
        return sorted({file for entry in entries if entry for file in entry.evidence})


def chosen_steps(
    project: Project, ordered: tuple[Step, ...], first_environment: str | None, last_environment: str | None
) -> frozenset[str]:
    """The names of the steps from the first to the last stage that is named; of all where none is.

    Raises:
        CommandError: the project has no order of promotion, or the names are not in it.
    """
    order = stages(project.settings, project.names)
    named = project.settings.environments or (project.settings.pipeline and project.settings.pipeline.stages)
    if not named and len(project.names) > 1:
        known = ", ".join(project.names)
        raise CommandError(
            f"podwright.yaml does not say in which order to promote {known}",
            "write `environments: [dev, staging, prod]` there, or stages under `pipeline:`",
            2,
        )
    # Reversed, so that an environment which stands in two stages counts with the first.
    ranks = {name: rank for rank, stage in reversed(list(enumerate(order))) for name in stage.environments}
    for name in filter(None, (first_environment, last_environment)):
        if name not in ranks:
            promoted = ", ".join(name for stage in order for name in stage.environments)
            raise CommandError(f"{name!r} is not promoted", f"podwright.yaml promotes {promoted}", 2)
    first = ranks[first_environment] if first_environment else 0
    last = ranks[last_environment] if last_environment else len(order) - 1
    if first > last:
        raise CommandError(f"{last_environment} comes before {first_environment}", "--from names the earlier one", 2)
    names = {stage.name for stage in order[first : last + 1]}
    return frozenset(step.name for step in ordered if step.stage is None or step.stage in names)


def advice(promotion: Promotion, failed: StepFailed) -> list[str]:
    """What to do about a step that did not pass, in sentences: what is untouched, how to continue, how to go back."""
    step, content = failed.step, promotion.content
    untouched = [
        other.environment
        for other in promotion.steps
        if other.kind == "deploy" and other.environment and promotion.state(other) is None
    ]
    message = [f"not touched: {', '.join(untouched)}"] if untouched else []
    if step.kind == "effects":
        file = f"environments/{step.environment}.yaml"
        message.append(
            f"look at {EVIDENCE}/{step.environment}/effects.json; approve what it names in {file}, or undo it"
        )
    elif step.kind in ("deploy", "gate"):
        message.append(f"`podwright doctor {step.environment}` looks for the cause")
    message.append(
        "fix the cause and run `podwright promote` again: it continues here and repeats nothing that has passed"
    )
    if step.environment and step.kind in ("deploy", "gate"):
        gate = f"{step.environment}.gate"
        good = promotion.record.last_passed(gate, content.of(step.environment))
        if good and good.commit:
            message.append(
                f"or return to an earlier commit: `git switch --detach {_short(good.commit)}`, the last commit that "
                f"{step.environment} passed with ({_moment(good.began)}), then run "
                f"`podwright promote --to {step.environment}`"
            )
        else:
            message.append(f"{step.environment} has not passed with an earlier commit")
    return message


def _short(commit: str | None) -> str:
    return commit[:12] if commit else "unknown"


def _moment(seconds: float | None) -> str | None:
    return datetime.fromtimestamp(seconds).astimezone().isoformat(timespec="seconds") if seconds else None
