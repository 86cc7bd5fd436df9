"""One run of the benchmarks on this node."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Callable

from . import efa, files, gpus, neuron
from .judge import judge
from .measured import Measured, Say
from .record import Started


def run(
    node_facts: Mapping[str, Any], instance_type: str, mode: str, bundle: Path, root: Path, say: Say
) -> dict[str, Any]:
    """Measure this node and judge what was seen.

    Accelerators come first in one thread, EFA and file systems in another: they share no device.

    Args:
        node_facts: node.json.
        instance_type: HyperPod's name of this node's type.
        mode: quick (made for a minute on a node of eight GPUs) or thorough.
        bundle: The folder with the published scripts.
        root: Root of the file system.
        say: Writes one event with its facts into the node's log.

    Returns:
        The record that docs/benchmark.schema.json describes, without group and instance id, which the caller knows.
    """
    started = Started()
    kind: Mapping[str, Any] = node_facts["instance_types"].get(instance_type, {})
    count = int(kind.get("accelerator_count", 0))
    tasks: list[Callable[[], list[Measured]]] = [lambda: _beside(node_facts, kind, mode, root, say)]
    if count and kind.get("accelerator_vendor") == "nvidia":
        tasks.append(lambda: gpus.measure(node_facts["benchmarks"], count, mode, bundle, root, say))
    if count and kind.get("accelerator_vendor") == "neuron":
        tasks.append(lambda: neuron.measure(count, mode, say))
    with ThreadPoolExecutor(len(tasks)) as pool:
        measured = [item for part in pool.map(lambda task: task(), tasks) for item in part]
    return started.record(node_facts, instance_type, mode, judge(measured, instance_type, accelerators=count))


def _beside(node_facts: Mapping[str, Any], kind: Mapping[str, Any], mode: str, root: Path, say: Say) -> list[Measured]:
    measureds: list[Measured] = []
    if kind.get("efa_interfaces"):
        measureds += efa.measure(int(kind["efa_interfaces"]), mode, say)
    for mount in node_facts.get("file_systems", {}).get("lustre", {}).values():
        path = root / mount["path"].lstrip("/")
        # On EKS pods mount it, and the node itself has none.
        if path.is_mount():
            measureds += files.measure(path, "lustre", mode, say)
    return measureds
