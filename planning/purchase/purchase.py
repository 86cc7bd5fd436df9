"""Buying a training plan, or an extension of one, once.

SageMaker charges the whole price at the call, takes no idempotency token, and nobody says whether it refuses a second
plan of one name. So every buyer goes the same way, whoever starts it and however often: it looks at the record (see
`plan_record`), looks whether the plan is there, and calls once if it is the one whose write made the record `buying`.
What a call without an answer did is found out by reads or by a person, never by a second call.

`reserve`, `acquire`, `extend` and `close` give steps: carry them out with `plan_steps.run` and clients called
`sagemaker`, `seller` (SageMaker again, made with `ONE_ATTEMPT`), `dynamodb`, and for `acquire` also `ec2`.

Standard library only: the modules of `SHIPPED` travel into the Lambda function that buys.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Final

from .offers import Offer, Request, best, misfits, over_limit
from .record import Record, State, read
from .run import NotSold, Outcome, Purchase, Result
from .steps import Call, Now, Steps, Tell
from .words import plan_name, shown

SHIPPED: Final = tuple(
    f"planning/purchase/{name}.py" for name in ("observations", "offers", "purchase", "record", "run", "steps", "words")
)
"""The modules that a function needs to buy, by their paths in the package."""


class NoOffer(Exception):
    """No offer fits. `offers` are those that there are, each with how it differs."""

    def __init__(self, request: Request, offers: list[tuple[Offer, list[str]]]) -> None:
        # With reasons, so that a failed deployment says how near the market came.
        messages = [f"{offer.id} {', '.join(reasons)}" for offer, reasons in offers]
        super().__init__(
            f"no offer for training plan {request.plan} fits; " + ("; ".join(messages) or "there are none at all")
        )
        self.offers = offers


class NothingToClose(Exception):
    """The record is not in the state `unknown`."""


def reserve(
    request: Request,
    offering: str,
    fee: Decimal | None,
    currency: str,
    *,
    buyer: str,
    run: str,
    tags: Mapping[str, str],
) -> Steps[Outcome]:
    """Buy the offer that a person chose.

    Args:
        request: What that offer is; a person may have chosen one that differs from the file.
        offering: Its id.
        fee: Its price.
        currency: Currency of the price.
        buyer: Who buys, for the record.
        run: Unique to this run, such as a random UUID.
        tags: Tags of the plan.

    Raises:
        NotSold: above `request.max_upfront_usd`, without a price in US dollars, or the name is too long. Nothing was
            written or called.
        Exception: what AWS answered before anything could be bought.
    """
    # Before the record is touched: what may not be bought needs none.
    if reasons := over_limit(request.max_upfront_usd, fee, currency):
        raise NotSold(f"the offer for training plan {request.plan} {', '.join(reasons)}; nothing was bought")
    draft = _plan_draft(request, offering, fee, currency, buyer, tags)
    return (yield from Purchase(request.key, run, lambda: _known(draft), request).carry_out())


def acquire(request: Request, *, buyer: str, run: str, tags: Mapping[str, str]) -> Steps[Outcome]:
    """Find the cheapest offer in one part that fits, and buy it, unless the plan was bought before.

    Raises:
        NoOffer: none fits; nothing was bought.
        NotSold: the request has no limit, or the name is too long.
        Exception: what AWS answered before anything could be bought.
    """
    # In a deployment nobody sees the price before it is paid.
    if request.max_upfront_usd is None:
        raise NotSold(f"training plan {request.plan} has no max_upfront_usd; nothing is bought without a limit")

    def draft() -> Steps[Record]:
        # Offers carry names of zones, which differ between accounts; files name zones by id.
        zones = yield Call("ec2", "describe_availability_zones")
        zone_ids = {zone["ZoneName"]: zone["ZoneId"] for zone in zones["AvailabilityZones"]}
        now: datetime = yield Now()
        answer = yield Call("sagemaker", "search_training_plan_offerings", request.search(now))
        offers = [Offer.of(each, zone_ids) for each in answer["TrainingPlanOfferings"]]
        offer = best(request, offers)
        if offer is None:
            raise NoOffer(request, [(each, misfits(request, each) or ["comes in parts"]) for each in offers])
        yield Tell(f"offer {offer.id} of {offer.fee:,.2f} {offer.currency} fits")
        return _plan_draft(request, offer.id, offer.fee, offer.currency, buyer, tags)

    return (yield from Purchase(request.key, run, draft, request).carry_out())


def extend(
    plan_arn: str,
    offering: str,
    start: datetime,
    fee: Decimal | None,
    currency: str,
    max_upfront_usd: int,
    *,
    buyer: str,
    run: str,
) -> Steps[Outcome]:
    """Buy an extension that a person chose. From one moment a plan is extended once, whoever asks, by whatever offer.

    Args:
        plan_arn: ARN of the plan.
        offering: Id of the extension offering.
        start: Its StartDate, from which it extends the plan.
        fee: Its price.
        currency: Currency of the price.
        max_upfront_usd: Limit to the price.
        buyer: Who buys, for the record.
        run: Unique to this run, such as a random UUID.

    Raises:
        NotSold: above the limit, or without a price in US dollars. Nothing was written or called.
        Exception: what AWS answered before anything could be bought.
    """
    if reasons := over_limit(max_upfront_usd, fee, currency):
        raise NotSold(f"extension {offering} {', '.join(reasons)}; nothing was bought")
    # By its start and not by its offer: two offers for the same time would both be paid.
    key = f"{plan_arn}/extension/{shown(start)}"
    terms = json.dumps({"start": start.isoformat()})
    draft = Record(key, "extension", State.INTENDED, plan_arn, offering, str(fee), currency, terms, "{}", buyer, "", "")
    return (yield from Purchase(key, run, lambda: _known(draft)).carry_out())


def close(key: str, *, buyer: str, run: str) -> Steps[Outcome]:
    """Let a purchase that is `unknown` be made again, because a person saw that nothing was bought.

    It looks once more itself, and what it finds counts as bought after all.

    Raises:
        NothingToClose: the record is in another state, or there is none.
    """
    record = yield from read(key)
    if record is None or record.state is not State.UNKNOWN:
        raise NothingToClose(f"{key} is {record.state if record else 'not recorded'}; only what is unknown is closed")

    # With a draft that refuses, so that closing can never buy.
    purchase = Purchase(key, run, lambda: _changed(key))
    outcome = yield from purchase.carry_out()
    if outcome.result is not Result.UNKNOWN:
        return outcome
    return (yield from purchase.settle(outcome.record, State.REFUSED, reason=f"{buyer} saw that nothing was bought"))


def _plan_draft(
    request: Request, offering: str, fee: Decimal | None, currency: str, buyer: str, tags: Mapping[str, str]
) -> Record:
    """The record of an offering that is to be bought, before the first call; what AWS answers is still empty."""
    spares = request.spares_per_ultraserver
    more = {} if spares is None else {"SpareInstanceCountPerUltraServer": spares}
    if tags:
        more |= {"Tags": [{"Key": key, "Value": value} for key, value in sorted(tags.items())]}
    return Record(
        request.key,
        "plan",
        State.INTENDED,
        plan_name(request.environment, request.plan),
        offering,
        str(fee),
        currency,
        json.dumps(request.to_properties(), sort_keys=True),
        json.dumps(more),
        buyer,
        "",
        "",
    )


def _known(draft: Record) -> Steps[Record]:
    yield from ()
    # A generator, as `Purchase` wants one, which has nothing to ask.
    return draft


def _changed(key: str) -> Steps[Record]:
    yield from ()
    raise NothingToClose(f"{key} has changed meanwhile; look again")
