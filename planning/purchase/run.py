"""One run of a purchase: from whatever state its record is in to an outcome, with at most one call that charges.

Standard library only: this module travels into the Lambda function that buys, beside `plan_purchase`.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from .observations import READS_AFTER, READS_BEFORE, PurchasedPlan, find
from .offers import Plan, Request, misfits
from .record import NotRecorded, Record, State, ensure_table, read, write
from .steps import Call, Now, Sleep, Steps, Tell, is_refusal

NAME_LENGTH: Final = 64
"""Longest name of a plan. Source: TrainingPlanName in the SageMaker service model of botocore 1.44."""
_CALL_WITHIN: Final = 30
"""Seconds within which the winner has to call; later it lets it be."""
_CALL_OVER: Final = 300
"""Seconds after which no call of a winner can be under way: it had 30 to begin, 65 to time out, the rest for clocks."""
_WAIT_PAUSE: Final = 15
_TURNS: Final = 20
"""States that one run goes through at most; more means that others keep writing."""


class Result(StrEnum):
    """How a purchase ended."""

    BOUGHT = "bought"
    """What was asked for is there, bought under this record, now or before."""
    FOUND = "found"
    """Nothing was bought now: it is there, and this record knows nothing of its purchase."""
    REFUSED = "refused"
    """Nothing was bought."""
    UNKNOWN = "unknown"
    """Whether it was bought is unknown. A person has to look."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run of a purchase has to say."""

    result: Result
    text: str
    """A sentence for people: what is, and what to do next."""
    record: Record
    arn: str = ""
    """ARN of the plan, when there is one."""
    paid: bool = False
    """Whether it was this run's own call that bought."""
    plan: Plan | None = None
    """The plan as SageMaker lists it, where it was seen."""
    differs: tuple[str, ...] = ()
    """How the plan that is there differs from what was asked for."""
    recorded: bool = True
    """False when the record could not be written: the next run finds out by itself."""


class NotSold(Exception):
    """The purchase may not be made: its price is unknown or too high, or its name too long."""


Draft = Callable[[], Steps[Record]]
"""What to buy: the record of an attempt, as yet without time and name of the write."""


class Purchase:
    """One run of one purchase."""

    def __init__(self, key: str, run: str, draft: Draft, request: Request | None = None) -> None:
        """`draft` gives what to buy, and is asked only once it is clear that something may be bought."""
        self.key, self.run, self.request = key, run, request
        self._draft, self._writes = draft, 0
        self._kept: Record | None = None

    def carry_out(self) -> Steps[Outcome]:
        """From whatever state the record is in to an outcome."""
        # In the first purchase of an account the table does not exist yet.
        yield from ensure_table()
        record = yield from read(self.key)
        for _ in range(_TURNS):
            step = yield from self._turn(record)
            if isinstance(step, Outcome):
                return step
            record = step
        raise NotRecorded(f"others keep changing the record {self.key}; nothing was bought by this run, try later")

    def _turn(self, record: Record | None) -> Steps[Record | Outcome]:
        """One step from the state that the record is in: the record as it then is, or how the purchase ended."""
        if record is None:
            return (yield from self._put((yield from self._drafted()), None))
        match record.state:
            case State.INTENDED:
                return (yield from self._intended(record))
            case State.BUYING:
                return (yield from self._buying(record))
            case State.BOUGHT:
                return (yield from self._bought(record))
            case State.UNKNOWN:
                result = yield from find(record, READS_AFTER)
                return (yield from self._resolved(record, result)) if result else self._outcome(record)
            case State.REFUSED:
                return (yield from self._again(record))

    def _intended(self, record: Record) -> Steps[Record | Outcome]:
        """Buy, unless the plan is there or another run changed the record; after a failed plan by the next name."""
        yield Tell(f"looking whether {record.name} is there already")
        result = yield from find(record, READS_BEFORE)
        existing = next((each for each in result if not each.failed), None)
        # Only a failed plan makes its name free for another; anything else of that name is somebody's.
        if existing:
            # Another run may have bought it since this one read the record.
            now = yield from read(self.key)
            if now and now.revision != record.revision:
                return now
        # A person closed a purchase by saying that nothing was bought; a plan that shows later proves otherwise.
        # A purchase that a person closed keeps its name: what shows late was bought by it.
        if existing and existing.fits and any(each["name"] == record.name for each in record.attempts_before):
            return (yield from self._resolved(record, result))
        if existing:
            return self._outcome(record, existing=existing)
        if result and record.kind == "plan":
            return (yield from self._again(record, generation=record.generation + 1))
        # Asked for only here: until now nothing was to be bought, and searching for offers is a call of its own.
        draft = yield from self._drafted()
        drafted = replace(
            draft, generation=record.generation, attempt=record.attempt, earlier=record.earlier, state=State.BUYING
        )
        if drafted.kind == "plan" and len(drafted.name) > NAME_LENGTH:
            raise NotSold(f"the plan's name {drafted.name} has more than {NAME_LENGTH} characters; nothing was bought")
        written = yield from self._put(drafted, record)
        # The mark of the write says who won, also when the answer to the write was lost.
        return (yield from self._call(written)) if written.write == self._last_write else written

    def _call(self, record: Record) -> Steps[Outcome]:
        """Make the one call that costs money and record its answer. Without a clear one, see whether it was bought."""
        now: datetime = yield Now()
        # The clock may have been set back; then the record seems to be of the future, and nothing is bought.
        if not timedelta() <= now - datetime.fromisoformat(record.at) <= timedelta(seconds=_CALL_WITHIN):
            reason = f"more than {_CALL_WITHIN} seconds passed before the call, so it was not made"
            return (yield from self.settle(record, State.REFUSED, reason=reason))
        yield Tell(f"buying {record.name}: offer {record.offering} of {record.price} {record.currency}")
        try:
            answer = yield _buying_call(record)
        except Exception as error:  # noqa: BLE001  becomes the record's reason
            reason = f"{type(error).__name__}: {error}"
            # Only an answer of class 4xx is sure; after anything else a second call might buy a second plan.
            if is_refusal(error):
                return (yield from self.settle(record, State.REFUSED, reason=reason))
            yield Tell(f"no clear answer ({reason}); looking whether it was bought all the same")
            # Patient: SageMaker may list a plan some time after it took the order.
            result = yield from find(record, READS_AFTER, patient=True)
            if result:
                return (yield from self._resolved(record, result, reason))
            return (yield from self.settle(record, State.UNKNOWN, reason=reason))
        arn = answer.get("TrainingPlanArn", record.base)
        return (yield from self.settle(record, State.BOUGHT, arn=arn, reason="", paid=True))

    def _buying(self, record: Record) -> Steps[Record | Outcome]:
        """Somebody else won. Wait for them as long as their call may take, then see what there is."""
        now: datetime = yield Now()
        left = _CALL_OVER - (now - datetime.fromisoformat(record.at)).total_seconds()
        # A clock that is ahead must not make this one wait forever.
        left = min(left, _CALL_OVER)
        if left > 0:
            yield Tell(f"{record.buyer} has been buying {record.name} since {record.at}; waiting for the outcome")
        while left > 0:
            yield Sleep(_WAIT_PAUSE)
            left -= _WAIT_PAUSE
            existing = yield from read(self.key)
            if existing is None or existing.revision != record.revision:
                return existing or record
        result = yield from find(record, READS_AFTER)
        if result:
            return (yield from self._resolved(record, result))
        reason = f"{record.buyer} was about to call at {record.at} and never said how it went"
        return (yield from self.settle(record, State.UNKNOWN, reason=reason))

    def _bought(self, record: Record) -> Steps[Record | Outcome]:
        result = yield from find(record, 1)
        existing = next((each for each in result if each.arn == record.arn), None)
        if existing and existing.failed:
            yield Tell(f"{record.name} has failed{': ' + existing.plan.message if existing.plan else ''}")
            return (yield from self._again(record, generation=record.generation + 1))
        return self._outcome(record, existing=existing)

    def _resolved(self, record: Record, plans: list[PurchasedPlan], reason: str = "") -> Steps[Outcome]:
        """What there is decides: one thing that fits was bought; anything else a person has to look at."""
        fitting = [each for each in plans if each.fits]
        # Two that fit cannot be told apart: which of them was bought by this record nobody knows.
        if len(fitting) == 1:
            return (yield from self.settle(record, State.BOUGHT, arn=fitting[0].arn, reason=reason, plan=fitting[0]))
        listed = ", ".join(each.arn for each in plans)
        problem = f"{listed} {'all fit' if fitting else 'is listed under that name but differs'}"
        return (yield from self.settle(record, State.UNKNOWN, reason=f"{reason}; {problem}".removeprefix("; ")))

    def _again(self, record: Record, *, generation: int | None = None) -> Steps[Record]:
        """Set out anew, with the offer that is wanted now."""
        draft = yield from self._drafted()
        drafted = replace(
            draft, generation=generation or record.generation, attempt=record.attempt + 1, earlier=record.retired()
        )
        return (yield from self._put(drafted, record))

    def settle(
        self,
        record: Record,
        state: State,
        *,
        arn: str = "",
        reason: str,
        paid: bool = False,
        plan: PurchasedPlan | None = None,
    ) -> Steps[Outcome]:
        """Write how attempt `record` ended, over whatever others have written of the same attempt meanwhile.

        That it was bought stands over everything, and a refusal over what others could not know.
        """
        observed, recorded = record, True
        ended = replace(record, state=state, arn=arn, reason=reason)
        for _ in range(_TURNS):
            try:
                written = yield from self._put(replace(ended, earlier=observed.earlier), observed)
            except Exception as error:  # noqa: BLE001  what was bought is told whether or not it can be written
                yield Tell(f"the record could not be written: {error}")
                recorded = False
                break
            if written.write == self._last_write:
                ended = written
                break
            if written.attempt != record.attempt:
                return (yield from self._overtaken(ended, written, plan, paid=paid))
            if written.state is State.BOUGHT or (state is State.UNKNOWN and written.state is not State.BUYING):
                return self._outcome(written, existing=plan, paid=paid)
            observed = written
        return self._outcome(ended, existing=plan, paid=paid, recorded=recorded)

    def _overtaken(self, ended: Record, newer: Record, plan: PurchasedPlan | None, *, paid: bool) -> Steps[Outcome]:
        """The end of an attempt after which somebody set out anew, because this run was away for minutes."""
        if ended.state is State.BOUGHT or newer.state is State.INTENDED:
            return self._outcome(ended, existing=plan, paid=paid, recorded=False)
        if newer.state is State.BUYING:
            step = yield from self._buying(newer)
            newer = step.record if isinstance(step, Outcome) else step
        return self._outcome(newer)

    def _drafted(self) -> Steps[Record]:
        if self._kept is None:
            self._kept = yield from self._draft()
        return self._kept

    def _put(self, record: Record, observed: Record | None) -> Steps[Record]:
        now: datetime = yield Now()
        # Numbered, so that two writes of one run are told apart when the answer to one is lost.
        self._writes += 1
        return (yield from write(replace(record, at=now.isoformat(), write=self._last_write), observed))

    @property
    def _last_write(self) -> str:
        return f"{self.run}/{self._writes}"

    def _outcome(
        self, record: Record, *, existing: PurchasedPlan | None = None, paid: bool = False, recorded: bool = True
    ) -> Outcome:
        """How the purchase ended, in words for the buyer; `recorded` is False when the record could not be written."""
        plan = existing.plan if existing else None
        differs = tuple(misfits(self.request, plan)) if plan and self.request else ()
        common = {"paid": paid, "plan": plan, "differs": differs, "recorded": recorded}
        what = record.name if record.kind == "plan" else f"the extension of {record.name}"
        match record.state:
            case State.BOUGHT:
                how = f"for {record.price} {record.currency}" if paid else f"by {record.buyer} at {record.at}"
                note = f"; its status is {plan.status}" if plan else ""
                note += "" if recorded else "; the record could not be written, keep this ARN"
                text = f"{what} is bought, {how}: {record.arn}{note}"
                return Outcome(Result.BOUGHT, text, record, record.arn, **common)
            case State.REFUSED:
                whose = "" if recorded else " by this run, though another may have bought it since"
                text = f"{what} was not bought{whose}: {record.reason}"
                return Outcome(Result.REFUSED, text, record, **common)
            case State.INTENDED if existing:
                text = (
                    f"{what} is there already, and not bought under the record {record.plan}; nothing was bought now. "
                    f"Write its ARN into the file, or use another name: {existing.arn}"
                )
                return Outcome(Result.FOUND, text, record, existing.arn, **common)
            case _:
                text = (
                    f"whether {what} was bought is unknown: offer {record.offering} of {record.price} "
                    f"{record.currency}, called by {record.buyer} at {record.at} ({record.reason}). Look at the "
                    "training plans in the SageMaker console and at the bill. If it is there, run this again and it "
                    "will be found; if it is not, close the purchase, and only then buy again"
                )
                return Outcome(Result.UNKNOWN, text, record, **common)


def _buying_call(record: Record) -> Call:
    """The one call that charges."""
    if record.kind == "extension":
        return Call("seller", "extend_training_plan", {"TrainingPlanExtensionOfferingId": record.offering})
    named = {"TrainingPlanName": record.name, "TrainingPlanOfferingId": record.offering}
    return Call("seller", "create_training_plan", named | json.loads(record.more))
