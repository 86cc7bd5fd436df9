"""Collect what `podwright doctor` reads into a .tar.gz without secrets, for a person without access to the account.

The command removes keys, tokens and passwords from API answers and logs, by name and by form. `bundle.json` counts the
removals. Names, addresses and account ids stay: read the bundle before you share it.
"""

import argparse
from pathlib import Path

from ..arguments import add_environment, open_target
from ..output.console import REPORTS, from_here, write_line, write_note
from .collect import collect


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright collect`."""
    add_environment(parser)
    parser.add_argument(
        "--out", metavar="PATH", type=Path, help=f"a new .tar.gz, or a new folder (default: in {REPORTS})"
    )
    parser.add_argument(
        "--no-runner", action="store_true", help="do not use the runner inside the VPC for a private Kubernetes API"
    )


def run(args: argparse.Namespace) -> int:
    """Write the bundle and say what is in it."""
    environment, account = open_target(args)
    write_note(f"looking at {environment.cluster.name} in {account}")
    bundle = collect(environment, account, args.project, runner=not args.no_runner)
    path = args.out or from_here(
        args.project / REPORTS / f"{environment.name}-{bundle.index.taken:%Y%m%d-%H%M%S}.tar.gz"
    )
    bundle.write(path)
    taken = sum(bundle.index.redacted.values())
    write_line(f"{path}: {len(bundle.files)} files, {taken} secrets taken out")
    for source, reason in bundle.index.unseen.items():
        write_line(f"  not seen: {source}: {reason}")
    write_line(f"`podwright doctor {path}` reads it, without any account")
    return 0
