"""Buying more time for a training plan, once: SageMaker offers extensions that begin where the plan ends."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from math import ceil
from typing import Final

from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ...config.settings.plans import TrainingPlan
from ...planning.purchase.offers import Plan, money, shown
from ...planning.purchase.purchase import extend
from ...planning.purchase.record import State, read
from ...planning.purchase.run import Outcome
from ..aws.calls import get
from ..aws.plans import plan_answer
from .market import zone_ids
from .offers import hours, minute
from .plan_file import Values
from .plans import Json, extensions
from .purchase import Buyer, InAccount, new_run, settled, values_of

_ANOTHER_END: Final = timedelta(hours=1)
"""Extensions last a day or more; a shorter difference is how somebody wrote the end down."""


@dataclass(frozen=True, slots=True)
class Extension:
    """An offer to prolong a plan."""

    id: str
    start: datetime
    end: datetime
    fee: Decimal | None
    currency: str

    @classmethod
    def of(cls, shape: Json) -> "Extension":
        """From a TrainingPlanExtensionOffering."""
        fee, currency = money(shape.get("UpfrontFee")), shape.get("CurrencyCode", "")
        return cls(shape["TrainingPlanExtensionOfferingId"], shape["StartDate"], shape["EndDate"], fee, currency)

    def per_instance_hour(self, count: int) -> Decimal | None:
        """The price of one instance for an hour."""
        return None if self.fee is None or not count else self.fee / (count * hours(self.end - self.start))


@dataclass(frozen=True, slots=True)
class Extendable:
    """A plan that may be extended."""

    plan: Plan
    end: datetime
    """When it ends now."""
    count: int
    """Its instances."""
    deployed: bool
    """Whether the deployment bought it, which keeps resolving it: the file has its end alone."""

    def in_account(self, plan: Plan, result: str, text: str, *, paid: bool = False) -> InAccount:
        """What the file shall say of the plan: with a new end in the file a deployment looks at its plan again."""
        values: Values = {"end": plan.end} if self.deployed and plan.end else values_of(plan.arn, (), plan)
        return InAccount(result, text, values, paid)


def extendable(buyer: Buyer, environment: Environment, name: str, show: str) -> Extendable:
    """A plan of the file. Raises CommandError where it cannot be extended; `show` is the command that prints plans."""
    settings, arn = environment.training_plans[name], environment.training_plans[name].arn
    if not arn:
        # The file does not have the ARN of what a deployment bought.
        record = buyer.carry_out(read(f"{environment.name}/{name}"))
        arn = record.arn if record else ""
    shape = plan_answer(buyer.account, arn) if arn else None
    if shape is None:
        raise CommandError(
            f"SageMaker has no {arn} in {buyer.account}" if arn else f"{name} is not bought yet",
            f"`{show}` prints what there is",
        )
    plan = Plan.of(shape, zone_ids(buyer.account))
    if plan.status not in ("Scheduled", "Active") or plan.end is None:
        raise CommandError(f"{name} is {plan.status}; only a plan that is Scheduled or Active can be extended")
    return Extendable(plan, plan.end, shape.get("TotalInstanceCount", 0), settings.state == "purchase")


def extended_already(buyer: Buyer, existing: Extendable, name: str, settings: TrainingPlan) -> InAccount | None:
    """The plan where it ends later than the file says; None where it does not."""
    starts = (item["StartDate"] for item in extensions(buyer.account, existing.plan.arn))
    # The file may not have the end of a plan that was bought elsewhere; then extensions show how long it was.
    known = settings.end or min(starts, default=existing.end)
    if existing.end - known < _ANOTHER_END:
        return None
    text = f"{name} ends at {minute(existing.end)}Z already, later than the file says; nothing was bought"
    return existing.in_account(existing.plan, "exists", text)


def extension_offers(buyer: Buyer, arn: str, days: int | None) -> list[Extension]:
    """What SageMaker offers for the plan; of any length where `days` is None."""
    length = {"DurationHours": days * 24} if days else {}
    answer = get(buyer.account, "sagemaker", "search_training_plan_offerings", TrainingPlanArn=arn, **length)
    offers = map(Extension.of, answer.get("TrainingPlanExtensionOfferings", ()))
    return sorted(offers, key=lambda offer: (offer.end, offer.fee or 0))


def record_keys(existing: Extendable, offers: Sequence[Extension]) -> list[str]:
    """Under what the next extension may be recorded.

    It is the extension's start, which is the plan's end: nobody says that it is so to the minute.
    """
    times = [existing.end, *(offer.start for offer in offers)]
    starts = dict.fromkeys(map(shown, times))
    return [f"{existing.plan.arn}/extension/{start}" for start in starts]


def unknown_key(buyer: Buyer, keys: Sequence[str]) -> str:
    """The key of a purchase whose outcome is unknown; the first one where there is none."""
    records = [buyer.carry_out(read(key)) for key in keys]
    return next((record.plan for record in records if record and record.state is State.UNKNOWN), keys[0])


def chosen(offers: Sequence[Extension], offering: str | None, days: int) -> Extension | None:
    """The offer that is named, else the cheapest of so many days; None where there is none of that length.

    Raises:
        CommandError: what is named is not offered.
    """
    if not offering:
        # Less than a day off, as plans end at a fixed time of day.
        fitting = [offer for offer in offers if abs(hours(offer.end - offer.start) - days * 24) < 24]
        # An offer without a price comes last; it cannot be bought unseen.
        return min(fitting, key=lambda offer: (offer.fee is None, offer.fee or 0), default=None)
    result = next((offer for offer in offers if offer.id == offering), None)
    if result is None:
        hint = "without --duration and --offering the offers of now are listed"
        raise CommandError(f"nothing was bought: {offering} is not among the offers now", hint)
    return result


def buy(buyer: Buyer, arn: str, offer: Extension, max_upfront: int | None) -> Outcome:
    """Buy an extension for what it was offered for, or `max_upfront` at most."""
    # Rounded up: the limit is in whole dollars.
    price = (offer.fee, offer.currency, max_upfront or ceil(offer.fee or 0))
    return buyer.carry_out(extend(arn, offer.id, offer.start, *price, buyer=buyer.identity, run=new_run()))


def bought(buyer: Buyer, existing: Extendable, name: str, reserve: str, *, paid: bool) -> InAccount:
    """The plan once SageMaker shows its new end. Raises CommandError where it does not; `reserve` writes it later."""

    def longer(plan: Plan) -> bool:
        return plan.end is not None and plan.end > existing.end

    plan = settled(buyer, existing.plan.arn, longer)
    if plan is None or not longer(plan):
        raise CommandError(
            f"the extension of {name} is bought, and SageMaker does not show the new end yet",
            f"`{reserve}` writes it into the file later",
        )
    text = f"{name} now ends at {minute(plan.end)}Z; deploy, so that its reminders move along"
    return existing.in_account(plan, "bought", text, paid=paid)
