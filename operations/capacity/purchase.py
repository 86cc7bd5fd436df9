"""What buying a plan and buying more time for it share: who buys, what an earlier run left, what reaches the file."""

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import ceil
from pathlib import Path
from typing import Any, Final

from ...config.errors import CommandError, InvalidFile, PodwrightError
from ...config.findings import Finding
from ...config.loading.load import resolved
from ...config.loading.project import Project
from ...config.loading.source import read_source
from ...planning.purchase.offers import Part, Plan
from ...planning.purchase.purchase import NothingToClose, close
from ...planning.purchase.record import NotRecorded, Record, read
from ...planning.purchase.run import NotSold, Outcome, Purchase, Result
from ...planning.purchase.steps import Engine, Sleep, Steps, Tell
from ..aws.account import Account
from ..aws.calls import get
from ..aws.plans import plan_answer
from .market import zone_ids
from .plan_file import NotWritten, Values, holder, lines, write_plan

_READS: Final = 24
_PAUSE: Final = 5.0


@dataclass(frozen=True, slots=True)
class Buyer:
    """An account to buy in, with what a purchase's steps need."""

    account: Account
    identity: str
    """ARN of whoever buys, for the record."""
    clients: Mapping[Any, Any] = field(repr=False)
    """Those that a purchase needs."""
    tell: Callable[[str], object]
    """Hears what is under way."""
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    sleep: Callable[[float], object] = time.sleep

    @classmethod
    def of(cls, account: Account, tell: Callable[[str], object]) -> "Buyer":
        """The buyer that the account's credentials are."""
        # Whoever buys is in the record for good; an access key alone would not say who.
        return cls(account, get(account, "sts", "get_caller_identity")["Arn"], account.purchase_clients(), tell)

    def carry_out(self, steps: Steps[Any]) -> Any:
        """Carry out steps of a purchase, and return their result.

        Raises:
            CommandError: what may not be bought or closed, or a record that cannot be written. This run bought nothing.
        """
        try:
            return Engine(self.clients, clock=self.clock, sleep=self.sleep, tell=self.tell).run(steps)
        except (NotSold, NotRecorded, NothingToClose) as error:
            raise CommandError(str(error)) from None


@dataclass(frozen=True, slots=True)
class InAccount:
    """A plan that is in the account now, with what the file shall say of it."""

    result: str
    """`bought`, or `exists` where this command bought nothing."""
    text: str
    values: Values
    paid: bool = False
    upfront: float | None = None


@dataclass(frozen=True, slots=True)
class Saved:
    """A file that the values of a plan were written into, and who else reads it."""

    file: Path | None
    """None where nothing was written: a plan of the sandbox stays out of the file of an account."""
    shared: tuple[str, ...] = ()
    """Other environments that extend the file."""
    problems: tuple[Finding, ...] = ()
    """Why some environments could not be asked."""


def close_unknown(buyer: Buyer, key: str) -> str:
    """Let a purchase whose outcome is unknown be made again. Raises CommandError where it turned out to be known."""
    outcome = buyer.carry_out(close(key, buyer=buyer.identity, run=new_run()))
    if outcome.result is not Result.REFUSED:
        raise CommandError(outcome.text)
    return outcome.text


class NothingLeft(PodwrightError):
    """An earlier purchase is over, and did not leave anything."""


def earlier(buyer: Buyer, key: str, request: Any = None) -> Outcome | None:
    """What came of a purchase that was begun before; None when there is nothing that keeps one from buying.

    It reads, and waits for another buyer who is at it, but never buys.
    """

    # A draft is asked for only where nothing keeps one from buying, which is what is to be known.
    def draft() -> Steps[Record]:
        raise NothingLeft

    # No record, so nothing was begun, and no table has to be made.
    if buyer.carry_out(read(key)) is None:
        return None
    try:
        return buyer.carry_out(Purchase(key, new_run(), draft, request).carry_out())
    except NothingLeft:
        return None


def new_run() -> str:
    """A name that only this run has."""
    return str(uuid.uuid4())


def settled(buyer: Buyer, arn: str, done: Callable[[Plan], bool]) -> Plan | None:
    """The plan once it is `done`, or after two minutes as it is then; None where SageMaker does not show it."""
    zones = zone_ids(buyer.account)

    def observations() -> Steps[Plan | None]:
        plan = None
        for attempt in range(_READS):
            if attempt:
                yield Sleep(_PAUSE)
            shape = plan_answer(buyer.account, arn)
            plan = Plan.of(shape, zones) if shape else None
            if plan and done(plan):
                break
            # Once; each further look would repeat it.
            if not attempt:
                yield Tell("waiting for the payment")
        return plan

    return buyer.carry_out(observations())


def values_of(arn: str, parts: Sequence[Part], plan: Plan | None) -> Values:
    """What the file shall say of a plan. `parts` are those of the offer, and stand where the plan has none yet."""
    # The plan's own parts are surer than the offer's, once SageMaker shows them.
    if plan and plan.parts and all(part.start and part.end for part in plan.parts):
        parts = plan.parts
    ordered = sorted(parts, key=lambda part: (part.start is None, part.start))
    known: list[tuple[Part, datetime, datetime]] = [
        (part, part.start, part.end) for part in ordered if part.start and part.end
    ]
    values: dict[str, Any] = {"arn": arn}
    if plan and plan.fee and plan.currency == "USD":
        # In whole dollars, as the file's limit is.
        values["paid_usd"] = ceil(plan.fee)
    if known:
        values |= {"zone": known[0][0].zone, "start": known[0][1], "end": max(end for _, _, end in known)}
    # A plan of one window needs no list of them.
    if len(known) > 1:
        values["windows"] = [
            {"start": start, "end": end, "count": part.count, "zone": part.zone} for part, start, end in known
        ]
    return values


def write_back(file: Path | None, plan: str, values: Values) -> str:
    """Write the values into the file; empty, or why that did not work and what to put there by hand."""
    if file is None:
        return ""
    try:
        write_plan(file, plan, values)
    except NotWritten as error:
        return f"the file could not be written: {error}\nPut this under training_plans.{plan}:\n{lines(values, 4)}"
    return ""


def save(project: Project, environment: str, file: Path | None, plan: str, state: InAccount) -> Saved:
    """Write what is known of a plan into the environment's file, or into the one that it extends for this.

    Raises:
        CommandError: the file could not be written; with everything that would have gone into it.
    """
    if problem := write_back(file, plan, state.values):
        raise CommandError(f"{state.text}, and {problem}")
    if file is None:
        return Saved(None)
    written = holder(resolved(read_source(file), file), file, ("training_plans", plan))
    # By the file itself: several environments may name it by different paths.
    real, shared, problems = written.resolve(), list[str](), list[Finding]()
    for name in project.names:
        try:
            used = project.source(name).files.values()
        except InvalidFile as error:
            # What was bought is told in any case.
            problems += error.findings
            continue
        if name != environment and real in (other.resolve() for other in used):
            shared.append(name)
    return Saved(written, tuple(shared), tuple(problems))
