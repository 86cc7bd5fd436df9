"""What only an account knows: the cluster as it is, windows of its plans, what nodes measured, what would change."""

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ...planning.node.benchmark_results import BenchmarkResults
from ..aws.account import Account, account_of
from ..aws.clusters import nodes
from ..benchmarks.command import published
from ..capacity.plans import account_plans
from ..cdk.progress import Progress
from ..live.reader import Live
from ..output.moving import under_way
from ..programs.process import followed
from .scene import Data, Scene


def observed(scene: Scene, project: Path, name: str, sandbox: bool, progress: Progress) -> Scene:
    """The scene with what the account says of it. What cannot be seen is named in the look's `unseen`.

    Raises:
        CommandError: the account does not let the user in.
    """
    account = account_of(scene.environment, project, sandbox)
    under_way(f"reading {scene.environment.cluster.name}")
    report = Live(scene.environment, account, project).read()
    progress.say("cluster", report["cluster"]["status"] if report["cluster"] else "not there")
    windows = plan_windows(scene, account, report["unseen"])
    runs = scene.benchmarks
    if report["cluster"] and not runs:
        try:
            runs = benchmarks(scene.environment, account)
        except CommandError as stop:
            report["unseen"]["benchmarks"] = str(stop)
        progress.say("benchmarks", f"{len(runs)} nodes")
    changes = scene.changes or asked_changes(project, name, sandbox=sandbox)
    progress.say("changes", changes.get("problem") or f"{len(changes['stacks'])} stacks")
    return replace(scene, live=report, windows=windows, benchmarks=runs, changes=changes)


def benchmarks(environment: Environment, account: Account) -> list[BenchmarkResults]:
    """The latest results of the nodes that the cluster has; those of nodes that have been replaced say nothing of it.

    Raises:
        CommandError: no node has published results.
    """
    here = {node.id for node in nodes(account, environment.cluster.name)}
    return [run for run in published(environment, account) if run.instance_id in here]


def plan_windows(scene: Scene, account: Account, unseen: dict[str, str]) -> dict[str, list[Data]]:
    """The parts of the file's plans that SageMaker has, by name."""
    if not scene.environment.training_plans:
        return {}
    try:
        plans = account_plans(scene.environment, account, None)["plans"]
    except ClientError as error:
        unseen["plan windows"] = f"{error.response['Error']['Code']} on {error.operation_name}"
        return {}
    return {plan["plan"]: list(_windows(plan["aws"]["parts"])) for plan in plans if plan["aws"]}


def _windows(parts: Iterable[Data]) -> Iterator[Data]:
    for part in parts:
        if part["start"] and part["end"]:
            yield {key: part[key] for key in ("start", "end", "zone", "count", "status")}


def asked_changes(project: Path, name: str, *, sandbox: bool) -> Data:
    """What `podwright diff` says, by its document alone; `problem` where it has none."""
    command = [sys.executable, "-m", "podwright.operations.cli", "diff", name, "--json", "--project", str(project)]
    command += ["--sandbox"] if sandbox else []
    text = "comparing with what is deployed"
    under_way(text)
    done = followed(command, text, stdin=subprocess.DEVNULL, errors="replace")
    try:
        result: Any = json.loads(done.stdout)
    except ValueError:
        result = None
    if isinstance(result, dict) and isinstance(result.get("stacks"), list):
        return result
    message = done.stderr.strip().splitlines() or ["it said nothing"]
    return {"problem": f"podwright diff {name} --json: {message[-1].strip()}"}
