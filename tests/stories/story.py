"""Plays a scenario's page: runs its commands, and compares its tables with the API server's objects.

The commands of a block run line by line. The tables between a block and the next one are the state that the cluster
must reach. The first column of a table selects its rows: `Job` for all jobs, `Team` for all quotas of Kueue, `Project`
for all queues of KAI, `UltraServer` for all UltraServers, and `Slurm job` for the jobs of squeue as `podwright jobs`
reads them.
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
"""Seconds without any change, in tests that show that an engine is required."""

Row = dict[str, str]


class Different(AssertionError):
    """The cluster did not reach the state that the story shows."""


@dataclass(frozen=True)
class Step:
    """A block of commands and the tables that it leads to."""

    commands: list[str]
    tables: list[list[Row]] = field(default_factory=list)


def page(scenario: str) -> str:
    """Return the text of a scenario's page."""
    return (ROOT / f"docs/scenarios/{scenario}.md").read_text(encoding="utf-8")


def story(scenario: str) -> list[Step]:
    """Return the steps of a scenario's page. The first step deploys the scenario and has no tables."""
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
    """Deploy a scenario in a new sandbox, and yield a terminal in the folder of its project.

    Args:
        scenario: Name of its page.
        folder: Empty folder for the project.
        time_scale: Factor for the waits of the sandbox.
        changes: Replacements in the scenario's file, by the text to replace, which occurs once.
        kubernetes: Kind of the sandbox's clusters, `real`, `store` or `installed`.
        left_out: Commands of the page's first step that are not run.
        programs: Folder of programs that replace programs of the same names.
        real_nodes: Number of real nodes of each cluster.
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
    """Let the projects of all stories share one store, so that a test run synthesizes each scenario once."""
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
    """Stop a process of a control plane with SIGSTOP, and continue it at the end."""
    processes = json.loads((plane / "processes/processes.json").read_text(encoding="utf-8"))
    (pid,) = (process["pid"] for process in processes if process["name"] == name)
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@dataclass
class Terminal:
    """The terminal of a user: a shell in the folder of a project."""

    folder: Path
    exported: dict[str, str] = field(default_factory=dict)
    """Environment variables of the first command."""
    programs: Path | None = None
    """Folder of programs that replace programs of the same names."""
    where: Path | None = field(default=None, init=False)
    variables: dict[str, str] = field(default_factory=dict, init=False)
    """Working folder and environment variables after the last command; empty before the first."""

    @property
    def plane(self) -> Path:
        """The folder of the only cluster's control plane."""
        return self.plane_of("")

    def plane_of(self, environment: str) -> Path:
        """The folder of the control plane of an environment's cluster."""
        (folder,) = (self.folder / server.STATE_DIRECTORY / "kubernetes").glob(f"*/*/{environment}*-eks-*")
        return folder

    def play(self, steps: list[Step], seconds: float = CEILING_SECONDS) -> None:
        """Run the commands of all steps, and wait for their tables.

        Raises:
            Different: A command failed, or the cluster did not reach the state of a table within `seconds`.
        """
        for step in steps:
            for command in step.commands:
                self.type(command)
            self.wait(step.commands[-1], step.tables, seconds)
            if step.tables:
                self.check_numbers(step.commands[-1], seconds)

    def check_numbers(self, command: str, seconds: float = CEILING_SECONDS) -> None:
        """Wait until all of podwright's commands report the same numbers as the API server and as each other.

        Raises:
            Different: Two of them still disagreed after `seconds`.
        """
        if "KUBECONFIG" not in (self.variables or self.exported):
            return
        deadline = time.monotonic() + seconds
        while differences := self._disagreements():
            if time.monotonic() > deadline:
                raise Different(f"after `{command}`:\n" + "\n".join(f"    {each}" for each in differences))
            time.sleep(_POLL_SECONDS)

    def wait(self, command: str, tables: list[list[Row]], seconds: float = CEILING_SECONDS) -> None:
        """Wait for the tables that a command leads to.

        Raises:
            Different: The cluster did not reach the state of one of them within `seconds`.
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
        """Run the commands of a step, and wait for a row that the page does not contain."""
        assert row not in "".join(map(_lines, step.tables)), "the page tells the same"
        for command in step.commands:
            self.type(command)

        def tables() -> str:
            # Between two reads.
            time.sleep(_POLL_SECONDS)
            return "\n".join(_lines(self._table(table)) for table in step.tables)

        until(lambda: row in tables(), lambda: f"after `{step.commands[-1]}`:\n{tables()}\n  expected:\n    {row}")

    def type(self, command: str) -> str:
        """Run one line and return its output. Raises Different if it fails."""
        result = self.run(command)
        if result.returncode:
            raise Different(f"$ {command}\n{result.stdout}{result.stderr}")
        return result.stdout

    def run(self, command: str, seconds: float = _COMMAND_SECONDS) -> subprocess.CompletedProcess[str]:
        """Run one line in the working folder and with the environment variables that the last one ended with.

        Raises:
            subprocess.TimeoutExpired: It took longer than `seconds`.
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
                # Its child processes, too: they would write into a folder that is about to be deleted.
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                raise
            result = subprocess.CompletedProcess(command, process.returncode, output, errors)
            where, _, variables = state.read().decode().partition("\n")
        # A shell that was killed or ran `exit` reports neither; the next one uses the former values.
        if where:
            self.where = Path(where)
            self.variables = dict(item.split("=", 1) for item in variables.split("\0") if item)
        return result

    def delete_jobs(self) -> None:
        """Delete the submitted jobs of all kinds."""
        self._cluster.delete_jobs()

    def deploy_changed(self, scenario: str, old: str, new: str) -> None:
        """Replace a text that occurs once in the scenario's file, and deploy the changed file."""
        _replace(self.folder / f"environments/{scenario}.yaml", old, new)
        self.type(f"podwright deploy {scenario} --sandbox")

    def _wait(self, command: str, expected: list[Row], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while (actual := self._table(expected)) != expected:
            if time.monotonic() > deadline:
                raise Different(f"after `{command}`:\n{_lines(actual)}\n  expected:\n{_lines(expected)}")
            time.sleep(_POLL_SECONDS)

    def _table(self, expected: list[Row]) -> list[Row]:
        """Return the cluster's state as a table, with the columns and the order of the expected one."""
        first, *columns = expected[0]
        rows = self._slurm_jobs() if first == "Slurm job" else self._cluster.rows(first)
        actual = {row[first]: row for row in rows}
        order = [row[first] for row in expected if row[first] in actual]
        names = [*order, *sorted(actual.keys() - order)]
        return [{first: name, **{column: actual[name][column] for column in columns}} for name in names]

    @property
    def _cluster(self) -> ClusterTables:
        """Return the tables of the cluster that KUBECONFIG selects, as its administrator."""
        environment = Path((self.variables or self.exported)["KUBECONFIG"]).name
        return ClusterTables(self.plane_of(environment) / "keys/admin.kubeconfig")

    def _disagreements(self) -> list[str]:
        """Return the numbers on which podwright's commands and the API server disagree now."""
        before = self._cluster.numbers()
        listed = self._answer("jobs", "--by-priority")
        why = {name: self._answer("why", name) for name in _to_explain(listed["jobs"])}
        status = self._answer("status", "--watch", "--times", "1")
        # Numbers that change between two reads cannot be compared.
        return disagreements(before, listed, why, status["teams"]) if before == self._cluster.numbers() else [_MOVING]

    def _answer(self, verb: str, *words: str) -> dict[str, Any]:
        """Return the JSON output of a command about the cluster that KUBECONFIG selects."""
        name = Path((self.variables or self.exported)["KUBECONFIG"]).name
        return json.loads(self.type(" ".join(("podwright", verb, name, *words, "--sandbox", "--json"))))

    def _slurm_jobs(self) -> Iterator[Row]:
        """Yield a row for each waiting or running job."""
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
    """Return the jobs for which `why` is compared: all that lack some of their request, and one that has all of it."""
    current = [job for job in jobs if job["state"] not in ("succeeded", "failed")]
    complete = [job["name"] for job in current if job["holds"] == job["asks"]]
    return [*(job["name"] for job in current if job["name"] not in complete), *complete[-1:]]


def _lines(rows: list[Row]) -> str:
    return "\n".join("    " + " | ".join(f"{column}: {value}" for column, value in row.items()) for row in rows)
