"""Find, buy and inspect training plans: accelerator capacity in one zone, paid in advance.

`search` and `show` change nothing. `reserve` and `extend` buy once, after you type the name of the plan. AWS charges
the whole price at the purchase, and does not refund it.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from ...config.catalog.regions import UnknownRegion, region
from ...config.catalog.sandbox_account import SANDBOX_ACCOUNT
from ...config.errors import CommandError
from ...config.loading.load import LoadedEnvironment
from ...config.loading.project import Project
from ...config.settings.environment import Environment
from ...config.settings.plans import Instant
from ...planning.purchase.offers import Request, over_limit
from ...planning.purchase.run import Outcome, Result
from ...planning.purchase.words import plan_name
from ..arguments import account_for, add_name, add_project, add_sandbox, as_time, load
from ..cdk.progress import Progress
from ..output.console import from_here, write_answer, write_findings, write_json, write_line, write_note, write_text
from ..output.moving import under_way
from . import extend, reserve
from .market import Answer, Region, ask
from .offers import RegionOffer, amount, counted, described, minute
from .plan_file import lines, plain
from .plans import account_plans
from .purchase import Buyer, InAccount, Saved, close_unknown, earlier, save
from .search import as_plan, best, plan_of, request_of, wanted
from .show import write_plans
from .table import (
    answer_json,
    extension_json,
    extension_table,
    legend,
    offer_blocks,
    offer_json,
    write_answers,
    write_blocks,
)

_SEARCH: Final = """\
Print the training plans that SageMaker offers, in one or several regions.

The request is PLAN of the environment's file, or the options; options win. SageMaker does not filter by zone and price:
if no offer fits, the command prints offers in other zones or above the price limit as near. The exit code is 1 when no
offer fits.
"""
_RESERVE: Final = """\
Buy a training plan of the file once, and write its ARN into the file.

The request is PLAN under training_plans. The command selects the cheapest fitting offer in one part, or the one of
--offering. It shows the price, and asks you to type the name of the plan. It writes ARN, zone, start and end into the
file, and keeps all comments. After an interruption, run the same command to finish the purchase; it never buys twice.
"""
_SHOW: Final = """\
Print the training plans of the file and of the account: status, capacity, UltraServers, extensions.

Without PLAN the command prints every plan of the file, and every other plan of the account in the region.
"""
_EXTEND: Final = """\
Buy more time for a training plan, once.

SageMaker offers extensions that begin when the plan ends. Without --duration or --offering the command lists them. It
shows the price, asks you to type the name of the plan, and writes the new end into the file. If the plan ends later
than the file says, an extension was bought already: the command corrects the file and buys nothing.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright capacity`."""
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    for name, verb, add, description, help_text in (
        ("search", _search, _search_arguments, _SEARCH, "print the offers of one or several regions"),
        ("reserve", _reserve, _reserve_arguments, _RESERVE, "buy a plan of the file, and write its ARN into the file"),
        ("show", _show, _show_arguments, _SHOW, "print the plans of the file and of the account"),
        ("extend", _extend, _extend_arguments, _EXTEND, "buy more time for a plan"),
    ):
        subparser = verbs.add_parser(name, help=help_text, description=description)
        add(subparser)
        add_sandbox(subparser)
        subparser.add_argument("--json", action="store_true", help="print the result as JSON")
        # The same as the whole command has, so that it may stand behind the verb.
        add_project(subparser)
        subparser.set_defaults(verb=verb)


def run(args: argparse.Namespace) -> int:
    """Do what the verb says."""
    return args.verb(args)


def _search_arguments(parser: argparse.ArgumentParser) -> None:
    """What is searched for: a plan of a file, or a request on the command line."""
    add_name(parser, required=False)
    parser.add_argument("plan", nargs="?", metavar="PLAN", help="name of a plan under training_plans")
    parser.add_argument("--type", metavar="TYPE", help="instance type, such as ml.p5en.48xlarge")
    parser.add_argument("--count", type=int, metavar="N", help="number of instances")
    parser.add_argument("--ultraserver-type", metavar="TYPE", help="UltraServer type, such as ml.u-p6e-gb200x72")
    parser.add_argument("--ultraserver-count", type=int, metavar="N", help="number of UltraServers")
    parser.add_argument(
        "--duration", dest="days", type=_days, metavar="TIME", help="length of the plan in days, such as 28d"
    )
    parser.add_argument("--start-after", type=_moment, metavar="DATE", help="earliest start, such as 2027-01-04")
    parser.add_argument("--end-before", type=_moment, metavar="DATE", help="latest end")
    parser.add_argument("--zone", metavar="ID", help="zone id, such as usw2-az2")
    parser.add_argument("--max-upfront", type=int, metavar="USD", help="highest price in US dollars")
    parser.add_argument(
        "--region",
        action="append",
        metavar="REGION",
        help="AWS region to search; may be repeated (default: the environment's)",
    )


def _days(text: str) -> int:
    """Whole days of the command line. Raises argparse's error."""
    days, rest = divmod(as_time(text), 86400)
    if rest or not days:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of whole days; write it such as 28d")
    return int(days)


def _moment(text: str) -> datetime:
    """A time of the command line. Raises argparse's error."""
    try:
        return TypeAdapter(Instant).validate_python(text)
    except ValidationError as error:
        allowed = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise argparse.ArgumentTypeError(f"{text!r}; allowed: {allowed}") from None


def _show_arguments(parser: argparse.ArgumentParser) -> None:
    add_name(parser, required=False)
    parser.add_argument(
        "plan",
        nargs="?",
        metavar="PLAN",
        help="name of a plan under training_plans (default: all, and those of the account)",
    )


def _reserve_arguments(
    parser: argparse.ArgumentParser, default: str = "the cheapest that fits and is in one part"
) -> None:
    """The arguments that say which offer, and that nobody has to be asked."""
    add_name(parser)
    parser.add_argument("plan", metavar="PLAN", help="name of the plan under training_plans")
    parser.add_argument("--offering", metavar="ID", help=f"id of the offer to buy (default: {default})")
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation; needs --max-upfront")
    parser.add_argument("--max-upfront", type=int, metavar="USD", help="highest price in US dollars")
    parser.add_argument(
        "--nothing-was-bought",
        action="store_true",
        help="close a purchase with an unknown outcome, after console and bill showed that nothing was bought",
    )


def _extend_arguments(parser: argparse.ArgumentParser) -> None:
    _reserve_arguments(parser, "the one of --duration")
    parser.add_argument(
        "--duration", dest="days", type=_days, metavar="TIME", help="length of the extension in days, such as 14d"
    )


def _search(args: argparse.Namespace) -> int:
    """Print the offers. Returns 1 where none fits."""
    environment = load(args).environment
    options = {
        "instance_type": args.type,
        "count": args.count,
        "ultraserver_type": args.ultraserver_type,
        "ultraserver_count": args.ultraserver_count,
        "hours": args.days and args.days * 24,
        "start_after": args.start_after,
        "end_before": args.end_before,
        "max_upfront_usd": args.max_upfront,
        "zones": (args.zone,) if args.zone else None,
    }
    request = request_of(environment, args.plan, options)
    names = list(dict.fromkeys(args.region or [environment.region]))
    for name in names:
        try:
            region(name)
        except UnknownRegion as error:
            raise CommandError(str(error), "--region takes names such as us-west-2", 2) from None
    account = account_for(args, environment)
    write_note(f"{described(request)} → {account}")
    answers = _answers([Region(name, replace(account, region=name)) for name in names], request)
    if args.json:
        answered = [answer_json(environment, answer) for answer in answers]
        write_json({"asked": described(request), "regions": answered})
    else:
        write_answers(environment, answers)
        offer = best(environment, answers)
        if offer and args.plan is None:
            write_line(
                f"\nTo reserve {offer.offer.id}, put this under training_plans, with a name of yours for NAME:\n"
            )
            write_text("  NAME:\n" + lines(as_plan(request, offer), 4))
            write_line(f"\nand run `podwright capacity reserve {environment.name} NAME`.")
    return 0 if any(answer.fitting for answer in answers) else 1


def _answers(regions: list[Region], request: Request) -> list[Answer]:
    """Ask these regions, and say on standard error as each has answered."""
    progress = Progress()

    def answered(answer: Answer) -> None:
        problem = answer.problem or f"nothing fits, {len(answer.nearest)} near"
        progress.say(answer.region, counted(len(answer.fitting), "offer") if answer.fitting else problem)

    under_way(f"asking {counted(len(regions), 'region')} for offers")
    return ask(regions, request, now(), answered)


def _show(args: argparse.Namespace) -> int:
    """Print the plans."""
    environment = load(args).environment
    if args.plan is not None:
        plan_of(environment, args.plan)
    account = account_for(args, environment)
    under_way("reading training plans")
    result = account_plans(environment, account, args.plan)
    if args.json:
        write_json(result)
    else:
        write_plans(result, now())
    return 0


def _reserve(args: argparse.Namespace) -> int:
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
    # It is bought already; the file may still lack what only the account knows.
    if plan.arn:
        account = account_for(args, environment)
        return _report(args, _file(args, environment), reserve.existing(account, args.plan, plan.arn))
    _check_consent(args)
    request = wanted(environment, args.plan) if args.nothing_was_bought else _request(args, loaded)
    account = account_for(args, environment)
    write_note(f"{described(request)} → {account}")
    buyer = Buyer.of(account, partial(Progress().say, args.plan))
    if args.nothing_was_bought:
        warning = (
            f"If {plan_name(environment.name, args.plan)} is among the training plans in the console or on the bill, "
            "do not continue: it would be bought a second time."
        )
        return _close(args, buyer, request.key, warning)
    # What an earlier run began comes first: another offer would be a second purchase.
    outcome, offer = earlier(buyer, request.key, request), None
    if outcome is None:
        offer = _offer(args, environment, buyer, request)
        what = f"{args.plan} (offer {offer.offer.id})"
        _consent(args, what, offer.offer.fee, offer.offer.currency, request.max_upfront_usd)
        outcome = reserve.buy(buyer, request, offer, environment.tags)
    file = _file(args, environment)
    again = f"`podwright capacity reserve {args.environment} {args.plan}`"
    hints = {
        Result.REFUSED: "run this again for the offers of now",
        Result.FOUND: f"`arn: {outcome.arn}` under training_plans.{args.plan} uses it",
        Result.UNKNOWN: f"{again} looks again; with --nothing-was-bought it closes the purchase",
    }
    _check_bought(args, outcome, hints, arn=outcome.arn or None)
    if outcome.differs:
        write_note(f"It differs from the request: it {', and '.join(outcome.differs)}.")
    return _report(args, file, reserve.bought(buyer, args.plan, outcome, offer, file))


def _request(args: argparse.Namespace, loaded: LoadedEnvironment) -> Request:
    """What the plan of the file asks for. Raises CommandError where it breaks a rule that buying it would not fix."""
    if wrong := reserve.obstacles(loaded, args.plan):
        write_findings(wrong, sys.stderr)
        raise CommandError("nothing was bought", f"fix training_plans.{args.plan} first")
    return reserve.request_of(loaded.environment, args.plan, args.max_upfront)


def _offer(args: argparse.Namespace, environment: Environment, buyer: Buyer, request: Request) -> RegionOffer:
    """The offer to buy, after it was shown. Raises CommandError when there is none, with those that come near."""
    answer = _answers([Region(environment.region, buyer.account)], request)[0]
    search = f"podwright capacity search {args.environment} {args.plan}"
    offer = reserve.chosen(answer, args.offering, search)
    if offer is None or (offer.differs and args.yes):
        if args.json:
            write_json({"result": "none", "nearest": [offer_json(environment, each) for each in answer.nearest]})
        else:
            write_answers(environment, [answer])
        raise reserve.nothing_to_buy(answer, offer, search)
    if not args.json:
        others = sum(each is not offer for each in answer.fitting)
        notes = [f"Others that fit: {others}; `{search}` lists them, and --offering takes one."] if others else []
        blocks = offer_blocks(f"To be bought as {args.plan}", environment, [offer])
        write_blocks(blocks, notes + legend(environment, [offer]))
    if offer.differs:
        write_note(f"It differs from the file: it {', and '.join(offer.differs)}.")
        desired = request.zones[0]
        for zone in offer.zones:
            if zone != desired:
                write_note(
                    f"  {zone} is not {desired}: either move there (`zone: {zone}` of {args.plan}, a subnet in it "
                    "under network.zones, and the file systems of its groups), or wait for an offer in "
                    f"{desired}"
                )
    return offer


def _extend(args: argparse.Namespace) -> int:
    """Returns 0 once the extension is bought, or the offers are listed."""
    environment = load(args).environment
    settings = plan_of(environment, args.plan)
    choosing = args.days is None and args.offering is None and not args.nothing_was_bought
    if not choosing:
        _check_consent(args)
    buyer = Buyer.of(account_for(args, environment), partial(Progress().say, args.plan))
    existing = extend.extendable(buyer, environment, args.plan, f"podwright capacity show {args.environment}")
    arn, file = existing.plan.arn, _file(args, environment)
    if file and not choosing and not args.nothing_was_bought:
        # Somebody may have bought it in the console.
        already = extend.extended_already(buyer, existing, args.plan, settings)
        if already:
            return _report(args, file, already)
    offers = extend.extension_offers(buyer, arn, args.days)
    keys = extend.record_keys(existing, offers)
    if args.nothing_was_bought:
        warning = "If the extension is in the plan's history in the console or on the bill, do not continue."
        return _close(args, buyer, extend.unknown_key(buyer, keys), warning)
    outcome = next((outcome for key in keys if (outcome := earlier(buyer, key))), None)
    if outcome is None:
        if choosing:
            _list(args, offers, existing.count)
            return 0
        offer = extend.chosen(offers, args.offering, args.days)
        if offer is None:
            others = offers or extend.extension_offers(buyer, arn, None)
            _list(args, others, existing.count)
            hint = "choose one of the listed offers" if others else "wait, or reserve another plan for the time after"
            raise CommandError(f"nothing was bought: no extension of {args.days} days is offered", hint)
        what = f"{args.plan} until {minute(offer.end)}Z (offer {offer.id})"
        _consent(args, what, offer.fee, offer.currency, args.max_upfront)
        outcome = extend.buy(buyer, arn, offer, args.max_upfront)
    hints = dict.fromkeys(Result, "run this again for the offers of now")
    hints[Result.UNKNOWN] = "the same command looks again; with --nothing-was-bought it closes the purchase"
    _check_bought(args, outcome, hints)
    reserve_it = f"podwright capacity reserve {args.environment} {args.plan}"
    return _report(args, file, extend.bought(buyer, existing, args.plan, reserve_it, paid=outcome.paid))


def _list(args: argparse.Namespace, offers: Sequence[extend.Extension], count: int) -> None:
    """Print which extensions can be bought."""
    if args.json:
        write_json({"result": "none", "offers": [extension_json(offer, count) for offer in offers]})
    elif offers:
        table = extension_table(f"Extensions of {args.plan}, {count} instances", offers, count)
        write_blocks([table], [f"`podwright capacity extend {args.environment} {args.plan} --duration Nd` buys one."])
    else:
        write_blocks([], [f"SageMaker offers no extension of {args.plan} now."])


def _check_consent(args: argparse.Namespace) -> None:
    """Raise CommandError where nobody could consent, before anything is asked of AWS."""
    if args.nothing_was_bought and args.yes:
        raise CommandError("--nothing-was-bought is what a person has seen; --yes cannot say it", "leave --yes away", 2)
    if args.yes and args.max_upfront is None:
        raise CommandError("--yes buys without asking, and needs a limit", "add --max-upfront USD", 2)
    if args.max_upfront is not None and args.max_upfront < 1:
        raise CommandError(f"--max-upfront is {args.max_upfront}; it takes US dollars from 1", code=2)
    if not args.yes and not sys.stdin.isatty():
        raise CommandError("a confirmation needs a terminal", "--yes --max-upfront USD buys without asking", 2)


def _consent(args: argparse.Namespace, what: str, fee: Decimal | None, currency: str, limit: int | None) -> None:
    """Show the price, and continue only when it is within the limit and the plan's name was typed, or --yes given.

    Raises:
        CommandError: too dear, no price in US dollars, or no consent. Nothing was bought.
    """
    if reasons := over_limit(limit, fee, currency):
        hint = "raise the limit, search with other days or another count, or wait: prices change with the start"
        raise CommandError(f"nothing was bought: {what} {', '.join(reasons)}", hint)
    write_note(f"{what} costs {amount(fee, currency)}, charged at once and not given back.")
    if not args.yes:
        _typed(args.plan, "to buy it", "nothing was bought")


def _typed(name: str, why: str, otherwise: str) -> None:
    """Continue only once a person has typed a name. Raises CommandError otherwise."""
    # The question goes where progress goes: standard output may be JSON.
    sys.stderr.write(f"Type {name} {why}: ")
    sys.stderr.flush()
    try:
        answer = input()
    except EOFError:
        answer = ""
    if answer.strip() != name:
        raise CommandError(otherwise)


def _close(args: argparse.Namespace, buyer: Buyer, key: str, warning: str) -> int:
    """Let a purchase whose outcome is unknown be made again, once a person has typed the plan's name."""
    write_note(warning)
    _typed(args.plan, "if nothing was bought", "nothing was changed")
    text = close_unknown(buyer, key)
    closed = f"{args.plan}: closed; the next purchase may be made"
    write_answer(args.json, {"result": "closed", "text": text}, [closed])
    return 0


def _check_bought(args: argparse.Namespace, outcome: Outcome, hints: Mapping[Result, str], **more: Any) -> None:
    """Say what came of a purchase. Raises CommandError where nothing is bought, or nobody knows."""
    if outcome.result is not Result.BOUGHT:
        if args.json:
            write_json({"result": str(outcome.result), "text": outcome.text, **more})
        raise CommandError(outcome.text, hints[outcome.result])
    write_note(outcome.text)


def _file(args: argparse.Namespace, environment: Environment) -> Path | None:
    """The environment's file; None where a plan of the sandbox must not get into the file of an account."""
    if args.sandbox and environment.account != SANDBOX_ACCOUNT:
        return None
    return Project.at(args.project).file(args.environment)


def _report(args: argparse.Namespace, file: Path | None, state: InAccount) -> int:
    """Write the plan into the file, and say what there is. Raises CommandError where the file cannot be written."""
    saved = save(Project.at(args.project), args.environment, file, args.plan, state)
    write_findings(saved.problems, sys.stderr)
    values = plain(state.values)
    document: dict[str, Any] = {"result": state.result, "text": state.text, "paid": state.paid}
    document |= {} if state.upfront is None else {"upfront": state.upfront}
    document |= {"file": str(saved.file), "shared_with": list(saved.shared)} if saved.file else {}
    write_answer(args.json, document | {"plan": values}, _report_lines(saved, state.text, values))
    return 0


def _report_lines(saved: Saved, text: str, values: Mapping[str, Any]) -> Iterator[str]:
    """What is in the account, and what the file says of it now."""
    yield f"{text}."
    shown = {name: f"({len(value)} of them)" if isinstance(value, list) else value for name, value in values.items()}
    message = ", ".join(f"{name} {value}" for name, value in shown.items())
    if saved.file is None:
        yield f"The file stays as it is, because this was the sandbox. It would say: {message}."
        return
    yield f"In {from_here(saved.file)} are now: {message}."
    if saved.shared:
        yield f"{', '.join(saved.shared)} extend that file too and use the same plan from now on."


def now() -> datetime:
    """The time, in UTC."""
    return datetime.now(UTC)
