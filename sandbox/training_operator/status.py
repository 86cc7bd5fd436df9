"""How a job's status says how far it is.

The last condition is what holds, as `hyp` reads it. Its types: Created, Running, Completed and Failed as `hyp` and
AWS's examples have them; Suspended, Starting and Faulted by the words of the fields that are about them.
"""

from dataclasses import dataclass
from datetime import datetime

from .jobs import Job, Manifest, written


@dataclass(frozen=True, slots=True)
class State:
    """How far a job is."""

    name: str
    reason: str
    message: str


def conditions(job: Job, state: State, now: datetime) -> list[Manifest]:
    """The conditions of a job, what it was before first, and what it is last."""
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
