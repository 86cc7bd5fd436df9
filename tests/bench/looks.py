"""What the commands cost that a user repeats while editing: processor seconds of each command with all its processes.

`prod` and `two-teams` are deployed in a sandbox whose Kubernetes is a store. The sandbox is a service: a column of its
own has its seconds, and those of a command do not include them.
"""

import argparse
import asyncio
import os
import re
import shutil
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mcp import Client, StdioServerParameters

import status_cost
from agents.server_costs import COMMAND
from podwright.operations.aws import sandbox_server as server
from table import Report, markdown, verdict
from timing import ROOT, measure, run_once
from tree import PROGRAM, descendants, seconds_of

SECOND_DIFF: Final = 1.2
EDITED_DIFF: Final = 7.0
UNCHANGED_DEPLOY: Final = 5.0
AGENT_CALL: Final = 1.5
EDITED_LINE: Final = re.compile(r"(burst: \{.*?count: )(\d+)")
"""The number of nodes that each further `diff` finds changed."""


@dataclass(frozen=True)
class Measured:
    """Processor seconds of one command or call, by run."""

    name: str
    seconds: tuple[float, ...]
    sandbox: tuple[float, ...]
    """Seconds that the sandbox used meanwhile."""
    limit: float | None
    """Upper bound on the median; None where the row is there to compare."""

    @property
    def median(self) -> float:
        """Median seconds without the sandbox."""
        return statistics.median(self.seconds)

    @property
    def is_kept(self) -> bool:
        """True if the median is within the limit, or no limit applies."""
        return self.limit is None or self.median <= self.limit

    @property
    def cells(self) -> list[str]:
        """The row of the table."""
        text = f"{self.median:.2f} s ({min(self.seconds):.2f}–{max(self.seconds):.2f})"
        limit = ("to compare", "") if self.limit is None else (f"≤ {self.limit:g} s", verdict(self.median, self.limit))
        return [self.name, text, f"{statistics.median(self.sandbox):.2f} s", *limit]


def report(folder: Path, args: argparse.Namespace) -> Report:
    """The table of repeated commands, and the row of `status` at 3,125 nodes."""
    project = folder / "looks"
    measure([*COMMAND, "init", str(project), "--scenario", "two-teams"], runs=1, warm_ups=0)
    shutil.copytree(ROOT / "environments" / "shared", project / "environments" / "shared", dirs_exist_ok=True)
    file = project / "environments" / "prod.yaml"
    shutil.copy(ROOT / "environments" / "prod.yaml", file)
    running = server.start(project, port=0, kubernetes="store")
    try:
        rows = _commands(project, file, running.pid, args.runs)
        rows += asyncio.run(_agent_calls(project, running.pid, args.runs))
    finally:
        server.stop(project)
    table = markdown(
        ["command", "processor time, median (range)", "of the sandbox", "limit", ""], [row.cells for row in rows]
    )
    refresh, is_quick = status_cost.largest(folder, args.runs)
    return Report(f"{table}\n\n{refresh}", is_quick and all(row.is_kept for row in rows))


def _commands(project: Path, file: Path, sandbox: int, runs: int) -> list[Measured]:
    """`diff` and `deploy` as commands."""
    options = ("--sandbox", "--project", str(project))

    def command(*words: str) -> Callable[[], float]:
        return lambda: run_once([*COMMAND, *words, *options], {"NO_COLOR": "1"}, project).processor

    text = file.read_text()
    first = int(_edited_line(text)[2])

    def edited() -> float:
        now = int(_edited_line(file.read_text())[2])
        file.write_text(EDITED_LINE.sub(rf"\g<1>{now + 1}", text, count=1))
        return command("diff", "prod")()

    for name in ("two-teams", "prod"):
        command("deploy", name, "--yes")()
    rows = [
        _measured("`diff prod`, the first after a deployment", command("diff", "prod"), sandbox, 1, None),
        _measured("`diff prod`, again", command("diff", "prod"), sandbox, runs, SECOND_DIFF),
        _measured("`diff prod` after a one-line edit", edited, sandbox, runs, EDITED_DIFF),
    ]
    assert int(_edited_line(file.read_text())[2]) == first + runs
    file.write_text(text)
    deploy = command("deploy", "two-teams", "--yes")
    return [*rows, _measured("`deploy two-teams`, nothing changed", deploy, sandbox, runs, UNCHANGED_DEPLOY)]


def _edited_line(text: str) -> re.Match[str]:
    match = EDITED_LINE.search(text)
    if match is None:
        raise ValueError("environments/prod.yaml has no group `burst` with a count in its line")
    return match


def _measured(name: str, run: Callable[[], float], sandbox: int, runs: int, limit: float | None) -> Measured:
    seconds, used = list[float](), list[float]()
    for _ in range(runs):
        before = seconds_of(sandbox)
        seconds.append(run())
        used.append(seconds_of(sandbox) - before)
    return Measured(name, tuple(seconds), tuple(used), limit)


async def _agent_calls(project: Path, sandbox: int, runs: int) -> list[Measured]:
    """`diff` and `report` of an MCP server that runs, after one call of each."""
    words = [*PROGRAM[1:], str(project / "mcp.json"), *COMMAND, "mcp", "--project", str(project), "--sandbox"]
    parameters = StdioServerParameters(command=PROGRAM[0], args=words, env=dict(os.environ), cwd=project)
    rows = []
    earlier = set(descendants(os.getpid()))
    async with Client(parameters) as client:
        (process,) = [pid for pid in descendants(os.getpid()) if pid not in earlier and _is_program(pid)]
        for tool in ("diff", "report"):
            seconds, used = list[float](), list[float]()
            for _ in range(runs + 1):
                before, sandbox_before = seconds_of(process), seconds_of(sandbox)
                result = await client.call_tool(tool, {"environment": "prod"})
                if result.is_error:
                    raise RuntimeError(f"{tool}: {result.structured_content}")
                seconds.append(seconds_of(process) - before)
                used.append(seconds_of(sandbox) - sandbox_before)
            name = f"`{tool}` of `podwright mcp`, prod, after the first"
            rows.append(Measured(name, tuple(seconds[1:]), tuple(used[1:]), AGENT_CALL))
    return rows


def _is_program(pid: int) -> bool:
    """True if a process counts the server, rather than being the server or one of its children."""
    return PROGRAM[-1].encode() in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
