"""NVIDIA GPUs: every one alone and all at once, then the links between them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from .measured import Ended, Measured, Say, finish, results
from .programs import Unavailable, environment, obtain

QUERY_SECONDS = 60

# Arguments by mode. Quick is made for a minute on a node of eight GPUs.
GEMM = {"quick": ("--seconds", "2", "--runs", "50"), "thorough": ("--seconds", "60", "--runs", "2000")}
MEMORY = {"quick": ("--gib", "4", "--passes", "1"), "thorough": ("--gib", "8", "--batches", "50", "--passes", "20")}
TRANSFER = {
    "quick": ("--mib", "64", "--batches", "3", "--reads", "2000"),
    "thorough": ("--mib", "512", "--batches", "10", "--reads", "50000"),
}
COLLECTIVES = {"quick": ("--mib", "1024", "--batches", "3"), "thorough": ("--mib", "8192", "--batches", "10")}
SECONDS = {"quick": 60.0, "thorough": 900.0}
"""How long one program may take before its GPU counts as hung."""


def measure(facts: Mapping[str, Any], expected: int, mode: str, bundle: Path, root: Path, say: Say) -> list[Measured]:
    """Measure all GPUs of the node.

    Args:
        facts: The part `benchmarks` of node.json.
        expected: GPUs of the instance type.
        mode: quick or thorough.
        bundle: The published scripts.
        root: Root of the file system.
        say: Writes into the node's log.
    """
    status, out, err = _ask("--query-gpu=index,driver_version,compute_cap,mig.mode.current")
    if status == 127:
        return [Measured("gpus", (), None, "GPUs", "nvidia-smi is not on this image")]
    if status != 0:
        reason = f"nvidia-smi {'hangs' if status is None else f'ended with {status}'}: {(err or out).strip()[-300:]}"
        return [Measured("gpus", (), None, "GPUs", reason, failed=True)]
    rows = [re.split(r"\s*,\s*", line.strip()) for line in out.strip().splitlines()]
    result = [Measured("gpus", (), float(len(rows)), "GPUs", f"{expected} belong to this instance type")]
    if any(row[3] == "Enabled" for row in rows):
        return [*result, Measured("programs", (), None, "", "GPUs are divided (MIG): lines are for whole ones")]
    # Programs take all memory of a GPU, and a job beside them would fail.
    if _ask("--query-compute-apps=pid").out.strip():
        return [*result, Measured("programs", (), None, "", "processes use the GPUs")]
    minimum, driver = str(facts.get("driver_minimum", "0")), rows[0][1]
    if facts.get("programs", "shipped") == "shipped" and _version(driver) < _version(minimum):
        reason = f"the driver is {driver}, the programs need {minimum} or newer"
        return [*result, Measured("programs", (), None, "", reason)]
    try:
        programs = obtain(facts, bundle, root, {row[2].replace(".", "") for row in rows}, say)
    except Unavailable as missing:
        return [*result, Measured("programs", (), None, "", str(missing))]
    devices = [int(row[0]) for row in rows]
    for name, arguments in (("gemm", GEMM[mode]), ("memory", MEMORY[mode])):
        result += _each(programs, name, arguments, devices, mode, say)
    result += _together(programs, "transfer", TRANSFER[mode], devices, mode, say)
    if len(devices) > 1:
        result += _together(programs, "collectives", COLLECTIVES[mode], devices, mode, say)
    return result


def _ask(query: str) -> Ended:
    return finish(["nvidia-smi", query, "--format=csv,noheader"], seconds=QUERY_SECONDS)


def _each(
    programs: Path, name: str, arguments: Sequence[str], devices: Sequence[int], mode: str, say: Say
) -> list[Measured]:
    """One process for each GPU, all at once: under the power and heat of a training step."""
    say("measuring", program=name, devices=list(devices))
    with ThreadPoolExecutor(len(devices)) as pool:
        runs = [
            pool.submit(
                results,
                [str(programs / "bin" / name), "--device", str(device), *arguments],
                name=name,
                devices=(device,),
                environment=environment(programs),
                seconds=SECONDS[mode],
            )
            for device in devices
        ]
        return [measured for run in runs for measured in run.result()]


def _together(
    programs: Path, name: str, arguments: Sequence[str], devices: Sequence[int], mode: str, say: Say
) -> list[Measured]:
    say("measuring", program=name, devices=list(devices))
    return results(
        [str(programs / "bin" / name), *arguments],
        name=name,
        devices=tuple(devices),
        environment=environment(programs),
        seconds=SECONDS[mode],
    )


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())
