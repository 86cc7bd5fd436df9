"""Logs of simulated containers: the table of nccl-tests for launchers, and a line for other containers.

The numbers are synthetic, on a curve that reaches slightly more than the expected value of the instance type.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Final

from ...planning.node.collective_thresholds import all_reduce_threshold
from ..protocol.json_objects import JsonObject

JOB: Final = "app.kubernetes.io/name"
_UNITS: Final = {"K": 2**10, "M": 2**20, "G": 2**30}
_HALF: Final = 64 * 2**20
"""Message size in bytes at which a collective reaches about half of its speed."""
# GB/s over TCP, which NCCL uses without EFA. Source: a HyperPod Local Zone quickstart, 2026-08.
_TCP: Final = 3.2
_HEAD: Final = (
    "# nThread 1 nGpus 1 minBytes {least} maxBytes {most} step: 2(factor) (sandbox: made up)\n"
    "#  size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong"
)


def log_of(pod: JsonObject, faults: Mapping[str, str]) -> str:
    """Return the log of a pod's container.

    Args:
        pod: The pod, which has started.
        faults: What is wrong with jobs, by how their names begin.
    """
    fault = fault_of(pod, faults)
    container = pod["spec"]["containers"][0]
    command = [*container.get("command", []), *container.get("args", [])]
    if any(str(word).endswith("_perf") for word in command):
        kind = pod["spec"].get("nodeSelector", {}).get("node.kubernetes.io/instance-type", "")
        return _nccl_tests([str(word) for word in command], kind, fault)
    if fault == "fails":
        return "Traceback (most recent call last): RuntimeError: it was told to fail (sandbox)\n"
    return f"{pod['metadata']['name']} on {pod['spec']['nodeName']}: nothing ran (sandbox)\n"


def fault_of(pod: JsonObject, faults: Mapping[str, str]) -> str:
    """Return the fault of a pod's job; empty without one."""
    job = pod["metadata"].get("labels", {}).get(JOB, "")
    return next((kind for stem, kind in faults.items() if job.startswith(stem)), "")


def _nccl_tests(command: list[str], instance_type: str, fault: str) -> str:
    """Return the table of a program of nccl-tests, from the smallest message to the largest."""
    options = dict(pairwise(command))
    # Defaults of the programs.
    least, most = (_bytes(options.get(flag, "32M")) for flag in ("-b", "-e"))
    ranks = int(options.get("-np", "1"))
    nodes = ranks // int(options.get("-N", ranks))
    top = (all_reduce_threshold(instance_type, nodes).expected or 100.0) * 1.1 if nodes > 1 else 400.0
    wrong, lines, size = int(fault == "wrong"), [_HEAD.format(least=least, most=most)], least
    while size <= most:
        busbw = min(_TCP, top) if fault == "slow" else top * size / (size + _HALF)
        algbw = busbw * ranks / (2 * (ranks - 1)) if ranks > 1 else busbw
        half = f"{size / algbw / 1000:8.1f} {algbw:7.2f} {busbw:7.2f} {wrong:6}"
        lines.append(f"{size:12} {size // 4:13} {'float':>9} {'sum':>7} {-1:7} {half} {half}")
        size *= 2
    return "\n".join([*lines, f"# Out of bounds values : {wrong}", ""])


def _bytes(text: str) -> int:
    return int(text[:-1]) * _UNITS[text[-1]] if text[-1] in _UNITS else int(text)
