"""Buying a training plan that the file wants, once.

Of the offers that fit, the cheapest in one part is taken, or the one that is named. A plan that exists already is read,
and nothing is bought.
"""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from ...config.errors import CommandError
from ...config.findings import Finding, errors
from ...config.loading.load import LoadedEnvironment
from ...config.settings.environment import Environment
from ...planning.purchase.offers import Plan, Request
from ...planning.purchase.purchase import reserve
from ...planning.purchase.run import Outcome
from ...planning.rules import findings
from ..aws.account import Account
from ..aws.plans import plan_answer
from .market import Answer, zone_ids
from .offers import RegionOffer
from .purchase import Buyer, InAccount, new_run, settled, values_of, write_back
from .search import check_request, wanted

NOT_BOUGHT: Final = "CAP017"
"""The rule that a plan has to be bought."""


def obstacles(loaded: LoadedEnvironment, plan: str) -> list[Finding]:
    """What is wrong with a plan of the file, and buying it would not fix."""
    return [
        finding
        for finding in errors(findings(loaded.environment, loaded.source))
        # The rule is what this command is there to satisfy.
        if f"{finding.path}.".startswith(f"training_plans.{plan}.") and finding.id != NOT_BOUGHT
    ]


def request_of(environment: Environment, plan: str, max_upfront: int | None) -> Request:
    """What the plan of the file asks for; of two limits the lower holds. Raises CommandError if it says too little."""
    request = wanted(environment, plan)
    limits = [each for each in (request.max_upfront_usd, max_upfront) if each is not None]
    request = replace(request, max_upfront_usd=min(limits, default=None))
    check_request(request, environment)
    return request


def chosen(answer: Answer, offering: str | None, search: str) -> RegionOffer | None:
    """The offer to buy: the one that is named, else the cheapest that fits and is in one part; None where none is.

    Raises:
        CommandError: what is named is not offered; it names `search`, the command that lists what is.
    """
    if not offering:
        # SageMaker's price is that of all parts together, and between parts there is nothing; only a person may want
        # that.
        return next((each for each in answer.fitting if len(each.offer.parts) == 1), None)
    result = next((each for each in answer.everything if each.offer.id == offering), None)
    if result is None:
        raise CommandError(
            f"nothing was bought: {offering} is not among the offers now",
            f"`{search}` lists them; offers go when others buy",
        )
    return result


def nothing_to_buy(answer: Answer, offer: RegionOffer | None, search: str) -> CommandError:
    """Why there is nothing to buy, and what to do; `offer` is the one that was named and differs."""
    if answer.problem and not (answer.fitting or answer.nearest):
        return CommandError(f"nothing was bought: {answer.region}: {answer.problem}")
    if offer:
        return CommandError(
            f"nothing was bought: {offer.offer.id} {', '.join(offer.differs)}",
            "--yes takes only what the file asks for; leave it away, or fix the file",
        )
    if answer.fitting:
        ids = ", ".join(each.offer.id for each in answer.fitting)
        return CommandError(
            f"nothing was bought: the fitting offers have several parts ({ids})",
            "choose one with --offering ID; it has no capacity between its parts",
        )
    hint = "change the plan in the file to one of them" if answer.nearest else "try other days, counts or regions"
    return CommandError("nothing was bought: no offer fits", f"{hint}; `{search} --help` says what can be searched for")


def buy(buyer: Buyer, request: Request, offer: RegionOffer, tags: Mapping[str, str]) -> Outcome:
    """Buy an offer. What is bought is what the person saw, even where the file asks for something else."""
    price = (offer.offer.id, offer.offer.fee, offer.offer.currency)
    steps = reserve(_as_offered(request, offer), *price, buyer=buyer.identity, run=new_run(), tags=tags)
    return buyer.carry_out(steps)


def _as_offered(request: Request, offer: RegionOffer) -> Request:
    """The request that the offer is the answer to."""
    if not offer.differs:
        return request
    first, length = offer.offer.parts[0], offer.offer.length
    number: dict[str, Any] = {"count": first.count}
    if request.ultraserver_type:
        number = {"ultraserver_count": first.ultraserver_count}
    # Whole hours: what is off by less than a day is the same.
    hours = round(length.total_seconds() / 3600)
    return replace(request, zones=offer.zones, hours=hours, start_after=None, end_before=None, **number)


def existing(account: Account, name: str, arn: str) -> InAccount:
    """A plan whose ARN the file has, as it is now. Raises CommandError where there is none, or it has failed."""
    shape = plan_answer(account, arn)
    if shape is None:
        raise CommandError(
            f"SageMaker has no {arn} in {account}", "correct `arn`, or remove it to reserve another plan"
        )
    plan = Plan.of(shape, zone_ids(account))
    if plan.status == "Failed":
        raise CommandError(f"{arn} has failed: {plan.message}", f"take `arn` out of {name} and run this again")
    return InAccount("exists", f"{name} exists and is {plan.status}; nothing was bought", values_of(arn, (), plan))


def bought(buyer: Buyer, name: str, outcome: Outcome, offer: RegionOffer | None, file: Path | None) -> InAccount:
    """What was bought, once SageMaker shows more of it than its ARN, which goes into the file at once.

    Raises:
        CommandError: the plan has failed.
    """
    # Another buyer may have been first, and have taken another offer.
    parts = offer.offer.parts if offer and offer.offer.id == outcome.record.offering else ()
    # At once: should the wait below be cut off, the file knows the plan.
    write_back(file, name, values_of(outcome.arn, parts, outcome.plan))
    plan = settled(buyer, outcome.arn, lambda plan: plan.status != "Pending") or outcome.plan
    if plan and plan.status == "Failed":
        raise CommandError(
            f"{outcome.arn} has failed: {plan.message or 'SageMaker gives no reason'}",
            f"take `arn` out of {name} and run this again: it buys the next generation, under a new name",
        )
    text = f"{name} is bought{f' and {plan.status}' if plan else ''}: {outcome.arn}"
    # The record keeps a decimal as text, and JSON knows no decimals.
    price = float(Decimal(outcome.record.price))
    return InAccount("bought", text, values_of(outcome.arn, parts, plan), outcome.paid, price)
