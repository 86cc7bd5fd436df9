"""How fast NCCL's all-reduce is over several nodes of a type, by the lines that nodes' own programs are judged with.

`thresholds.json` holds the published figures. What it says of other numbers of nodes follows from what the network can
carry, here as in `podwright_benchmarks/judge.py`, which runs on nodes and cannot be imported; a test compares the two.
"""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

_FILE: Final = Path(__file__).resolve().parents[2] / "lifecycle_scripts/podwright_benchmarks/thresholds.json"


@dataclass(frozen=True, slots=True)
class Threshold:
    """What is known of the bus bandwidth of a type over so many nodes, in GB/s."""

    fails_below: float | None
    """The worst value that a published measurement backs; None where nobody published one."""
    expected: float | None
    """What healthy nodes reach."""
    bound: float | None
    """What the network can carry at best; whatever asks for more is wrong."""
    source: str
    """Where the figures come from; empty where there are none."""


@cache
def _thresholds() -> dict[str, Any]:
    return json.loads(_FILE.read_text(encoding="utf-8"))


def thresholds_version() -> str:
    """Version of the lines."""
    return _thresholds()["version"]


def lines_of_a_node(instance_type: str) -> list[dict[str, Any]]:
    """The lines of what a node of a type measures alone, each as `thresholds.json` has it."""
    return [row for row in _thresholds()["lines"] if instance_type in row["instance_types"] and row["nodes"] == 1]


def all_reduce_threshold(instance_type: str, nodes: int) -> Threshold:
    """The line of an all-reduce over `nodes` nodes, at least two, of one type."""
    rows = [
        row
        for row in _thresholds()["lines"]
        if "all_reduce" in row["names"] and instance_type in row["instance_types"] and row["nodes"] > 1
    ]
    limit = _bound(instance_type, nodes)
    if row := next((row for row in rows if row["nodes"] == nodes), None):
        return Threshold(row["fail_below"], row["warn_below"], limit, row["source"])
    base = next((row for row in rows if row["warn_below"] is not None), None)
    base_limit = _bound(instance_type, base["nodes"]) if base else None
    if base is None or limit is None or base_limit is None:
        return Threshold(None, None, limit, "")
    source = f"{base['source']}; scaled from {base['nodes']} to {nodes} nodes by the bound"
    return Threshold(None, round(base["warn_below"] * limit / base_limit, 1), limit, source)


def _bound(instance_type: str, nodes: int) -> float | None:
    network = _thresholds()["networks"].get(instance_type)
    if network is None:
        return None
    gpus = network["gpus"]
    return network["gb_per_second"] * (nodes * gpus - 1) / ((nodes - 1) * gpus)
