"""The state of a cluster, as it answers or as a file holds it."""

import argparse
from pathlib import Path

from ...config.errors import CommandError, InvalidValue
from ...planning.simulation.snapshot import COMMAND, Snapshot, read_snapshot
from ..arguments import account_for, load
from ..kubernetes.kubectl import REAL_KUBERNETES, Refused, required_way
from ..output.moving import under_way


def add_snapshot(parser: argparse.ArgumentParser) -> None:
    """The option for a file in place of the cluster."""
    parser.add_argument(
        "--snapshot",
        metavar="FILE",
        type=Path,
        help=f"read this file instead of the cluster: the output of `{COMMAND}`",
    )


def snapshot_of(args: argparse.Namespace, seconds: float) -> Snapshot:
    """The state of the cluster, or that in the file; work without history runs for `seconds`. Raises CommandError."""
    if args.snapshot:
        try:
            text, name = args.snapshot.read_text(encoding="utf-8"), str(args.snapshot)
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"{args.snapshot} cannot be read: {error}", f"`{COMMAND}` writes one", 2) from None
    else:
        environment = load(args).environment
        account = account_for(args, environment)
        under_way(f"reading the queues and nodes of {environment.name}")
        kubectl = required_way(args.project, environment, account)
        if not kubectl.is_real:
            raise CommandError("this sandbox's Kubernetes is a store, in which nothing waits", REAL_KUBERNETES)
        try:
            text, name = kubectl.run(*COMMAND.split()[1:]), environment.name
        except Refused as refused:
            raise CommandError(f"the cluster shows no queues: {refused}", "you need to read Kueue's objects") from None
    try:
        return read_snapshot(text, seconds)
    except InvalidValue as error:
        raise CommandError(f"{name} is not a state of a cluster: {error}", f"`{COMMAND}` prints one", 2) from None
