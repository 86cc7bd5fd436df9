"""What `reserve` and `extend` share: who buys, the question before, and what of it reaches the file."""

import argparse
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from ...config.catalog.sandbox_account import SANDBOX_ACCOUNT
from ...config.errors import CommandError, InvalidFile, PodwrightError
from ...config.loading.load import resolved
from ...config.loading.project import Project
from ...config.loading.source import read_source
from ...config.settings.environment import Environment
from ...planning.purchase.offers import Part, Plan, over_limit
from ...planning.purchase.purchase import NothingToClose, close
from ...planning.purchase.record import NotRecorded, Record, read
from ...planning.purchase.run import NotSold, Outcome, Purchase, Result
from ...planning.purchase.steps import Engine, Sleep, Steps, Tell
from ..aws.account import Account
from ..aws.calls import get
from ..aws.plans import plan_answer
from ..output.console import write_findings, write_json, write_line, write_note
from .market import zone_ids
from .offers import amount
from .plan_file import NotWritten, Values, holder, lines, plain, write_plan

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
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    sleep: Callable[[float], object] = time.sleep

    @classmethod
    def of(cls, account: Account) -> "Buyer":
        """The buyer that the account's credentials are."""
        return cls(account, get(account, "sts", "get_caller_identity")["Arn"], account.purchase_clients())

    def carry_out(self, steps: Steps[Any], tell: Callable[[str], object]) -> Any:
        """Carry out steps of a purchase, and return their result.

        Raises:
            CommandError: what may not be bought or closed, or a record that cannot be written. This run bought nothing.
        """
        try:
            return Engine(self.clients, clock=self.clock, sleep=self.sleep, tell=tell).run(steps)
        except (NotSold, NotRecorded, NothingToClose) as error:
            raise CommandError(str(error)) from None


def add_purchase_arguments(parser: argparse.ArgumentParser, what: str) -> None:
    """The arguments that say which offer, and that nobody has to be asked."""
    parser.add_argument("environment", metavar="ENV", help="name in environments/, or path of a file")
    parser.add_argument("plan", metavar="PLAN", help="name of the plan under training_plans")
    parser.add_argument("--offering", metavar="ID", help=f"the offer to take (default: {what})")
    parser.add_argument("--yes", action="store_true", help="buy without asking; needs --max-upfront")
    parser.add_argument("--max-upfront", type=int, metavar="USD", help="highest price in US dollars")
    parser.add_argument(
        "--nothing-was-bought",
        action="store_true",
        help="close a purchase whose outcome is unknown, after you saw in console and bill that nothing was bought",
    )


def check_consent(args: argparse.Namespace) -> None:
    """Raise CommandError where nobody could consent, before anything is asked of AWS."""
    if args.nothing_was_bought and args.yes:
        raise CommandError("--nothing-was-bought is what a person has seen; --yes cannot say it", "leave --yes away", 2)
    if args.yes and args.max_upfront is None:
        raise CommandError("--yes buys without asking, and needs a limit", "add --max-upfront USD", 2)
    if args.max_upfront is not None and args.max_upfront < 1:
        raise CommandError(f"--max-upfront is {args.max_upfront}; it takes US dollars from 1", code=2)
    if not args.yes and not sys.stdin.isatty():
        raise CommandError("nobody can be asked here", "--yes --max-upfront USD buys without asking", 2)


def consent(args: argparse.Namespace, what: str, fee: Decimal | None, currency: str, limit: int | None) -> None:
    """Show the price, and continue only when it is within the limit and the plan's name was typed, or --yes given.

    Raises:
        CommandError: too dear, no price in US dollars, or no consent. Nothing was bought.
    """
    if reasons := over_limit(limit, fee, currency):
        hint = "raise the limit, search with other days or another count, or wait: prices change with the start"
        raise CommandError(f"nothing was bought: {what} {', '.join(reasons)}", hint)
    write_note(f"{what} costs {amount(fee, currency)}, charged at once and not given back.")
    if not args.yes:
        typed(args.plan, "to buy it", "nothing was bought")


def typed(name: str, why: str, otherwise: str) -> None:
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


def close_unknown(args: argparse.Namespace, buyer: Buyer, key: str, warning: str, tell: Callable[[str], object]) -> int:
    """Let a purchase whose outcome is unknown be made again, once a person has typed the plan's name."""
    write_note(warning)
    typed(args.plan, "if nothing was bought", "nothing was changed")
    outcome = buyer.carry_out(close(key, buyer=buyer.identity, run=new_run()), tell)
    if outcome.result is not Result.REFUSED:
        raise CommandError(outcome.text)
    if args.json:
        write_json({"result": "closed", "text": outcome.text})
    else:
        write_line(f"{args.plan}: closed; the next purchase may be made")
    return 0


class NothingLeft(PodwrightError):
    """An earlier purchase is over, and did not leave anything."""


def earlier(buyer: Buyer, key: str, request: Any, tell: Callable[[str], object]) -> Outcome | None:
    """What came of a purchase that was begun before; None when there is nothing that keeps one from buying.

    It reads, and waits for another buyer who is at it, but never buys.
    """

    def draft() -> Steps[Record]:
        raise NothingLeft

    if buyer.carry_out(read(key), tell) is None:
        return None
    try:
        return buyer.carry_out(Purchase(key, new_run(), draft, request).carry_out(), tell)
    except NothingLeft:
        return None


def new_run() -> str:
    """A name that only this run has."""
    return str(uuid.uuid4())


def settled(buyer: Buyer, arn: str, tell: Callable[[str], object], done: Callable[[Plan], bool]) -> Plan | None:
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
            if not attempt:
                yield Tell("waiting for the payment")
        return plan

    return buyer.carry_out(observations(), tell)


def values_of(arn: str, parts: Sequence[Part], plan: Plan | None) -> Values:
    """What the file shall say of a plan. `parts` are those of the offer, and stand where the plan has none yet."""
    if plan and plan.parts and all(part.start and part.end for part in plan.parts):
        parts = plan.parts
    ordered = sorted(parts, key=lambda part: (part.start is None, part.start))
    known: list[tuple[Part, datetime, datetime]] = [
        (part, part.start, part.end) for part in ordered if part.start and part.end
    ]
    values: dict[str, Any] = {"arn": arn}
    if known:
        values |= {"zone": known[0][0].zone, "start": known[0][1], "end": max(end for _, _, end in known)}
    if len(known) > 1:
        values["windows"] = [
            {"start": start, "end": end, "count": part.count, "zone": part.zone} for part, start, end in known
        ]
    return values


def environment_file(args: argparse.Namespace, environment: Environment) -> Path | None:
    """The file that the arguments mean; None where a plan of the sandbox must not get into the file of an account."""
    if args.sandbox and environment.account != SANDBOX_ACCOUNT:
        return None
    if args.environment in Project.at(args.project).names:
        return args.project / "environments" / f"{args.environment}.yaml"
    return Path(args.environment)


def write_back(file: Path | None, plan: str, values: Values) -> str:
    """Write the values into the file; empty, or why that did not work and what to put there by hand."""
    if file is None:
        return ""
    try:
        write_plan(file, plan, values)
    except NotWritten as error:
        return f"the file could not be written: {error}\nPut this under training_plans.{plan}:\n{lines(values, 4)}"
    return ""


def report(args: argparse.Namespace, file: Path | None, text: str, values: Values, result: str, **more: Any) -> int:
    """Write the values into the file, and say what there is.

    Raises:
        CommandError: the file could not be written; with everything that would have gone into it.
    """
    if problem := write_back(file, args.plan, values):
        raise CommandError(f"{text}, and {problem}")
    shared = list[str]()
    if file is not None:
        file = holder(resolved(read_source(file), file), file, ("training_plans", args.plan))
        shared = _others_of(args, file)
    if args.json:
        named = {"file": str(file), "shared_with": shared} if file else {}
        write_json({"result": result, "text": text, **more, **named, "plan": plain(values)})
        return 0
    write_line(f"{text}.")
    message = ", ".join(f"{name} {_short(value)}" for name, value in plain(values).items())
    if file is None:
        write_line(f"The file stays as it is, because this was the sandbox. It would say: {message}.")
    else:
        near = file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file
        write_line(f"In {near} are now: {message}.")
    if shared:
        write_line(f"{', '.join(shared)} extend that file too and use the same plan from now on.")
    return 0


def _others_of(args: argparse.Namespace, file: Path) -> list[str]:
    """Other environments of the project that are read from `file`."""
    project, real, result = Project.at(args.project), file.resolve(), list[str]()
    for name in project.names:
        try:
            used = project.source(name).files.values()
        except InvalidFile as error:
            # What was bought is told in any case.
            write_findings(error.findings, sys.stderr)
            continue
        if name != args.environment and real in (other.resolve() for other in used):
            result.append(name)
    return result


def _short(value: Any) -> str:
    return f"({len(value)} of them)" if isinstance(value, list) else value
