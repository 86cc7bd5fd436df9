"""What the patches of jobs change on the objects that `podwright submit` hands over, for whoever reviews them."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from ...cdk8s_charts.jobs.render import KINDS, render
from ...config.catalog.instance_types import environment_types
from ...config.settings.environment import Environment
from ...planning.jobs.plan import JobPlan, Planner

_ABSENT: Final = "absent"


@dataclass(frozen=True, slots=True)
class PatchedField:
    """A field of a job's object that its patch changes."""

    job: str
    path: str
    """As Kubernetes writes it."""
    before: Any
    """None where the field is not there."""
    after: Any


def patched_fields(environment: Environment) -> list[PatchedField]:
    """What each patch of the environment's jobs changes, in the order of the file."""
    planner = Planner(environment, environment_types(environment.instance_types))
    plans = [planner.plan(name) for name, job in environment.jobs.items() if job.patch and job.kind in KINDS]
    return [field for plan in plans for field in _changes(plan)]


def plain(fields: Sequence[PatchedField]) -> list[dict[str, Any]]:
    """Changed fields as plain data."""
    return [asdict(field) for field in fields]


def lines(fields: Sequence[PatchedField]) -> Iterator[str]:
    """Changed fields for people; nothing where there is no patch."""
    if fields:
        yield ""
        yield "patches of jobs, which `podwright submit` applies and a deployment does not:"
    for job in dict.fromkeys(field.job for field in fields):
        yield f"  {job}"
        for field in fields:
            if field.job == job:
                yield f"      {field.path}: {_text(field.before)} → {_text(field.after)}"


def _changes(plan: JobPlan) -> Iterator[PatchedField]:
    """The fields in which a job's object differs from what it is without its patch."""
    without = plan._replace(job=plan.job.model_copy(update={"patch": None}))
    before, after = (dict(_leaves(render(each)[-1])) for each in (without, plan))
    for path in dict.fromkeys([*before, *after]):
        if before.get(path) != after.get(path):
            yield PatchedField(plan.name, path, before.get(path), after.get(path))


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The fields of an object that hold no others. Things with names are found by them, wherever they stand."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and value:
        for number, item in enumerate(value):
            name = item.get("name", number) if isinstance(item, dict) else number
            yield from _leaves(item, f"{path}[{name}]")
    else:
        yield path, value


def _text(value: Any) -> str:
    return _ABSENT if value is None else json.dumps(value)
