"""What control planes of the sandbox cost: seconds until they are ready, and memory, by environments and by nodes."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from podwright.planning.helm.operators import Operator
from podwright.sandbox.control_plane.control_plane import ControlPlane
from podwright.sandbox.eks.task_governance import settings
from real_cluster import add_nodes, resident_mib, started

OPERATORS: Final[tuple[Operator, ...]] = ("kueue", "training-operator", "mpi-operator")
"""Operators of an environment with task governance."""
_TYPE: Final = "ml.p5.48xlarge"
_SETTLED_SECONDS: Final = 10.0
"""Seconds after which memory that grows at first has grown."""


def rows(
    folder: Path,
    environments: int,
    nodes: int,
    settled_seconds: float = _SETTLED_SECONDS,
    operators: Sequence[Operator] = OPERATORS,
) -> list[list[str]]:
    """One environment, the same started again, so many beside each other, and so many nodes in the first.

    Args:
        folder: An empty one.
        environments: How many run at last.
        nodes: How many the first one gets.
        settled_seconds: Seconds between a start and the measurement of its memory.
        operators: Operators of each environment.
    """

    def row(name: str, seconds: float, planes: Sequence[ControlPlane]) -> list[str]:
        time.sleep(settled_seconds)
        return _row(name, seconds, planes)

    table = list[list[str]]()
    with ExitStack() as stack:
        planes = list[ControlPlane]()

        def start() -> None:
            plane = stack.enter_context(started(folder / f"plane-{len(planes)}"))
            planes.append(plane)
            for name in operators:
                plane.install(name, settings({}) if name == "kueue" else None)

        table.append(row("1 environment", _seconds(start), planes))
        planes[0].stop()
        table.append(row("the same, started again", _seconds(planes[0].start), planes))
        if seconds := [_seconds(start) for _ in range(environments - 1)]:
            average = sum(seconds) / len(seconds)
            table.append(row(f"{environments} environments, each of the others", average, planes))
        ready = _seconds(lambda: add_nodes(planes[0], {"h100": (_TYPE, nodes)}))
        table.append(row(f"1 environment, with {nodes:,} nodes", ready, planes[:1]))
    return table


def _seconds(work: Callable[[], None]) -> float:
    start = time.monotonic()
    work()
    return time.monotonic() - start


def _row(name: str, seconds: float, planes: Sequence[ControlPlane]) -> list[str]:
    """What all processes of some control planes have in memory now."""
    processes = [(process.name, resident_mib(process.pid)) for plane in planes for process in plane.running]
    servers = sum(size for name, size in processes if name == "kube-apiserver")
    total = sum(size for _, size in processes)
    return [name, f"{seconds:.1f} s", f"{total:,.0f} MiB", f"{servers:,.0f} MiB", f"{total - servers:,.0f} MiB"]
