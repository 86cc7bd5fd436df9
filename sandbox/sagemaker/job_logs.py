"""What the containers of simulated jobs print: the table of nccl-tests from a launcher, a line from others.

The numbers are made up: on a curve that reaches a little more than what is expected of the type. They prove nothing.
"""

from typing import Final

from ...planning.node.collective_thresholds import all_reduce_threshold
from ..protocol.json_objects import JsonObject

_UNITS: Final = {"K": 2**10, "M": 2**20, "G": 2**30}
_HALF: Final = 64 * 2**20
"""Bytes at which a collective reaches half of its speed, about."""
# GB/s over TCP, which NCCL falls back to without EFA. Source: a HyperPod Local Zone quickstart, 2026-08.
_TCP: Final = 3.2
_HEAD: Final = (
    "# nThread 1 nGpus 1 minBytes {least} maxBytes {most} step: 2(factor) (sandbox: made up)\n"
    "#  size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong"
)


def log_of(pod: JsonObject, workers: int, fault: str) -> str:
    """The log of a pod's container."""
    container = pod["spec"]["containers"][0]
    command = [*container.get("command", []), *container.get("args", [])]
    if any(str(word).endswith("_perf") for word in command):
        kind = pod["spec"].get("nodeSelector", {}).get("node.kubernetes.io/instance-type", "")
        return _nccl_tests([str(word) for word in command], kind, workers, fault)
    if fault == "fails":
        return "Traceback (most recent call last): RuntimeError: it was told to fail (sandbox)\n"
    return f"{pod['metadata']['name']} on {pod['spec']['nodeName']}: nothing ran (sandbox)\n"


def _nccl_tests(command: list[str], instance_type: str, nodes: int, fault: str) -> str:
    least, most = (_bytes(command[command.index(flag) + 1]) for flag in ("-b", "-e"))
    top = (all_reduce_threshold(instance_type, nodes).expected or 100.0) * 1.1 if nodes > 1 else 400.0
    ranks = int(command[command.index("-np") + 1])
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
