"""A story: a scenario's page, executed as a user would, and compared with what the API server holds.

A block of commands is typed line by line. Each table after it, up to the next block, is what the cluster must come to,
as the API server has it: a table whose first column is `Job` has all jobs, one of `Team` all quotas of
Kueue, one of `Project` all of KAI's, and one of `UltraServer` all of these. One of `Slurm job` has what squeue shows,
as `podwright jobs` reads it.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from cluster_tables import ClusterTables, disagreements
from podwright.operations.aws import sandbox_server as server
from podwright.operations.programs.helm import tool
from waiting import CEILING_SECONDS, until

_PART: Final = re.compile(r"^```\n(?P<block>.*?)^```$|^(?P<table>\|.*?)^(?!\|)", re.MULTILINE | re.DOTALL)
_FILE: Final = re.compile(r"\(\.\./\.\./environments/([\w-]+\.yaml)\)")
_RULE: Final = re.compile(r"\|[-|: ]+\|")
_COMMAND_SECONDS: Final = CEILING_SECONDS
_POLL_SECONDS: Final = 1.0
_MOVING: Final = "the cluster changes while its numbers are read"

ROOT: Final = Path(__file__).resolve().parents[2]
QUIET_SECONDS: Final = 10.0
"""Seconds in which nothing may happen, where a test shows that an engine is needed."""

Row = dict[str, str]


class Different(AssertionError):
    """The cluster did not come to what the story tells."""


@dataclass(frozen=True)
class Step:
    """Commands, and the tables that follow from them."""

    commands: list[str]
    tables: list[list[Row]] = field(default_factory=list)


def page(scenario: str) -> str:
    """What a scenario's page says."""
    return (ROOT / f"docs/scenarios/{scenario}.md").read_text(encoding="utf-8")


def story(scenario: str) -> list[Step]:
    """The steps of a scenario's page. The first is how one gets there; it has no tables."""
    steps: list[Step] = []
    for part in _PART.finditer(f"{page(scenario)}\n"):
        if part["block"]:
            steps.append(Step(part["block"].splitlines()))
        else:
            steps[-1].tables.append(_rows(part["table"]))
    return steps


def _rows(table: str) -> list[Row]:
    lines = [line for line in table.splitlines() if not _RULE.fullmatch(line)]
    titles, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [dict(zip(titles, row, strict=True)) for row in rows]


@contextmanager
def deployed(
    scenario: str,
    folder: Path,
    time_scale: float,
    changes: Mapping[str, str] | None = None,
    kubernetes: str = "real",
    left_out: Collection[str] = (),
    programs: Path | None = None,
    real_nodes: int = 0,
) -> Iterator["Terminal"]:
    """A terminal in a folder with the scenario's files, and with a sandbox of its own in which it is deployed.

    Args:
        scenario: The name of its page.
        folder: An empty one.
        time_scale: How fast the sandbox's clock goes.
        changes: Texts of the scenario's file, each there once, and what stands in their place.
        kubernetes: What clusters of the sandbox have.
        left_out: Commands of the page's first step that the story does without.
        programs: A folder of programs that come before others of their names.
        real_nodes: Nodes of each cluster whose containers run.
    """
    shutil.copytree(ROOT / "environments/shared", folder / "environments/shared")
    for name in set(_FILE.findall(page(scenario))):
        shutil.copy(ROOT / "environments" / name, folder / "environments")
    for old, new in (changes or {}).items():
        _replace(folder / f"environments/{scenario}.yaml", old, new)
    _share_assemblies(folder)
    server.start(folder, port=0, time_scale=time_scale, kubernetes=kubernetes, real_nodes=real_nodes)
    try:
        user = Terminal(folder, programs=programs)
        for command in story(scenario)[0].commands:
            if command not in left_out:
                user.type(command)
        yield user
    finally:
        server.stop(folder)


def _share_assemblies(project: Path) -> None:
    """Let the projects of all stories use one store, so that a scenario is synthesized once in a run."""
    shared = Path(os.environ["PODWRIGHT_TEST_ASSEMBLIES"], "stories")
    shared.mkdir(exist_ok=True)
    (project / ".podwright").mkdir()
    (project / ".podwright/assemblies").symlink_to(shared)


def _replace(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{old!r} in {file.name}"
    file.write_text(text.replace(old, new), encoding="utf-8")


@contextmanager
def standing_still(plane: Path, name: str) -> Iterator[None]:
    """A process of a control plane, by the plane's folder, stands still."""
    processes = json.loads((plane / "processes/processes.json").read_text(encoding="utf-8"))
    (pid,) = (process["pid"] for process in processes if process["name"] == name)
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@dataclass
class Terminal:
    """Where a user types: a folder with a project, and a shell."""

    folder: Path
    exported: dict[str, str] = field(default_factory=dict)
    """Variables that are set when the first command begins."""
    programs: Path | None = None
    """A folder of programs that come before others of their names."""
    where: Path | None = field(default=None, init=False)
    variables: dict[str, str] = field(default_factory=dict, init=False)
    """Where the last command ended, and the variables then; none before the first."""

    @property
    def plane(self) -> Path:
        """The folder of the only cluster's control plane."""
        return self.plane_of("")

    def plane_of(self, environment: str) -> Path:
        """The folder of the control plane of an environment's cluster."""
        (folder,) = (self.folder / server.STATE_DIRECTORY / "kubernetes").glob(f"*/*/{environment}*-eks-*")
        return folder

    def play(self, steps: list[Step], seconds: float = CEILING_SECONDS) -> None:
        """Type the commands of all steps.

        Raises:
            Different: A command failed, or the cluster did not come to a table in so many seconds.
        """
        for step in steps:
            for command in step.commands:
                self.type(command)
            self.wait(step.commands[-1], step.tables, seconds)
            if step.tables:
                self.check_numbers(step.commands[-1], seconds)

    def check_numbers(self, command: str, seconds: float = CEILING_SECONDS) -> None:
        """Wait until all of podwright's commands report the same numbers as the API server, and as each other.

        Raises:
            Different: Two of them did not agree in so many seconds.
        """
        if "KUBECONFIG" not in (self.variables or self.exported):
            return
        deadline = time.monotonic() + seconds
        while differences := self._disagreements():
            if time.monotonic() > deadline:
                raise Different(f"after `{command}`:\n" + "\n".join(f"    {each}" for each in differences))
            time.sleep(_POLL_SECONDS)

    def wait(self, command: str, tables: list[list[Row]], seconds: float = CEILING_SECONDS) -> None:
        """Wait for the tables that follow from a command.

        Raises:
            Different: The cluster did not come to one of them in so many seconds.
        """
        for table in tables:
            self._wait(command, table, seconds)

    def wait_for(self, job: str, state: str) -> None:
        """Wait until a job has a state, as `kubectl get` prints it."""

        def states() -> dict[str, str]:
            time.sleep(_POLL_SECONDS)
            return {row["Job"]: row["State"] for row in self._cluster.rows("Job")}

        until(lambda: states().get(job) == state, lambda: f"{job} is not {state}: {states()}")

    def comes_to(self, step: Step, row: str) -> None:
        """Type the commands of a step, and wait for a row that the page does not have."""
        assert row not in "".join(map(_lines, step.tables)), "the page tells the same"
        for command in step.commands:
            self.type(command)

        def tables() -> str:
            # Until it has come to that.
            time.sleep(_POLL_SECONDS)
            return "\n".join(_lines(self._table(table)) for table in step.tables)

        until(lambda: row in tables(), lambda: f"after `{step.commands[-1]}`:\n{tables()}\n  expected:\n    {row}")

    def type(self, command: str) -> str:
        """Carry out one line. Returns its output. Raises Different where it fails."""
        result = self.run(command)
        if result.returncode:
            raise Different(f"$ {command}\n{result.stdout}{result.stderr}")
        return result.stdout

    def run(self, command: str, seconds: float = _COMMAND_SECONDS) -> subprocess.CompletedProcess[str]:
        """Carry out one line in a shell that continues the last one: in its folder, with what it exported.

        Raises:
            subprocess.TimeoutExpired: it took longer than so many seconds.
        """
        programs = [self.programs, Path(sys.executable).parent, tool("kubectl").parent, os.environ["PATH"]]
        path = os.pathsep.join(str(folder) for folder in programs if folder)
        first = os.environ | {"CDK_HOME": str(self.folder), "PATH": path} | self.exported
        with tempfile.NamedTemporaryFile() as state:
            process = subprocess.Popen(
                ["bash", "-c", f"{command}\nstatus=$?\n{{ pwd; env -0; }} >{state.name}\nexit $status"],
                cwd=self.where or self.folder,
                env=self.variables or first,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
            try:
                output, errors = process.communicate(timeout=seconds)
            except (subprocess.TimeoutExpired, KeyboardInterrupt):
                # With what it started: that would write on into a folder that is about to be deleted.
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                raise
            result = subprocess.CompletedProcess(command, process.returncode, output, errors)
            where, _, variables = state.read().decode().partition("\n")
        # A shell that somebody killed, or that left with `exit`, says neither; the next one continues the last.
        if where:
            self.where = Path(where)
            self.variables = dict(item.split("=", 1) for item in variables.split("\0") if item)
        return result

    def delete_jobs(self) -> None:
        """Delete what was submitted, of every kind."""
        self._cluster.delete_jobs()

    def deploy_changed(self, scenario: str, old: str, new: str) -> None:
        """Change a text of the scenario's file, where it is there once, and deploy that."""
        _replace(self.folder / f"environments/{scenario}.yaml", old, new)
        self.type(f"podwright deploy {scenario} --sandbox")

    def _wait(self, command: str, expected: list[Row], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while (actual := self._table(expected)) != expected:
            if time.monotonic() > deadline:
                raise Different(f"after `{command}`:\n{_lines(actual)}\n  expected:\n{_lines(expected)}")
            time.sleep(_POLL_SECONDS)

    def _table(self, expected: list[Row]) -> list[Row]:
        """A table as the cluster has it, with the columns and in the order of the expected one."""
        first, *columns = expected[0]
        rows = self._slurm_jobs() if first == "Slurm job" else self._cluster.rows(first)
        actual = {row[first]: row for row in rows}
        order = [row[first] for row in expected if row[first] in actual]
        names = [*order, *sorted(actual.keys() - order)]
        return [{first: name, **{column: actual[name][column] for column in columns}} for name in names]

    @property
    def _cluster(self) -> ClusterTables:
        """The cluster that kubectl reads, as its administrator reads it."""
        environment = Path((self.variables or self.exported)["KUBECONFIG"]).name
        return ClusterTables(self.plane_of(environment) / "keys/admin.kubeconfig")

    def _disagreements(self) -> list[str]:
        """The numbers on which podwright's commands and the API server disagree now."""
        before = self._cluster.numbers()
        listed = self._answer("jobs", "--by-priority")
        why = {name: self._answer("why", name) for name in _to_explain(listed["jobs"])}
        status = self._answer("status", "--watch", "--times", "1")
        # Numbers that change while they are read cannot be compared.
        return disagreements(before, listed, why, status["teams"]) if before == self._cluster.numbers() else [_MOVING]

    def _answer(self, verb: str, *words: str) -> dict[str, Any]:
        """The answer of a command about the cluster that kubectl reads."""
        name = Path((self.variables or self.exported)["KUBECONFIG"]).name
        return json.loads(self.type(" ".join(("podwright", verb, name, *words, "--sandbox", "--json"))))

    def _slurm_jobs(self) -> Iterator[Row]:
        """One row for each job that waits or runs."""
        (file,) = (self.folder / "environments").glob("*.yaml")
        for job in json.loads(self.type(f"podwright jobs {file.stem} --sandbox --json"))["jobs"]:
            yield {
                "Slurm job": job["name"],
                "Account": job["account"],
                "State": job["state"],
                "GPUs": str(job["accelerators"]),
                "Reason": job["slurm_reason"],
            }


def _to_explain(jobs: list[dict[str, Any]]) -> list[str]:
    """The jobs for which `why` is compared: those without all that they ask for, and one of the others."""
    current = [job for job in jobs if job["state"] not in ("succeeded", "failed")]
    complete = [job["name"] for job in current if job["holds"] == job["asks"]]
    return [*(job["name"] for job in current if job["name"] not in complete), *complete[-1:]]


def _lines(rows: list[Row]) -> str:
    return "\n".join("    " + " | ".join(f"{column}: {value}" for column, value in row.items()) for row in rows)
