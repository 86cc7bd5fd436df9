"""How large the parts of KAI are, by the size of the cluster."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ...config.catalog.facts import table
from ...config.settings.groups import InstanceGroup


@dataclass(frozen=True, slots=True)
class KaiService:
    """What each pod of a part of KAI asks for, and what it may use."""

    cpu_millis: int
    """CPU it asks for, in thousandths."""
    memory_mib: int
    """Memory it asks for."""
    cpu_limit_millis: int
    """CPU it may use."""
    memory_limit_mib: int
    """Memory it may use."""

    def as_resources(self) -> dict[str, dict[str, str]]:
        """As a pod's resources."""
        return {
            "requests": {"cpu": f"{self.cpu_millis}m", "memory": f"{self.memory_mib}Mi"},
            "limits": {"cpu": f"{self.cpu_limit_millis}m", "memory": f"{self.memory_limit_mib}Mi"},
        }


def kai_services(groups: Iterable[InstanceGroup]) -> Mapping[str, KaiService]:
    """The parts of KAI on a cluster of these groups, by the name that its chart gives them.

    Decided for you: those that KAI's own load tests used for 500 and 1,000 nodes; up to 100 nodes what its formulas
    give for as many pods on each node as in these tests. Left alone, KAI's scheduler is killed above 512 MiB and all
    other parts get a tenth of a CPU, which the tests outgrow. Each has a limit on CPU, because KAI sets one where there
    is none, and that may be less than what the pod asks for.
    Sources: KAI Scheduler documentation, resource sizing, 2026-08; the defaults of its operator.
    """
    rows, nodes = table("kai_services"), sum(group.count for group in groups)
    sizes = sorted({int(row["nodes"]) for row in rows})
    size = str(next((size for size in sizes if nodes <= size), sizes[-1]))
    return {
        row["service"]: KaiService(
            int(row["cpu_millis"]), int(row["memory_mib"]), int(row["cpu_limit_millis"]), int(row["memory_limit_mib"])
        )
        for row in rows
        if row["nodes"] == size
    }
