"""What command lines have in common: which environment is meant, in which account, and in which project."""

import argparse
import math
from datetime import date
from pathlib import Path
from typing import Final, NamedTuple

from ..config.errors import CommandError, InvalidValue
from ..config.loading.artifacts import LOCK, newer_writer
from ..config.loading.load import LoadedEnvironment
from ..config.loading.project import Project
from ..config.settings.environment import Environment
from ..planning.simulation.traces.times import duration, timestamp
from .aws.account import Account, account_of
from .output.console import write_note
from .output.moving import under_way

_LAST_MOMENT: Final = 253_370_764_800


class Target(NamedTuple):
    """What most commands work on."""

    environment: Environment
    account: Account
    """The account that the environment is deployed to."""


def add_environment(parser: argparse.ArgumentParser) -> None:
    """The arguments that say which environment is meant, and where it is."""
    add_name(parser, required=False)
    add_sandbox(parser)


def add_name(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """The argument that names an environment; `load` chooses one where it may be absent."""
    parser.add_argument(
        "environment",
        nargs=None if required else "?",
        metavar="ENV",
        help="name of an environment, or path of its file",
    )


def add_sandbox(parser: argparse.ArgumentParser) -> None:
    """The option that takes an environment to the sandbox."""
    parser.add_argument("--sandbox", action="store_true", help="use the sandbox instead of the account in the file")


def add_project(parser: argparse.ArgumentParser) -> None:
    """The option of every command, for a verb of one: it may stand after the verb as well as before it."""
    # A default here would undo what stands before the verb.
    parser.add_argument("--project", metavar="DIR", type=Path, default=argparse.SUPPRESS, help="folder of the project")


def add_date(parser: argparse.ArgumentParser, words: str) -> None:
    """The option that says which day it is, for what depends on the day; None without it."""
    parser.add_argument("--date", metavar="DATE", type=_day, help=f"{words}, such as 2027-01-31 (default: today)")


def load(args: argparse.Namespace) -> LoadedEnvironment:
    """The environment that the arguments mean; without one the project's only environment, or its `sandbox`."""
    project = Project.at(args.project)
    if newer := newer_writer(args.project):
        # A lock that an older podwright writes again loses what only the newer one knows.
        line = (
            f"podwright: {LOCK} was written by podwright {newer[0]}, and this is {newer[1]}: upgrade before you deploy"
        )
        write_note(line)
    if args.environment is None:
        known = project.names
        if len(known) != 1 and "sandbox" not in known:
            raise CommandError(
                "which environment?", f"known: {', '.join(known) or 'none; `podwright init DIR` makes one'}", 2
            )
        args.environment = known[0] if len(known) == 1 else "sandbox"
    return project.load(args.environment)


def open_target(args: argparse.Namespace) -> Target:
    """The environment that the arguments mean, and its account, once the user's credentials have opened it."""
    environment = load(args).environment
    return Target(environment, account_for(args, environment))


def account_for(args: argparse.Namespace, environment: Environment) -> Account:
    """The account of an environment, for commands that check more before it is opened."""
    under_way(f"opening the account of {environment.name}")
    account = account_of(environment, args.project, args.sandbox)
    under_way(f"asking {account}")
    return account


def as_moment(text: str) -> float:
    """Seconds since 1970 of an option such as 2027-01-04, as argparse takes it."""
    try:
        seconds = timestamp(text)
    except InvalidValue as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    # Kubernetes writes years with four digits.
    if not 0 <= seconds < _LAST_MOMENT:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time between 1970 and 9999")
    return seconds


def as_time(text: str) -> float:
    """Seconds of an option such as 30d, as argparse takes it. A bare number may mean minutes to whoever types it."""
    if text.strip().replace(".", "", 1).isdigit() and float(text):
        raise argparse.ArgumentTypeError(f"{text!r} has no unit; write {text}s, {text}m, {text}h or {text}d")
    try:
        seconds = duration(text)
    except InvalidValue:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration; write 90s, 45m, 1.5h or 30d") from None
    if not 0 <= seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is below 0")
    return seconds


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a day; write it as 2027-01-31") from None
