"""Options of the commands that simulate, for what Kueue does not decide."""

import argparse

from ...config.errors import CommandError, InvalidValue
from ...planning.simulation.assumptions import NODE_FAILURES_PER_HOUR, Assumptions, Measured, throughput
from ..arguments import as_time


def add_assumptions(parser: argparse.ArgumentParser) -> None:
    """The options for what Kueue does not decide."""
    known = Assumptions()
    group = parser.add_argument_group("assumptions")
    group.add_argument(
        "--startup",
        metavar="TIME",
        type=as_time,
        default=known.startup_seconds,
        help="time until pods are ready (default: 0)",
    )
    group.add_argument(
        "--grace",
        metavar="TIME",
        type=as_time,
        default=known.grace_seconds,
        help="time until stopped pods have ended (default: 30s)",
    )
    group.add_argument(
        "--lost",
        metavar="TIME",
        type=as_time,
        default=known.repeated_seconds,
        help="work that a job repeats after a stop (default: 30m)",
    )
    group.add_argument(
        "--failures",
        metavar="RATE",
        type=float,
        default=NODE_FAILURES_PER_HOUR,
        help=f"failures of a node per hour (default: {NODE_FAILURES_PER_HOUR:.2g}, as Meta reports of 16,384 GPUs)",
    )
    group.add_argument(
        "--admission-checks",
        dest="checks",
        metavar="TIME",
        type=as_time,
        default=known.check_seconds,
        help="time until admission checks are ready (default: 0)",
    )
    group.add_argument(
        "--throughput",
        metavar="PODS=DONE,…",
        type=as_throughput,
        default=(),
        help="throughput of jobs by number of pods, such as 1=1,2=1.9,4=3.6 (default: in proportion to pods)",
    )


def assumptions_of(args: argparse.Namespace) -> Assumptions:
    """What the options of `add_assumptions` say."""
    if args.failures < 0:
        raise CommandError(f"--failures is {args.failures:g}; it is 0 or more", code=2)
    return Assumptions(args.startup, args.grace, args.lost, args.failures, args.checks, args.throughput)


def as_throughput(text: str) -> tuple[Measured, ...]:
    """An option such as 1=1,2=1.9,4=3.6, as argparse takes it."""
    try:
        return throughput(text)
    except InvalidValue as error:
        raise argparse.ArgumentTypeError(str(error)) from None
