"""Node pools: how KAI and YuniKorn, whose queues count no types of nodes, keep the quotas of instance groups apart.

Each group that teams use is a pool with a tree of queues of its own: the pool, its departments, its teams. A job names
the queue of its team in the pool of its group, and its pods run nowhere else.
"""

from collections.abc import Mapping
from typing import Final

from ...config.settings.governance.teams import Department

KAI_POOL_LABEL: Final = "kai.scheduler/node-pool"
"""KAI parts nodes, queues and pods by this label. Source: KAI Scheduler documentation, scheduling shards, 2026-11."""

YUNIKORN_ROOT: Final = "root"
"""The queue above all others of YuniKorn."""


def pool(group: str) -> str:
    """The pool of an instance group: its name, as Kubernetes takes names."""
    return group.lower()


def kai_queue(team: str, group: str) -> str:
    """KAI's queue of a team in the pool of `group`. No team, group or department has a dot in its name."""
    return f"{team}.{pool(group)}"


def kai_department_queue(department: str, group: str) -> str:
    """KAI's queue of a department in the pool of `group`."""
    return f"{department}.department.{pool(group)}"


def yunikorn_department_queue(department: str) -> str:
    """The last part of the path of a department's queue in YuniKorn; no team has an underscore in its name."""
    return f"dept_{department}"


def yunikorn_queue(team: str, department: str | None, departments: Mapping[str, Department], group: str) -> str:
    """The path of YuniKorn's queue of a team in the pool of `group`."""
    above = [yunikorn_department_queue(name) for name in department_path(department, departments)]
    return ".".join((YUNIKORN_ROOT, pool(group), *above, team))


def department_path(department: str | None, departments: Mapping[str, Department]) -> tuple[str, ...]:
    """A department with all that it is a part of, the widest first. Stops where a name comes again."""
    path: list[str] = []
    while department is not None and department not in path:
        path.insert(0, department)
        known = departments.get(department)
        department = known.parent if known else None
    return tuple(path)
