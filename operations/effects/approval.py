"""Which approvals a change set needs, and which it has."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from ...config.errors import CommandError
from ...config.findings import Level
from ...config.settings.approvals import ApprovedChange
from ...planning.delivery.effects import Effect, reasons, stateful
from .changes import ResourceChange
from .counts import CountDecrease

PLAN = "Custom::PodwrightTrainingPlan"


@dataclass(frozen=True, slots=True)
class Need:
    """One reason for which somebody has to approve a change set."""

    id: str
    """Such as CHG001; `podwright explain ID` prints its page."""
    name: str
    """What it is about: a resource, a group or a training plan, as an approval names it."""
    why: str
    approved: bool = False

    @property
    def refused(self) -> bool:
        """Whether a deployment refuses the change set as long as this is not named."""
        return reasons()[self.id].level is Level.ERROR


def needs(changes: Sequence[ResourceChange], falls: Sequence[CountDecrease]) -> list[Need]:
    """Every reason, the gravest first."""
    results = [need for change in changes for need in _of(change)]
    results += [Need("CHG004", decrease.group, _fewer(decrease)) for decrease in falls]
    return sorted(dict.fromkeys(results), key=lambda need: (not need.refused, need.id, need.name))


def _fewer(decrease: CountDecrease) -> str:
    end = " and the group is deleted" if decrease.removed else ""
    return f"the deployment would set {decrease}{end}; HyperPod chooses the nodes that go"


def _of(change: ResourceChange) -> Iterator[Need]:
    """The reasons of one change; CHG005 to CHG007 are of what is updated or deleted, the others of any."""
    retained = "what it holds stays, outside the stack" if change.kept else "what it holds is deleted"
    held = stateful().get(change.type)
    refused = held.refused if held else ()
    if change.action == "replace" and "replace" in refused:
        because = ", ".join(row.property for row in change.rows if row.effect is Effect.REPLACES)
        yield Need("CHG001", change.name, f"{change.type} is replaced by an empty one ({because}); {retained}")
    if change.action == "delete" and "delete" in refused and not change.kept:
        yield Need("CHG002", change.name, f"{change.type} is deleted, and {held.holds if held else ''} with it")
    if buys(change):
        yield Need("CHG003", change.new["Plan"], f"the training plan {change.new['Plan']} is bought, and paid at once")
    if row := next((row for row in change.rows if row.certain and row.effect is Effect.REFUSED), None):
        yield Need("CHG008", change.name, f"the deployment would stop at {row.property}: {row.known.what}")
    if change.action in ("create", "replace"):
        return
    for effect, id in ((Effect.INTERRUPTS, "CHG005"), (Effect.ROLLS_NODES, "CHG005"), (Effect.DELETES_DATA, "CHG007")):
        rows = [row for row in change.rows if row.effect is effect]
        deleted = change.action == "delete" and not change.kept and change.known and change.known.effect is effect
        if (rows or deleted) and not (deleted and "delete" in refused):
            known = rows[0].known if rows else change.known
            words = known.what if known else ""
            yield Need(id, change.name, f"{effect.words}: {words or change.type}")
    if change.stateful and (unknown := [row.property for row in change.rows if row.effect is Effect.UNKNOWN]):
        yield Need("CHG006", change.name, f"nobody says what {', '.join(unknown)} does to what runs")


def buys(change: ResourceChange) -> bool:
    """Whether a change lets the deployment buy a training plan: it names what to buy, and did not before."""
    desired = change.type == PLAN and "Request" in change.new and "Arn" not in change.new
    return desired and (change.action in ("create", "replace") or "Request" not in change.old)


def answered(
    result: Sequence[Need], digest: str, approved: Sequence[ApprovedChange], allowed: Collection[str] = ()
) -> list[Need]:
    """The same needs, each with whether it is approved.

    Harm has to be named: in the entry of `approved` that has the change set's digest, or in `allowed`. For the rest the
    digest is enough.
    """
    entries = [entry for entry in approved if entry.digest == digest]
    named = {name for entry in entries for name in entry.names} | set(allowed)
    return [replace(need, approved=need.name in named or (bool(entries) and not need.refused)) for need in result]


def entry(result: Sequence[Need], digest: str) -> str:
    """What to write into the environment's file to approve a change set, as YAML."""
    names = sorted({need.name for need in result if need.refused})
    lines = ["approved_changes:", f"  - digest: {digest}"]
    if names:
        lines.append(f"    names: [{', '.join(names)}]")
    return "\n".join([*lines, "    reason: …"])


def stop_unapproved(environment: str, result: Sequence[Need], digest: str) -> None:
    """Raise CommandError where a deployment would do harm that nobody named."""
    harm = [need for need in result if need.refused and not need.approved]
    if harm:
        flags = " ".join(dict.fromkeys(f"--allow {need.name}" for need in harm))
        message = "\n".join(f"    {need.id}  {need.name}: {need.why}" for need in harm)
        raise CommandError(
            f"{environment}: nothing was deployed, because the change set would do harm without approval:\n{message}",
            f"to approve it, run `podwright deploy {environment} {flags}`, or add to the file:\n{entry(harm, digest)}",
        )
