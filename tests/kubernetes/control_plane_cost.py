"""What control planes of the sandbox cost: seconds until they are ready, and memory, by environments and by nodes."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from podwright.sandbox.control_plane.control_plane import ControlPlane
from podwright.sandbox.eks.task_governance import settings
from real_cluster import add_nodes, resident_mib, started

_TYPE: Final = "ml.p5.48xlarge"
# What grows at first has grown by then.
_SETTLED_SECONDS: Final = 10.0


def rows(folder: Path, environments: int, nodes: int) -> list[list[str]]:
    """One environment, the same started again, so many beside each other, and so many nodes in the first."""
    table = list[list[str]]()
    with ExitStack() as stack:
        planes = list[ControlPlane]()

        def start() -> None:
            plane = stack.enter_context(started(folder / f"plane-{len(planes)}"))
            planes.append(plane)
            plane.install("kueue", settings({}))
            plane.install("training-operator")
            plane.install("mpi-operator")

        table.append(_row("1 environment", _seconds(start), planes))
        planes[0].stop()
        table.append(_row("the same, started again", _seconds(planes[0].start), planes))
        seconds = [_seconds(start) for _ in range(environments - 1)]
        average = sum(seconds) / len(seconds)
        table.append(_row(f"{environments} environments, each of the others", average, planes))
        ready = _seconds(lambda: add_nodes(planes[0], {"h100": (_TYPE, nodes)}))
        table.append(_row(f"1 environment, with {nodes:,} nodes", ready, planes[:1]))
    return table


def _seconds(work: Callable[[], None]) -> float:
    start = time.monotonic()
    work()
    return time.monotonic() - start


def _row(name: str, seconds: float, planes: Sequence[ControlPlane]) -> list[str]:
    """What all processes of some control planes have in memory now."""
    time.sleep(_SETTLED_SECONDS)
    processes = [(process.name, resident_mib(process.pid)) for plane in planes for process in plane.running]
    servers = sum(size for name, size in processes if name == "kube-apiserver")
    total = sum(size for _, size in processes)
    return [name, f"{seconds:.1f} s", f"{total:,.0f} MiB", f"{servers:,.0f} MiB", f"{total - servers:,.0f} MiB"]
