"""Buy more time for a training plan, once.

SageMaker offers extensions that begin where the plan ends. Without --days or --offering they are listed. The price is
shown, and the plan's name has to be typed. The new end goes into the file. Where the plan ends later than the file
says, an extension is bought already: the file is put right, and nothing is bought until this runs again.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from math import ceil
from pathlib import Path
from typing import Any

from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ...planning.purchase.offers import Plan, money, shown
from ...planning.purchase.purchase import extend as extended
from ...planning.purchase.record import State, read
from ...planning.purchase.run import Outcome, Result
from ..aws.account import account_of
from ..aws.calls import get
from ..aws.plans import plan_answer
from ..cdk.deployment import load
from ..cdk.progress import Progress
from ..output.console import write_json, write_note
from .market import zone_ids
from .offers import amount, hours, minute, span
from .plan_file import Values
from .plans import Json, extensions
from .purchase import (
    Buyer,
    add_purchase_arguments,
    check_consent,
    close_unknown,
    consent,
    earlier,
    environment_file,
    new_run,
    report,
    settled,
    values_of,
)
from .search import plan_of
from .table import new_table, write_blocks

_ANOTHER_END = timedelta(hours=1)
"""Extensions last a day or more; a shorter difference is how somebody wrote the end down."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright capacity extend`."""
    add_purchase_arguments(parser, "the one of --days")
    parser.add_argument("--days", type=int, metavar="N", help="length of the extension in days")


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


def run(args: argparse.Namespace) -> int:
    """Returns 0 once the extension is bought, or the offers are listed."""
    environment = load(args).environment
    settings = plan_of(environment, args.plan)
    choosing = args.days is None and args.offering is None and not args.nothing_was_bought
    if not choosing:
        check_consent(args)
    account = account_of(environment, args.project, args.sandbox)
    buyer, progress = Buyer.of(account), Progress()

    def tell(text: str) -> None:
        progress.say(args.plan, text)

    arn = settings.arn or _recorded(environment, args.plan, buyer, tell)
    shape = plan_answer(buyer.account, arn) if arn else None
    if shape is None:
        raise CommandError(
            f"{args.plan} is not bought yet" if not arn else f"SageMaker has no {arn} in {account}",
            f"`podwright capacity show {args.environment}` prints what there is",
        )
    plan = Plan.of(shape, zone_ids(buyer.account))
    if plan.status not in ("Scheduled", "Active") or plan.end is None:
        raise CommandError(f"{args.plan} is {plan.status}; only a plan that is Scheduled or Active can be extended")
    file, deployed = environment_file(args, environment), settings.state == "purchase"
    if file and not choosing and not args.nothing_was_bought:
        known = settings.end or min((item["StartDate"] for item in extensions(buyer.account, arn)), default=plan.end)
        if plan.end - known >= _ANOTHER_END:
            text = f"{args.plan} ends at {minute(plan.end)}Z already, later than the file says; nothing was bought"
            return report(args, file, text, _values(plan, deployed), "exists", paid=False)
    offers = _offers(buyer, arn, args.days)
    # An extension is recorded by its start, which is the plan's end: nobody says that it is so to the minute.
    starts = dict.fromkeys(shown(timestamp) for timestamp in (plan.end, *(offer.start for offer in offers)))
    keys = [f"{arn}/extension/{start}" for start in starts]
    if args.nothing_was_bought:
        return _close(args, buyer, keys, tell)
    outcome = next((resolved_outcome for key in keys if (resolved_outcome := earlier(buyer, key, None, tell))), None)
    if outcome is None:
        count = shape.get("TotalInstanceCount", 0)
        if choosing:
            _list(args, offers, count)
            return 0
        chosen = _chosen(args, offers, count, buyer, arn)
        what = f"{args.plan} until {minute(chosen.end)}Z (offer {chosen.id})"
        consent(args, what, chosen.fee, chosen.currency, args.max_upfront)
        limit = args.max_upfront or ceil(chosen.fee or 0)
        price = (chosen.fee, chosen.currency, limit)
        steps = extended(arn, chosen.id, chosen.start, *price, buyer=buyer.identity, run=new_run())
        outcome = buyer.carry_out(steps, tell)
    return _finish(args, buyer, outcome, plan, file, tell, deployed=deployed)


def _recorded(environment: Environment, name: str, buyer: Buyer, tell: Any) -> str:
    """ARN of a plan that the deployment bought, which the file does not have."""
    record = buyer.carry_out(read(f"{environment.name}/{name}"), tell)
    return record.arn if record else ""


def _offers(buyer: Buyer, arn: str, days: int | None) -> list[Extension]:
    """What SageMaker offers for the plan; of any length where `days` is None."""
    length = {"DurationHours": days * 24} if days else {}
    answer = get(buyer.account, "sagemaker", "search_training_plan_offerings", TrainingPlanArn=arn, **length)
    offers = map(Extension.of, answer.get("TrainingPlanExtensionOfferings", ()))
    return sorted(offers, key=lambda offer: (offer.end, offer.fee or 0))


def _chosen(args: argparse.Namespace, offers: Sequence[Extension], count: int, buyer: Buyer, arn: str) -> Extension:
    """The offer that the arguments mean. Raises CommandError when there is none, with those that there are."""
    if args.offering:
        result = next((offer for offer in offers if offer.id == args.offering), None)
        hint = "without --days and --offering the offers of now are listed"
        if result is None:
            raise CommandError(f"nothing was bought: {args.offering} is not among the offers now", hint)
        return result
    fitting = [offer for offer in offers if abs(hours(offer.end - offer.start) - args.days * 24) < 24]
    if fitting:
        return min(fitting, key=lambda offer: (offer.fee is None, offer.fee or 0))
    others = offers or _offers(buyer, arn, None)
    _list(args, others, count)
    hint = "take one of those that there are" if others else "wait, or reserve another plan for the time after"
    raise CommandError(f"nothing was bought: no extension of {args.days} days is offered", hint)


def _list(args: argparse.Namespace, offers: Sequence[Extension], count: int) -> None:
    """Print what can be bought."""
    if args.json:
        write_json({"result": "none", "offers": [_json(offer, count) for offer in offers]})
        return
    table = new_table(
        f"Extensions of {args.plan}, {count} instances",
        "offer",
        "from (UTC)",
        "to (UTC)",
        "length",
        "upfront",
        "instance-hour",
    )
    for offer in offers:
        price = offer.per_instance_hour(count)
        times = (minute(offer.start), minute(offer.end), span(offer.end - offer.start))
        table.add_row(offer.id, *times, amount(offer.fee, offer.currency), f"{price:,.2f}" if price else "unknown")
    notes = [f"`podwright capacity extend {args.environment} {args.plan} --days N` buys one."]
    write_blocks([table] if offers else [], notes if offers else [f"SageMaker offers no extension of {args.plan} now."])


def _json(offer: Extension, count: int) -> Json:
    price = offer.per_instance_hour(count)
    return {
        "id": offer.id,
        "start": offer.start.isoformat(),
        "end": offer.end.isoformat(),
        "hours": float(hours(offer.end - offer.start)),
        "upfront": None if offer.fee is None else float(offer.fee),
        "currency": offer.currency,
        "per_instance_hour": None if price is None else round(float(price), 4),
    }


def _close(args: argparse.Namespace, buyer: Buyer, keys: Sequence[str], tell: Any) -> int:
    records = [buyer.carry_out(read(key), tell) for key in keys]
    key = next((record.plan for record in records if record and record.state is State.UNKNOWN), keys[0])
    warning = "If the extension is in the plan's history in the console or on the bill, do not continue."
    return close_unknown(args, buyer, key, warning, tell)


def _finish(
    args: argparse.Namespace,
    buyer: Buyer,
    outcome: Outcome,
    before: Plan,
    file: Path | None,
    tell: Any,
    *,
    deployed: bool,
) -> int:
    if outcome.result is not Result.BOUGHT:
        if args.json:
            write_json({"result": str(outcome.result), "text": outcome.text})
        hint = "run this again for the offers of now"
        if outcome.result is Result.UNKNOWN:
            hint = "the same command looks again; with --nothing-was-bought it closes the purchase"
        raise CommandError(outcome.text, hint)
    write_note(outcome.text)

    def longer(plan: Plan) -> bool:
        return bool(plan.end and before.end and plan.end > before.end)

    plan = settled(buyer, before.arn, tell, longer)
    if plan is None or not longer(plan):
        raise CommandError(
            f"the extension of {args.plan} is bought, and SageMaker does not show the new end yet",
            f"`podwright capacity reserve {args.environment} {args.plan}` writes it into the file later",
        )
    text = f"{args.plan} now ends at {minute(plan.end)}Z; deploy, so that its reminders move along"
    return report(args, file, text, _values(plan, deployed), "bought", paid=outcome.paid)


def _values(plan: Plan, deployed: bool) -> Values:
    """What the file shall say of the plan."""
    # The deployment that bought a plan keeps resolving it; the new end in the file makes it look again.
    return {"end": plan.end} if deployed and plan.end else values_of(plan.arn, (), plan)
