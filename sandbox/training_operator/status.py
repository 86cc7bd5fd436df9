"""The conditions in the status of a job.

The last condition is the current state, as `hyp` reads it. `hyp` and AWS's examples have the types Created, Running,
Completed and Failed. The names Suspended, Starting and Faulted follow the fields that concern them.
"""

from dataclasses import dataclass
from datetime import datetime

from .jobs import Job, Manifest, written


@dataclass(frozen=True, slots=True)
class State:
    """The state of a job."""

    name: str
    reason: str
    message: str


def conditions(job: Job, state: State, now: datetime) -> list[Manifest]:
    """Return the conditions of a job, earlier states first and the current one last."""
    known = {item["type"]: item for item in job.status.get("conditions") or ()}
    known.setdefault("Created", _condition("Created", "True", State("", "Created", "the operator has seen it"), now))
    current = known.pop(state.name, None)
    after = [item if item["type"] == "Created" else _ended(item, now) for item in known.values()]
    new = _condition(state.name, "True", state, now)
    if current and current["status"] == "True":
        new["lastTransitionTime"] = current["lastTransitionTime"]
    return [*after, new]


def _ended(item: Manifest, now: datetime) -> Manifest:
    if item["status"] == "False":
        return item
    return item | {"status": "False", "lastTransitionTime": written(now)}


def _condition(kind: str, status: str, state: State, now: datetime) -> Manifest:
    condition = {"type": kind, "status": status, "reason": state.reason, "message": state.message}
    return condition | {"lastTransitionTime": written(now)}
