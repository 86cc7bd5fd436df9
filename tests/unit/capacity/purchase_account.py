"""Buyers of training plans that take turns, whatever befalls their calls, and whether it ends well.

Everything happens when a test says so. Nothing sleeps, nothing runs beside, and each run is a few hundred microseconds,
so that tests can go through every way in which things can happen.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final, Literal, get_args

from podwright.planning.purchase.observations import READS_AFTER
from podwright.planning.purchase.offers import Request
from podwright.planning.purchase.purchase import acquire, close, extend, reserve
from podwright.planning.purchase.run import Outcome, Result
from podwright.planning.purchase.steps import Call, Now, Sleep, Steps, Tell
from purchase_aws import ARN, END, NOW, Flow, PurchaseAccount, Refusal

REQUEST = Request(
    "prod",
    "q1",
    ("usw2-az2",),
    instance_type="ml.p5en.48xlarge",
    count=16,
    hours=28 * 24,
    start_after=NOW,
    max_upfront_usd=900_000,
)
TAGS = {"podwright:environment": "prod"}

Fault = Literal["throttled", "denied", "lost before", "lost after", "late", "crash before", "crash after", "table gone"]
FAULTS: Final[tuple[Fault, ...]] = get_args(Fault)
"""What befalls a call: refused for now or for good, and not done; no answer and not done; no answer and done; no answer
and done a little later; the caller gone before or after it was done; and, from then on, no answer from the table."""
_LISTS: Final = {
    "list_training_plans": "TrainingPlanSummaries",
    "describe_training_plan_extension_history": "TrainingPlanExtensions",
}
_LATE_BY = 3
"""Calls of anybody after which a late one takes place."""


class Crash(Exception):
    """The buyer is gone."""


def steps_of(flow: Flow, run: str) -> Steps[Outcome]:
    """A purchase as the command, the deployment or the extension makes it."""
    if flow == "reserve":
        return reserve(REQUEST, "tpo-1", Decimal("442552.32"), "USD", buyer=run, run=run, tags=TAGS)
    if flow == "acquire":
        return acquire(REQUEST, buyer=run, run=run, tags=TAGS)
    return extend(f"{ARN}0", f"ext-{run}", END, Decimal(5000), "USD", 6000, buyer=run, run=run)


@dataclass
class Buyer:
    """One run of a purchase, which continues a step at a time."""

    flow: Flow
    run: str
    purchase_account: PurchaseAccount
    faults: dict[int, Fault] = field(default_factory=dict)
    """What befalls which of its calls, counted from 0."""
    calls: int = 0
    outcome: Outcome | None = None
    error: Exception | None = None
    crashed: bool = False
    wakes: datetime = NOW
    wrong: list[str] = field(default_factory=list)
    """Reports that were not true when they were made."""
    said: list[str] = field(default_factory=list)
    cut_off: bool = False
    """Whether the table answers it no more."""
    reads: int = 0
    """Lists that it got."""
    saw: bool = False
    """Whether one of them showed something that did not fail."""

    given: Steps[Outcome] | None = None
    """What it carries out; a purchase of `flow` when not given."""

    def __post_init__(self) -> None:
        self.steps = self.given or steps_of(self.flow, self.run)
        self.then: Callable[[], Any] = lambda: next(self.steps)

    @property
    def over(self) -> bool:
        return self.outcome is not None or self.error is not None or self.crashed

    def go_on(self) -> None:
        """One step."""
        self.purchase_account.time = max(self.purchase_account.time, self.wakes)
        try:
            answer = self._carried_out(self.then())
        except StopIteration as end:
            self.outcome = end.value
            self._judge(end.value)
        except Crash:
            self.crashed = True
        except _Answer as problem:
            raised = problem.error
            self.then = lambda: self.steps.throw(raised)
        except Exception as error:  # noqa: BLE001  what the purchase itself raised
            self.error = error
            if any(each.by == self.run for each in self.purchase_account.sold(self.flow)):
                self.wrong.append(f"{error!r} after it had bought")
        else:
            self.then = lambda: self.steps.send(answer)

    @property
    def sleeps(self) -> bool:
        """Whether it is in a pause."""
        return self.wakes > self.purchase_account.time

    def _carried_out(self, step: Any) -> Any:
        match step:
            case Call():
                fault = self.faults.get(self.calls)
                self.cut_off |= fault == "table gone"
                if self.cut_off:
                    fault = "table gone" if step.service == "dynamodb" else None
                self.calls += 1
                return self._called(step, fault)
            case Sleep(seconds):
                self.wakes = self.purchase_account.time + timedelta(seconds=seconds)
            case Now():
                return self.purchase_account.time
            case Tell(text):
                self.said.append(text)
        return None

    def _called(self, call: Call, fault: Fault | None) -> Any:
        try:
            match fault:
                case None:
                    answer = self.purchase_account.call(call, self.run)
                    if call.operation in _LISTS:
                        self.reads += 1
                        self.saw |= any(shape.get("Status") != "Failed" for shape in answer[_LISTS[call.operation]])
                    return answer
                case "throttled":
                    raise Refusal("ThrottlingException")
                case "denied":
                    raise Refusal("AccessDeniedException")
                case "lost before" | "table gone":
                    raise TimeoutError
                case "lost after":
                    self.purchase_account.call(call, self.run)
                    raise TimeoutError
                case "late":
                    self.purchase_account.late.append((self.purchase_account.calls + _LATE_BY, call, self.run))
                    raise TimeoutError
                case "crash before":
                    raise Crash
                case "crash after":
                    self.purchase_account.call(call, self.run)
                    raise Crash
        except (Refusal, TimeoutError) as error:
            if fault == "crash after":
                raise Crash from None
            raise _Answer(error) from None

    def _judge(self, outcome: Outcome) -> None:
        """Hold a report against the world at the moment at which it is made."""
        sold = self.purchase_account.sold(self.flow)
        stands = self.purchase_account.items[outcome.record.plan]["state"]["S"]
        if outcome.recorded and stands != {Result.FOUND: "intended"}.get(outcome.result, str(outcome.result)):
            self.wrong.append(f"says {outcome.result}, and the record says {stands}")
        match outcome.result:
            case Result.BOUGHT:
                arns = [each.shape.get("TrainingPlanArn", f"{ARN}0") for each in sold]
                if arns != [outcome.arn] or not outcome.text:
                    self.wrong.append(f"says {outcome.arn} is bought, and there is {arns}")
                if outcome.paid and sold[-1].by != self.run:
                    self.wrong.append("says that it paid, and another did")
            case Result.REFUSED:
                if any(outcome.recorded or each.by == self.run for each in sold):
                    self.wrong.append(f"says that nothing was bought ({outcome.text}), and there is {sold}")
            case Result.UNKNOWN:
                if sold and (self.saw or self.reads + len(self.faults) < READS_AFTER):
                    self.wrong.append(f"says that it is unknown after {self.reads} looks, and there is {sold}")
            case Result.FOUND:
                if not any(each.by == "somebody" for each in sold):
                    self.wrong.append("says that it found what it had bought itself")


class _Answer(Exception):
    """What a call raised, on its way into the steps."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


def alone(buyer: Buyer) -> Buyer:
    """Let a buyer continue to its end."""
    while not buyer.over:
        buyer.go_on()
    return buyer


def by_turns(buyers: list[Buyer], whose: Iterator[int]) -> None:
    """Let buyers continue step by step in the order of `whose`; who sleeps is passed over while others are awake."""
    while running := [buyer for buyer in buyers if not buyer.over]:
        awake = [buyer for buyer in running if not buyer.sleeps]
        chosen = awake[next(whose) % len(awake)] if awake else min(running, key=lambda buyer: buyer.wakes)
        chosen.go_on()


def is_unknown(buyer: Buyer) -> bool:
    """Whether it left it to a person."""
    return buyer.outcome is not None and buyer.outcome.result is Result.UNKNOWN


def closed(buyer: Buyer) -> Buyer:
    """A person closes what a buyer left unknown."""
    assert buyer.outcome
    steps = close(buyer.outcome.record.plan, buyer="a person", run="closing")
    return alone(Buyer(buyer.flow, "closing", buyer.purchase_account, given=steps))


def verdict(purchase_account: PurchaseAccount, buyers: list[Buyer], flow: Flow) -> list[str]:
    """Everything that is wrong after buyers have ended: false reports, a second purchase, or no way on.

    The way on: once lists show everything, the next run reports what there is, or buys it, or, when it was left unknown
    and a person closes it, buys it then. At the end exactly one stands.
    """
    wrong = purchase_account.forgotten + [each for buyer in buyers for each in buyer.wrong]
    if len(purchase_account.sold(flow)) > 1:
        return [*wrong, f"bought {len(purchase_account.sold(flow))} times"]
    purchase_account.settle()
    if len(purchase_account.sold(flow)) > 1:
        return [*wrong, f"bought {len(purchase_account.sold(flow))} times, late"]
    after = alone(Buyer(flow, "after", purchase_account))
    if is_unknown(after):
        wrong += closed(after).wrong
        after = alone(Buyer(flow, "at last", purchase_account))
    wrong += after.wrong
    if after.outcome is None or after.outcome.result not in (Result.BOUGHT, Result.FOUND):
        wrong.append(f"no way on: {after.outcome.text if after.outcome else after.error!r}")
    if len(purchase_account.sold(flow)) != 1:
        wrong.append(f"bought {len(purchase_account.sold(flow))} times at the end")
    return wrong
