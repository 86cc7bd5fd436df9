"""What a teardown would do: stacks that go and stay, what stays behind, what is in the way, and in which order."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Action = Literal["delete", "retry", "keep"]


@dataclass(frozen=True, slots=True)
class Kept:
    """Something that is there after the teardown, because it is retained or because no stack made it."""

    name: str
    """Its physical id, by which `--delete-data` names it."""
    type: str
    """CloudFormation's type."""
    stack: str
    """The stack that made it; empty where a service did."""
    why: str
    holds: str = ""
    """What is in it, such as how much data."""
    costs: bool = False
    """Whether it keeps costing money."""
    command: str = ""
    """What removes it later."""


@dataclass(frozen=True, slots=True)
class Blocker:
    """Something that keeps a stack from being deleted."""

    stack: str
    kind: str
    """`guardduty endpoint`, `guardduty group`, `interface`, `load balancer`, `file system`, `bucket`, `export`,
    `deletion protection` or `instance`."""
    name: str
    """Its id."""
    why: str
    by: Literal["podwright", "you"]
    """Who removes it."""
    how: str
    """What happens to it, or what to do."""


@dataclass(frozen=True, slots=True)
class StackPlan:
    """One stack."""

    name: str
    status: str
    action: Action
    why: str = ""
    """Why it stays."""
    order: int = 0
    """Position in the order of deletion, from 1; 0 for one that stays."""
    resources: int = 0
    """Resources that are deleted with it."""
    minutes: float | None = None
    """How long its creation took: the only measure there is of how long its deletion takes."""
    reasons: tuple[str, ...] = ()
    """Why an earlier deletion failed, by resource."""
    monthly_usd: float | None = None
    """What it costs a month at least by the file, where it stays; None where no price is known."""


@dataclass(slots=True)
class Teardown:
    """The whole plan."""

    environment: str
    account: str
    region: str
    stacks: list[StackPlan] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)
    blockers: list[Blocker] = field(default_factory=list)
    nodes: dict[str, int] = field(default_factory=dict)
    """Nodes that go, by instance group."""
    running: list[str] = field(default_factory=list)
    """Work that is ended before."""
    unseen: list[str] = field(default_factory=list)
    """What could not be looked at, and why."""

    @property
    def going(self) -> list[str]:
        """Names of the stacks that are deleted, in that order."""
        return [stack.name for stack in sorted(self.stacks, key=lambda item: item.order) if stack.order]

    @property
    def minutes(self) -> float | None:
        """How long all of it takes about; None where nothing is known."""
        known = [stack.minutes for stack in self.stacks if stack.order and stack.minutes is not None]
        return sum(known) if known else None

    def to_json(self) -> dict[str, Any]:
        """The plan as plain data."""
        return {"schema": 1, **asdict(self), "going": self.going, "minutes": self.minutes}


def deletion_order(stacks: Iterable[str], imports: Mapping[str, set[str]]) -> list[str]:
    """Stacks so that each comes before those whose exports it imports; `stacks` are in order of creation.

    `imports` says from which stacks one imports. Where that leaves a choice, the youngest goes first.
    """
    left, order = list(stacks), list[str]()
    while left:
        imported = {source for name in left for source in imports.get(name, ()) if source != name}
        free = [name for name in left if name not in imported]
        # CloudFormation lets no two stacks import from one another; should it say so, age decides.
        order.append((free or left)[-1])
        left.remove(order[-1])
    return order


def staying(blocked: Iterable[str], imports: Mapping[str, set[str]]) -> set[str]:
    """Stacks that stay when those that are `blocked` do: they too, and all from which they import."""
    result = set[str]()
    left = list(blocked)
    while left:
        name = left.pop()
        if name not in result:
            result.add(name)
            left += imports.get(name, ())
    # Whatever it imports from has to stay as well, and what that imports from.
    return result
