"""How long `podwright forecast` takes with a snapshot of 5,000 Workloads that wait, as a whole process."""

import argparse
import copy
import json
import random
import sys
from pathlib import Path
from typing import Any, Final

from podwright.config.catalog.instance_types import catalog
from podwright.config.loading.project import Project
from podwright.operations.kubernetes.job_manifests import planned_jobs
from podwright.operations.simulation.policies import policy_of
from podwright.planning.simulation.planned_workload import planned_workload
from table import Report, markdown, verdict
from timing import ROOT, measure_in_turn

PENDING: Final = (0, 5000)
LIMIT_SECONDS: Final = 1.0
ENVIRONMENT, JOB = "prod", "fine-tune"
_TAKEN: Final = "2026-11-26T04:00:00Z"
_FIRST: Final = 1_795_000_000.0


def report(folder: Path, args: argparse.Namespace) -> Report:
    """The process beside one whose snapshot has nobody waiting."""
    commands = {}
    for pending in PENDING:
        file = folder / f"{pending}.json"
        file.write_text(json.dumps({"kind": "List", "items": snapshot(pending)}))
        words = ("forecast", ENVIRONMENT, JOB, "--snapshot", str(file), "--json")
        commands[f"{pending}"] = ([sys.executable, "-m", "podwright.operations.cli", *words], {})
    timings = measure_in_turn(commands, runs=args.runs)
    rows = []
    for pending, timing in zip(PENDING, timings.values(), strict=True):
        limit = [f"≤ {LIMIT_SECONDS:g} s", verdict(timing.processor, LIMIT_SECONDS)]
        rows.append([f"{pending:,}", str(timing), f"{timing.processor:.2f} s", f"{timing.peak_mib:.0f} MiB", *limit])
    header = ["Workloads that wait", "median (range)", "processor", "largest process", "limit", ""]
    return Report(markdown(header, rows), timings[f"{PENDING[-1]}"].processor <= LIMIT_SECONDS)


def snapshot(pending: int) -> list[dict[str, Any]]:
    """Kueue's objects and the nodes as the environment deploys them, and so many copies of its jobs that wait."""
    loaded = Project.at(ROOT).load(ENVIRONMENT)
    policy = policy_of(loaded.environment, catalog())
    items = [copy.deepcopy(dict(item)) for item in policy.objects]
    for item in items:
        item["metadata"]["creationTimestamp"] = _TAKEN
    chance = random.Random(1)
    names = [name for name, job in loaded.environment.jobs.items() if job.team]
    plans = [plan for plan in planned_jobs(loaded, names).values() if plan.engine in ("hyperpod", "kueue")]
    for number in range(pending):
        plan = chance.choice(plans)
        priority = loaded.environment.governance.priorities.get(plan.job.priority or "", 0)
        item = planned_workload(plan, priority, _FIRST + number)
        item["metadata"] |= {"name": f"{plan.name}-{number}", "uid": f"{number:05}"}
        # Sizes differ, as they do where 5,000 wait.
        item["spec"]["podSets"][0]["count"] = chance.choice((1, 1, 2, 4, item["spec"]["podSets"][0]["count"]))
        items.append(item)
    return items
