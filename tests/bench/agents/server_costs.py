"""What `podwright mcp` costs: the start, the list of tools in a model's context, and each tool on `prod`."""

import argparse
import asyncio
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

from mcp import Client, StdioServerParameters

from podwright.operations.aws import sandbox_server as server
from table import Report, markdown, verdict
from timing import ROOT, Timing, measure

COMMAND: Final = (sys.executable, "-P", "-m", "podwright.operations.cli")
FIRST_SECONDS: Final = 5.0
"""A client that starts a server shows nothing until then."""
BYTES: Final = {"--allow-changes": 48 * 1024, "": 42 * 1024}
"""Of the list of tools, by option; a token is about four."""
PLAIN: Final = "prod"
RUNS_ON_IT: Final = "fine-tune"
RUNNING_SECONDS: Final = 600.0
CALLS: Final[Mapping[str, Mapping[str, Any]]] = {
    "list_environments": {},
    "explain": {"id": "NET003"},
    "size": {"parameters": "70B"},
    "simulate": {"environment": PLAIN, "generate": "3d"},
    "capacity_search": {"environment": "sandbox", "plan": "pilot"},
    "propose_edit": {
        "environment": PLAIN,
        "settings": [{"path": "instance_groups.h200.count", "value": 17}],
        "reason": "a spare",
    },
    "why": {"environment": PLAIN, "job": RUNS_ON_IT},
    "logs": {"environment": PLAIN, "job": RUNS_ON_IT, "rank": 8},
    "forecast": {"environment": PLAIN, "job": "pretrain"},
    **{
        name: {"environment": PLAIN}
        for name in (
            *("show_environment", "check", "cost", "quotas", "alerts", "gates", "render", "report", "diff"),
            *("preflight", "status", "drift", "jobs", "doctor", "spend", "bench", "upgrade_plan"),
        )
    },
}
"""One call of each tool that reads."""


def start_report(folder: Path, args: argparse.Namespace) -> Report:
    """The start of the server, and its lists of tools, with what they may take."""
    measure([*COMMAND, "init", str(folder)], runs=1, warm_ups=0)
    first = asyncio.run(_first_answers(folder, args.runs))
    sizes = {option: asyncio.run(_size(folder, option)) for option in BYTES}
    retained = first.processor <= FIRST_SECONDS and all(size <= BYTES[option] for option, (_, size) in sizes.items())
    low, high = min(first.processor_seconds), max(first.processor_seconds)
    processor = f"{first.processor:.2f} s ({low:.2f}–{high:.2f})"
    row = (str(first), processor, f"≤ {FIRST_SECONDS:g} s of a processor", verdict(first.processor, FIRST_SECONDS))
    start = markdown(("to the first answer (`list_environments`)", "of a processor", "limit", ""), [row])
    rows = []
    for option, (count, size) in sizes.items():
        budget = BYTES[option]
        name = f"`podwright mcp {option}`".replace(" `", "`")
        rows.append((name, str(count), f"{size:,}", f"{size // 4:,}", f"≤ {budget:,} bytes", verdict(size, budget)))
    lists = markdown(("list of tools", "tools", "bytes", "tokens, at four bytes", "budget", ""), rows)
    return Report(f"{start}\n\n{lists}", retained)


def report(folder: Path, args: argparse.Namespace) -> Report:
    """Each tool; `prod` is deployed in the sandbox, so what asks AWS asks a stand-in on this machine.

    Its Kubernetes is a real control plane, on which a job runs.
    """
    measure([*COMMAND, "init", str(folder)], runs=1, warm_ups=0)
    shutil.copytree(ROOT / "environments/shared", folder / "environments/shared")
    shutil.copy(ROOT / "environments/prod.yaml", folder / "environments")
    # A plan that nobody has bought is an error of its file, so it stands in that of `podwright init`.
    with (folder / "environments/sandbox.yaml").open("a") as file:
        file.write("training_plans: {pilot: {zone: usw2-az1, instance_type: ml.trn1.32xlarge, count: 4, days: 14}}\n")
    server.start(folder, port=0, kubernetes="real")
    try:
        for words in (("deploy", PLAIN), ("submit", PLAIN, RUNS_ON_IT)):
            measure([*COMMAND, *words, "--sandbox", "--project", str(folder)], runs=1, warm_ups=0)
        _wait_until_it_runs(folder)
        times = asyncio.run(_times(folder, args.runs))
    finally:
        server.stop(folder)
    rows = [(f"`{name}`", str(took), f"{size:,}") for name, (took, size) in times.items()]
    return Report(markdown(("tool", "seconds", "bytes of the reply"), rows), True)


def _wait_until_it_runs(folder: Path) -> None:
    """Return once the job runs. Raises RuntimeError where it does not come to that."""
    end = time.monotonic() + RUNNING_SECONDS
    command = [*COMMAND, "jobs", PLAIN, "--sandbox", "--json", "--project", str(folder)]
    while True:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        states = {job["name"]: job["state"] for job in json.loads(done.stdout)["jobs"]}
        if states[RUNS_ON_IT] == "running":
            return
        if time.monotonic() > end:
            raise RuntimeError(f"{RUNS_ON_IT} is {states[RUNS_ON_IT]} after {RUNNING_SECONDS:g} s")
        time.sleep(1)


def _server(folder: Path, *options: str) -> StdioServerParameters:
    words = [*COMMAND[1:], "mcp", "--project", str(folder), *filter(None, options)]
    return StdioServerParameters(command=COMMAND[0], args=words, env=dict(os.environ), cwd=folder)


async def _first_answers(folder: Path, runs: int) -> Timing:
    seconds, used = [], []
    for _ in range(runs + 1):
        began, before = time.perf_counter(), _used()
        async with Client(_server(folder)) as client:
            await client.call_tool("list_environments", {})
            seconds.append(time.perf_counter() - began)
        used.append(_used() - before)
    return Timing(tuple(seconds[1:]), 0, tuple(used[1:]))


def _used() -> float:
    """Seconds that processes which have ended had of a processor."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


async def _size(folder: Path, option: str) -> tuple[int, int]:
    """How many tools there are, and the bytes of what a client puts into a model's context."""
    async with Client(_server(folder, option)) as client:
        tools = (await client.list_tools()).tools
    listed = [tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in tools]
    return len(tools), len(json.dumps(listed, ensure_ascii=False).encode())


async def _times(folder: Path, runs: int) -> dict[str, tuple[Timing, int]]:
    """Seconds of each tool in a server that runs, after one call, and how long its reply is."""
    results = {}
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(Client(_server(folder, "--sandbox")))
        for name, arguments in CALLS.items():
            seconds, size = [], 0
            for _ in range(runs + 1):
                began = time.perf_counter()
                result = await client.call_tool(name, dict(arguments))
                seconds.append(time.perf_counter() - began)
                if result.is_error:
                    raise RuntimeError(f"{name}: {result.structured_content}")
                size = len(json.dumps(result.structured_content, ensure_ascii=False).encode())
            results[name] = Timing(tuple(seconds[1:]), 0), size
    return results
