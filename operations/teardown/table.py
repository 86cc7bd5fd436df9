"""The plan of a teardown for people."""

from collections.abc import Iterator

from ..output.money import money
from ..output.tables import Block, new_table
from .plan import Kept, StackPlan, Teardown


def plan_lines(plan: Teardown) -> Iterator[Block]:
    """The plan, section by section; what there is none of is left out."""
    rows = (_stack(stack) for stack in sorted(plan.stacks, key=lambda item: (not item.order, item.order)))
    table = new_table("", ("", "stack", "", "creation took", ""), rows, right=(0,))
    yield table if plan.stacks else "no stacks"
    for stack in plan.stacks:
        yield from (f"    {stack.name}: {reason}" for reason in stack.reasons)
    if plan.minutes:
        yield f"\nCreating what goes took {_minutes(plan.minutes)} in all; deleting takes about as long, one by one."
    if plan.nodes:
        yield f"\nNodes that go: {', '.join(f'{group} {count}' for group, count in plan.nodes.items())}"
    yield from _section("Work that is ended:", plan.running)
    for title, by in (("Removed on the way:", "podwright"), ("In the way, and yours to remove:", "you")):
        items = [item for item in plan.blockers if item.by == by]
        yield from _section(
            title, [f"{item.stack}: {item.kind} {item.name}: {item.why}\n    → {item.how}" for item in items]
        )
    yield from _section("Stays, and keeps costing money:", [_kept(item) for item in plan.kept if item.costs])
    yield from _section("Stays:", [_kept(item) for item in plan.kept if not item.costs])
    yield from _section("Not looked at:", plan.unseen)


def _section(title: str, lines: list[str]) -> Iterator[str]:
    if lines:
        yield f"\n{title}"
        yield from (f"  {line}" for line in lines)


def _stack(stack: StackPlan) -> tuple[str, ...]:
    if not stack.order:
        costs = f", at least {money(stack.monthly_usd)} a month" if stack.monthly_usd else ""
        return "", stack.name, f"stays: {stack.why}{costs}", "", ""
    doing = f"{stack.resources} resources deleted"
    again = "again, after DELETE_FAILED" if stack.action == "retry" else ""
    return str(stack.order), stack.name, doing, _minutes(stack.minutes) if stack.minutes is not None else "", again


def _minutes(minutes: float) -> str:
    return f"{minutes:.0f} min" if minutes >= 1 else f"{minutes * 60:.0f} s"


def _kept(item: Kept) -> str:
    held = f" ({item.holds})" if item.holds else ""
    return f"{item.type} {item.name}{held}: {item.why}"
