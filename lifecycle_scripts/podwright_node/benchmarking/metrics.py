"""Benchmark results in CloudWatch's embedded metric format: JSON documents that become metrics where they are logged.

Source: Amazon CloudWatch User Guide, "Specification: Embedded metric format", 2026-11: at most 100 metrics in a
document, and 100 values of a metric.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

NAMESPACE = "podwright/benchmarks"
UNITS = {"GB/s": "Gigabytes/Second", "us": "Microseconds", "ms": "Milliseconds", "s": "Seconds", "errors": "Count"}
"""CloudWatch's names of units; `None`, its word for no unit, where it has no name."""
MOST = 100


def documents(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The results of a node as metrics of its group and of itself.

    A kernel is a metric with a value for each device or pair. Beside it stand the seconds of the run and how many
    measurements failed and warned, which are there even when nothing could be measured.
    """
    outcomes = [item["outcome"] for item in record["results"]]
    units = {"seconds": "s", "failed": "errors", "warned": "errors"}
    values: dict[str, list[float]] = {
        "seconds": [record["seconds"]],
        "failed": [outcomes.count("fail")],
        "warned": [outcomes.count("warn")],
    }
    for item in record["results"]:
        if item["value"] is not None:
            units[item["name"]] = item["unit"]
            values.setdefault(item["name"], []).append(item["value"])
    chunks = [(name, some[at : at + MOST]) for name, some in values.items() for at in range(0, len(some), MOST)]
    made: list[list[tuple[str, list[float]]]] = []
    for chunk in chunks:
        # The same name a second time needs a document of its own.
        home = next((some for some in made if len(some) < MOST and chunk[0] not in dict(some)), None)
        if home is None:
            made.append(home := [])
        home.append(chunk)
    return [_document(record, dict(some), units) for some in made]


def _document(record: dict[str, Any], values: dict[str, list[float]], units: dict[str, str]) -> dict[str, Any]:
    own = {"ClusterName": record["cluster"], "InstanceGroup": record["group"], "InstanceId": record["instance_id"]}
    dimensions = [[name for name in own if name != "InstanceId"], list(own)]
    directive = {
        "Namespace": NAMESPACE,
        "Dimensions": dimensions if record["instance_id"] else dimensions[:1],
        "Metrics": [{"Name": name, "Unit": UNITS.get(units[name], "None")} for name in values],
    }
    began = datetime.fromisoformat(record["started"].replace("Z", "+00:00"))
    head = {"_aws": {"Timestamp": int(began.timestamp() * 1000), "CloudWatchMetrics": [directive]}}
    rest = {"InstanceType": record["instance_type"], "Verdict": record["verdict"]}
    return {**head, **{name: text for name, text in own.items() if text}, **rest, **values}
