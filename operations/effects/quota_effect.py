"""What a change of quotas would have done to the work of the last days: that work under both, side by side."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from ...config.catalog.instance_types import environment_types
from ...config.settings.environment import Environment
from ...config.settings.governance.task_governance import TYPES
from ...planning.quota.overrides import with_overrides
from ...planning.quota.task_governance_objects import priority_objects, quota_objects
from ...planning.simulation.assumptions import Assumptions
from ...planning.simulation.traces.trace import Trace
from ..kubernetes.applied_objects import APPLIED, manifest_objects
from ..output.tables import Block, new_table
from ..simulation.document import Simulation
from ..simulation.policies import Object, ObjectKey, key_of, policy_of
from ..simulation.run import Decide, simulation
from ..simulation.summary import duration
from .changes import ResourceChange

HEADERS: Final = ("team", "p90 wait", "in quota h", "borrowed h", "stopped", "never ran")
"""Of `effect_rows`."""
_HOURS: Final = ("in_quota", "borrowed")
TRACES: Final = "traces"
"""Folder of a project with a trace of each environment, called as it is."""
DEPLOYED: Final = "deployed"
"""What the policy before the change is called."""
_AS_NOW: Final = "nodes, settings of Kueue's manager and priorities are those of the file, before the change and after"


def trace_file(project: Path, environment: Environment) -> Path | None:
    """The trace of an environment in its project, if there is one."""
    files = sorted((project / TRACES).glob(f"{environment.name}.*"))
    return files[0] if files else None


def quota_effect(
    environment: Environment, changes: Sequence[ResourceChange], trace: Trace, decide: Decide
) -> Simulation | None:
    """The work under the quotas that are deployed, and under those of the file; None where no quota changes.

    Raises:
        CommandError: what decides cannot be simulated.
    """
    before = _before(changes)
    if not before:
        return None
    # As it is synthesized: with what is in force today, whatever the time of the work.
    current = with_overrides(environment, datetime.now(UTC))
    governance = current.governance.model_copy(update={"overrides": {}})
    policy = policy_of(
        current.model_copy(update={"governance": governance}), environment_types(environment.instance_types)
    )
    result = simulation([policy._replace(before=before), policy], trace, decide, Assumptions())
    old, new = result.figures
    old = old._replace(outcome=old.outcome._replace(name=DEPLOYED))
    return Simulation(
        [old, new], result.work, result.submitted, result.problems, [*result.assumptions, _AS_NOW], result.windows
    )


def _before(changes: Sequence[ResourceChange]) -> dict[ObjectKey, Object | None]:
    """What Kueue has now of what a deployment changes; None for what it does not have."""
    result: dict[ObjectKey, Object | None] = {}
    for change in changes:
        result |= {key_of(item): None for item in _objects(change.type, change.new)}
    for change in changes:
        result |= {key_of(item): item for item in _objects(change.type, change.old)}
    return result


def _objects(kind: str, properties: Mapping[str, Any]) -> list[Object]:
    """Kueue's objects of one resource of a template."""
    if not properties:
        return []
    if kind == TYPES["compute_quota"]:
        return list(quota_objects(properties))
    if kind == TYPES["scheduler_config"]:
        return list(priority_objects(properties["SchedulerConfig"]))
    if kind == APPLIED:
        return [item for item in manifest_objects(properties["Manifest"]) if item["apiVersion"].startswith("kueue.")]
    return []


def effect_lines(document: dict[str, Any]) -> Iterator[Block]:
    """The document of a simulation with both policies, for people: what changes for each team."""
    yield ""
    yield f"quotas    the same {document['jobs']:,} jobs ({document['work']}) before and after:"
    yield new_table("", HEADERS, effect_rows(document), right=HEADERS[1:], indent=2)
    if document["left_out"]:
        counts = ", ".join(f"{count:,} × {kind}" for kind, count in document["left_out"].items())
        yield f"  left out of the work: {counts}"


def effect_rows(document: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """A row for each team: what was, and what would have been where that is something else."""
    old, new = document["policies"]
    for before, after in zip(old["teams"], new["teams"], strict=True):
        waits = [duration(team["waits"]["p90_seconds"]) for team in (before, after)]
        hours = [_hours(name, before, after) for name in _HOURS]
        stopped = [f"{team['stopped']:,}" for team in (before, after)]
        never = [f"{team['waits']['jobs'] - team['waits']['started']:,}" for team in (before, after)]
        yield (before["team"], *(_arrow(pair) for pair in (waits, *hours, stopped, never)))


def _hours(name: str, *teams: dict[str, Any]) -> list[str]:
    return [f"{team['accelerator_hours'][name]:,.0f}" for team in teams]


def _arrow(pair: Sequence[str]) -> str:
    return pair[0] if pair[0] == pair[1] else f"{pair[0]} → {pair[1]}"
