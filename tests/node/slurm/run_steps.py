"""Runs Slurm's steps of the bundle in the current folder, or those that are named, and prints their outcomes."""

import dataclasses
import json
import sys
from pathlib import Path

sys.path.insert(0, ".")
from podwright_node.log import Log  # pyright: ignore
from podwright_node.node import Node  # pyright: ignore
from podwright_node.slurm_steps import STEPS  # pyright: ignore
from podwright_node.steps import run  # pyright: ignore

names = sys.argv[1:] or [step.name for step in STEPS]
steps = [
    dataclasses.replace(step, needs=tuple(need for need in step.needs if need in names))
    for step in STEPS
    if step.name in names
]
path = Path("/var/log/provision/steps.jsonl")
path.unlink(missing_ok=True)
with Log(path) as log:
    run(steps, Node.here(Path("/"), Path.cwd(), log))
events = [json.loads(line) for line in path.read_text().splitlines()]
summary = next(event for event in reversed(events) if event["event"] == "summary")
print(json.dumps({name: step["outcome"] for name, step in summary["steps"].items()}))
