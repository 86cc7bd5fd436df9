"""Turns measurements into results: thresholds.json, and how much the devices of one node differ."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from .measured import Measured

THRESHOLDS: dict[str, Any] = json.loads(Path(__file__).with_name("thresholds.json").read_text(encoding="utf-8"))
VERSION: str = THRESHOLDS["version"]
LOWER_IS_BETTER = ("us", "errors")
NO_THRESHOLD: dict[str, Any] = {"fail_below": None, "warn_below": None, "bound": None, "source": ""}
ORDER = ("skip", "pass", "warn", "fail")


def judge(
    measured: Sequence[Measured], instance_type: str, *, nodes: int = 1, accelerators: int = 0
) -> list[dict[str, Any]]:
    """Every measurement with its line and its outcome, as docs/benchmark.schema.json says.

    Args:
        measured: What was measured on one node, or by a job over several.
        instance_type: HyperPod's name of the type, which decides the lines.
        nodes: Nodes that took part.
        accelerators: GPUs or Neuron devices that the type has.
    """
    return [
        _result(item, _line(item, instance_type, nodes, accelerators), _center(item, measured)) for item in measured
    ]


def verdict(results: Sequence[dict[str, Any]]) -> str:
    """The worst outcome; skip when nothing could be measured."""
    return max((result["outcome"] for result in results), key=ORDER.index, default="skip")


def bound(instance_type: str, nodes: int) -> float | None:
    """What the network lets a collective's bus bandwidth reach at best, in GB/s; None for unknown types.

    Of n GPUs on k nodes with g each, the GPUs of a node send 1/(n-1) of the bus bandwidth to each GPU elsewhere:
    busbw * (k-1) * g / (n-1) is what the network of a node carries in one direction.
    """
    network = THRESHOLDS["networks"].get(instance_type)
    if network is None or nodes < 2:
        return None
    gpus = network["gpus"]
    return network["gb_per_second"] * (nodes * gpus - 1) / ((nodes - 1) * gpus)


def _line(measured: Measured, instance_type: str, nodes: int, accelerators: int) -> dict[str, Any]:
    """The thresholds of a measurement on a type over so many nodes; none where nobody published one."""
    if measured.unit == "errors":
        return {**NO_THRESHOLD, "fail_below": 0.0, "bound": 0.0, "source": "a right result has no errors"}
    if measured.name in ("gpus", "neuron_devices"):
        count = float(accelerators)
        return {"fail_below": count, "warn_below": count, "bound": count, "source": "the catalog's count"}
    rows = [
        row for row in THRESHOLDS["lines"] if measured.name in row["names"] and instance_type in row["instance_types"]
    ]
    if nodes == 1:
        return next(({**NO_THRESHOLD, **_drawn(row)} for row in rows if row["nodes"] == 1), NO_THRESHOLD)
    limit = bound(instance_type, nodes)
    row = next((row for row in rows if row["nodes"] == nodes), None)
    if row is not None:
        return {**NO_THRESHOLD, **_drawn(row), "bound": limit}
    base = next((row for row in rows if row["nodes"] > 1 and row["warn_below"] is not None), None)
    base_limit = bound(instance_type, base["nodes"]) if base else None
    if base is None or limit is None or base_limit is None:
        return {**NO_THRESHOLD, "bound": limit}
    # Nobody published a figure for this many nodes: a warning at the same part of what is possible, and no failure.
    return {
        "fail_below": None,
        "warn_below": round(base["warn_below"] * limit / base_limit, 1),
        "bound": limit,
        "source": f"{base['source']}; scaled from {base['nodes']} to {nodes} nodes by the bound",
    }


def _drawn(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in NO_THRESHOLD}


def _center(item: Measured, measured: Sequence[Measured]) -> float | None:
    """The median over the devices of the node, of what is measured for each of them; None for fewer than three."""
    values = [other.value for other in measured if other.name == item.name and other.value is not None]
    return median(values) if item.name in THRESHOLDS["spreads"] and len(values) > 2 else None


def _result(measured: Measured, threshold: dict[str, Any], center: float | None) -> dict[str, Any]:
    """A measurement with its outcome: against its thresholds, and against the node's other devices."""
    higher = measured.unit not in LOWER_IS_BETTER
    outcome, reason = _outcome(measured, threshold, higher)
    if center and outcome == "pass" and measured.value is not None:
        lag = 1 - measured.value / center
        allowed = THRESHOLDS["spreads"][measured.name]
        if lag > allowed:
            outcome = "warn"
            reason = f"{lag:.1%} below the median {center:.4g} {measured.unit} of this node; {allowed:.1%} is usual"
    return {
        "name": measured.name,
        "devices": list(measured.devices),
        "value": measured.value,
        "unit": measured.unit,
        "higher_is_better": higher,
        **threshold,
        "outcome": outcome,
        "reason": reason,
    }


def _outcome(measured: Measured, limit: dict[str, Any], higher: bool) -> tuple[str, str]:
    if measured.value is None:
        return ("fail" if measured.failed else "skip"), measured.reason
    sign = 1 if higher else -1
    for outcome, key in (("fail", "fail_below"), ("warn", "warn_below")):
        threshold = limit[key]
        if threshold is not None and sign * measured.value < sign * threshold:
            side = "below" if higher else "above"
            note = f" ({measured.reason})" if measured.reason else ""
            return outcome, f"{measured.value:.4g} {measured.unit} is {side} {threshold:.4g}{note}"
    return "pass", ""
