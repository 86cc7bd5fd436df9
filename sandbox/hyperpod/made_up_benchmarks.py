"""Synthetic results of a node's benchmarks, near published measurements.

The devices of a good node differ by less than the warning threshold. On a bad node, one device is slow.
"""

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, Final, NamedTuple

from ...planning.node.collective_thresholds import lines_of_a_node
from ..protocol.json_objects import JsonObject

SOURCE: Final = "made up (sandbox)"
_DEVIATION: Final = 0.007
"""Standard deviation between GPUs, as in `thresholds.json`."""
_OF_POSSIBLE: Final = 0.85
"""Share of the hardware's peak, for kernels without a published measurement."""
_BAD: Final = "gemm_bf16"
"""Kernel in which a bad device is slow. Every type with published measurements has one for it."""
_UNKNOWN: Final = {"fail_below": 80.0, "warn_below": 90.0, "bound": 120.0}
_PERCENT: Final = {"pass": 100.0, "warn": 85.0, "fail": 40.0}


class _Kernel(NamedTuple):
    """A kernel on an instance type."""

    name: str
    usual: float
    line: dict[str, Any]

    @property
    def unit(self) -> str:
        """Its parameters in the form that the programs print."""
        return "TFLOPS" if self.name.startswith("gemm") else "GB/s"


def measurements(instance_type: str, accelerators: int, instance_id: str, verdict: str) -> list[JsonObject]:
    """Return the results of a node in the form of its record.

    Args:
        instance_type: HyperPod's name of the instance type.
        accelerators: Number of accelerators of the node.
        instance_id: Instance id of the node, which is the seed of its values.
        verdict: pass, warn or fail because of one device, or skip if nothing was measured.
    """
    chance, kernels = Random(instance_id), _kernels(instance_type)
    slow = chance.randrange(max(accelerators, 1))
    if verdict == "skip":
        return [_result("gemm_bf16", (), None, "TFLOPS", {}, "skip", "nothing was measured")]
    if _BAD not in {kernel.name for kernel in kernels}:
        # There are no published measurements of this type.
        value, outcome = _PERCENT[verdict], "" if verdict == "pass" else f"{_PERCENT[verdict]:g} percent is below "
        reason = f"{outcome}{_UNKNOWN[f'{verdict}_below']:g}" if outcome else ""
        return [_result("simulated", tuple(range(accelerators)), value, "percent", _UNKNOWN, verdict, reason)]
    result = list[JsonObject]()
    for kernel in kernels:
        for devices in _devices(kernel.name, accelerators):
            value = kernel.usual * chance.gauss(1 - 3 * _DEVIATION, _DEVIATION)
            outcome, reason = "pass", ""
            if verdict != "pass" and kernel.name == _BAD and devices == (slow,):
                limit = kernel.line[f"{verdict}_below"]
                value, outcome = limit * 0.96, verdict
                reason = f"{value:.4g} {kernel.unit} is below {limit:.4g}"
            result.append(_result(kernel.name, devices, round(value, 1), kernel.unit, kernel.line, outcome, reason))
    return result


def _kernels(instance_type: str) -> list[_Kernel]:
    """Return the single-node kernels with a measurement."""
    return [
        _Kernel(name, line["measured"] or _OF_POSSIBLE * line["bound"], line)
        for line in lines_of_a_node(instance_type)
        for name in line["names"]
    ]


def _devices(name: str, accelerators: int) -> Iterator[Sequence[int]]:
    """Return the devices of each measurement of a kernel: one, two neighbors, or all of the node."""
    if name.startswith("pair"):
        yield from ((first, first + 1) for first in range(0, accelerators - 1, 2))
    elif name.startswith(("all_", "reduce_")):
        yield tuple(range(accelerators))
    else:
        yield from ((device,) for device in range(accelerators))


def _result(
    name: str, devices: Sequence[int], value: float | None, unit: str, line: dict[str, Any], outcome: str, reason: str
) -> JsonObject:
    return {
        "name": name,
        "devices": list(devices),
        "value": value,
        "unit": unit,
        "higher_is_better": True,
        **{each: line.get(each) for each in ("fail_below", "warn_below", "bound")},
        "source": SOURCE,
        "outcome": outcome,
        "reason": reason,
    }
