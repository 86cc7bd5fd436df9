"""Buy a training plan that the file wants, once, and write it back into the file.

The request is PLAN under training_plans. Of the offers that fit, the cheapest in one part is taken, or the one that
--offering names. The price is shown, and the plan's name has to be typed. ARN, zone, start and end go into the file,
which keeps its comments. The same command finishes what an earlier one began, and buys nothing that is bought already.
"""

import argparse
import sys
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from ...config.errors import CommandError
from ...config.findings import errors
from ...config.loading.load import LoadedEnvironment
from ...config.settings.environment import Environment
from ...planning.purchase.offers import Plan, Request
from ...planning.purchase.purchase import reserve as reserved
from ...planning.purchase.run import Outcome, Result
from ...planning.purchase.words import plan_name
from ...planning.rules import findings
from ..aws.account import account_of
from ..aws.plans import plan_answer
from ..cdk.deployment import load
from ..cdk.progress import Progress
from ..output.console import write_findings, write_json, write_note
from .market import Answer, Region, zone_ids
from .offers import RegionOffer, described
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
    write_back,
)
from .search import ask_all, check_request, plan_of, wanted
from .table import legend, offer_blocks, offer_json, write_answers, write_blocks

_NOT_BOUGHT: Final = "CAP017"
"""The rule that a plan has to be bought."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright capacity reserve`."""
    add_purchase_arguments(parser, "the cheapest that fits and is in one part")


def run(args: argparse.Namespace) -> int:
    """Returns 0 once the plan is bought and in the file."""
    loaded = load(args)
    environment = loaded.environment
    plan = plan_of(environment, args.plan)
    if plan.state == "purchase" and not args.nothing_was_bought:
        raise CommandError(
            f"{args.plan} says `purchase: true`: the deployment buys it",
            "deploy, or take `purchase: true` out to buy it here; a plan has one buyer",
            2,
        )
    if plan.arn:
        return _refresh(args, environment, plan.arn)
    check_consent(args)
    request = wanted(environment, args.plan) if args.nothing_was_bought else _request(args, loaded)
    account = account_of(environment, args.project, args.sandbox)
    write_note(f"{described(request)} → {account}")
    buyer, progress = Buyer.of(account), Progress()

    def tell(text: str) -> None:
        progress.say(args.plan, text)

    if args.nothing_was_bought:
        warning = (
            f"If {plan_name(environment.name, args.plan)} is among the training plans in the console or on the bill, "
            "do not continue: it would be bought a second time."
        )
        return close_unknown(args, buyer, request.key, warning, tell)
    outcome, result = earlier(buyer, request.key, request, tell), None
    if outcome is None:
        result = _chosen(args, environment, buyer, request)
        offer = result.offer
        consent(args, f"{args.plan} (offer {offer.id})", offer.fee, offer.currency, request.max_upfront_usd)
        # What is bought is what the person saw, even where the file asks for something else.
        taken = _as_offered(request, result)
        price = (offer.id, offer.fee, offer.currency)
        steps = reserved(taken, *price, buyer=buyer.identity, run=new_run(), tags=environment.tags)
        outcome = buyer.carry_out(steps, tell)
    return _finish(args, buyer, outcome, result, environment_file(args, environment), tell)


def _request(args: argparse.Namespace, loaded: LoadedEnvironment) -> Request:
    """What the plan of the file asks for; of two limits the lower holds.

    Raises:
        CommandError: it says too little, or breaks a rule that buying it would not fix.
    """
    path = f"training_plans.{args.plan}"
    wrong = [
        finding
        for finding in errors(findings(loaded.environment, loaded.source))
        if f"{finding.path}.".startswith(f"{path}.") and finding.id != _NOT_BOUGHT
    ]
    if wrong:
        write_findings(wrong, sys.stderr)
        raise CommandError("nothing was bought", f"fix {path} first")
    request = wanted(loaded.environment, args.plan)
    limits = [each for each in (request.max_upfront_usd, args.max_upfront) if each is not None]
    request = replace(request, max_upfront_usd=min(limits, default=None))
    check_request(request, loaded.environment)
    return request


def _chosen(args: argparse.Namespace, environment: Environment, buyer: Buyer, request: Request) -> RegionOffer:
    """The offer to buy, after it was shown. Raises CommandError when there is none, with those that come near."""
    region = Region(environment.region, buyer.account)
    answer = ask_all([region], request)[0]
    if args.offering:
        result = next((each for each in answer.everything if each.offer.id == args.offering), None)
        if result is None:
            raise CommandError(
                f"nothing was bought: {args.offering} is not among the offers now",
                f"`podwright capacity search {args.environment} {args.plan}` lists them; offers go when others buy",
            )
    else:
        result = next((each for each in answer.fitting if len(each.offer.parts) == 1), None)
    if result is None or (result.differs and args.yes):
        _say(args, environment, answer)
        raise CommandError(*_nothing(args, answer, result))
    if not args.json:
        others = sum(each is not result for each in answer.fitting)
        search = f"`podwright capacity search {args.environment} {args.plan}`"
        notes = [f"Others that fit: {others}; {search} lists them, and --offering takes one."] if others else []
        blocks = offer_blocks(f"To be bought as {args.plan}", environment, [result])
        write_blocks(blocks, notes + legend(environment, [result]))
    if result.differs:
        write_note(f"It is not what the file asks for: it {', and '.join(result.differs)}.")
        for zone in result.zones:
            if zone != request.zones[0]:
                write_note(f"  {_other_zone(args.plan, request.zones[0], zone)}")
    return result


def _nothing(args: argparse.Namespace, answer: Answer, chosen: RegionOffer | None) -> tuple[str, str]:
    """Why there is nothing to buy, and what to do."""
    if answer.problem and not (answer.fitting or answer.nearest):
        return f"nothing was bought: {answer.region}: {answer.problem}", ""
    if chosen:
        return (
            f"nothing was bought: {chosen.offer.id} {', and '.join(chosen.differs)}",
            "--yes takes only what the file asks for; leave it away, or fix the file",
        )
    if answer.fitting:
        ids = ", ".join(each.offer.id for each in answer.fitting)
        return (
            f"nothing was bought: what fits comes in several parts ({ids})",
            "--offering ID takes one of them; between its parts there is no capacity",
        )
    hint = "change the plan in the file to one of them" if answer.nearest else "try other days, counts or regions"
    return (
        "nothing was bought: no offer fits",
        f"{hint}; `podwright capacity search {args.environment} --help` says what can be searched for",
    )


def _other_zone(plan: str, desired: str, zone: str) -> str:
    return (
        f"{zone} is not {desired}: either move there (`zone: {zone}` of {plan}, a subnet in it under "
        f"network.zones, and "
        f"the file systems beside its groups), or wait for an offer in {desired}"
    )


def _say(args: argparse.Namespace, environment: Environment, answer: Answer) -> None:
    if args.json:
        write_json({"result": "none", "nearest": [offer_json(environment, each) for each in answer.nearest]})
    else:
        write_answers(environment, [answer])


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


def _refresh(args: argparse.Namespace, environment: Environment, arn: str) -> int:
    """A plan that exists is looked up, and the file brought up to date with it. Nothing is bought."""
    account = account_of(environment, args.project, args.sandbox)
    shape = plan_answer(account, arn)
    if shape is None:
        raise CommandError(
            f"SageMaker has no {arn} in {account}", "correct `arn`, or take it out to reserve the plan anew"
        )
    plan = Plan.of(shape, zone_ids(account))
    if plan.status == "Failed":
        raise CommandError(f"{arn} has failed: {plan.message}", f"take `arn` out of {args.plan} and run this again")
    text = f"{args.plan} exists and is {plan.status}; nothing was bought"
    file = environment_file(args, environment)
    return report(args, file, text, values_of(arn, (), plan), "exists", paid=False)


def _finish(
    args: argparse.Namespace, buyer: Buyer, outcome: Outcome, offer: RegionOffer | None, file: Path | None, tell: Any
) -> int:
    """Bring what was bought into the file, or say what came of it instead."""
    if outcome.result is not Result.BOUGHT:
        hint = {
            Result.REFUSED: "run this again for the offers of now",
            Result.FOUND: f"`arn: {outcome.arn}` under training_plans.{args.plan} uses it",
            Result.UNKNOWN: f"`podwright capacity reserve {args.environment} {args.plan}` looks again; with "
            "--nothing-was-bought it closes the purchase",
        }[outcome.result]
        if args.json:
            write_json({"result": str(outcome.result), "text": outcome.text, "arn": outcome.arn or None})
        raise CommandError(outcome.text, hint)
    write_note(outcome.text)
    if outcome.differs:
        write_note(f"It is not what was asked for now: it {', and '.join(outcome.differs)}.")
    # Another buyer may have been first, and have taken another offer.
    parts = offer.offer.parts if offer and offer.offer.id == outcome.record.offering else ()
    # What is known at once goes into the file at once; what SageMaker makes of it follows.
    write_back(file, args.plan, values_of(outcome.arn, parts, outcome.plan))
    plan = settled(buyer, outcome.arn, tell, lambda plan: plan.status != "Pending") or outcome.plan
    if plan and plan.status == "Failed":
        raise CommandError(
            f"{outcome.arn} has failed: {plan.message or 'SageMaker gives no reason'}",
            f"take `arn` out of {args.plan} and run this again: it buys the next generation, under a new name",
        )
    text = f"{args.plan} is bought{f' and {plan.status}' if plan else ''}: {outcome.arn}"
    price = float(Decimal(outcome.record.price))
    return report(args, file, text, values_of(outcome.arn, parts, plan), "bought", paid=outcome.paid, upfront=price)
