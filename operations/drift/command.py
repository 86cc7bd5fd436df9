"""Compare running resources with the templates of the last deployment. The command changes nothing.

It reads the cluster and its instance groups, quotas and priorities, the EKS cluster and its add-ons, file systems, and
security group rules. Changes that a service makes by itself, such as patching, are noise; --all prints them. Exit code
1: drift.
"""

import argparse
from dataclasses import asdict

from ..arguments import add_environment, open_target
from ..effects.permissions import text
from ..output.console import write_answer
from ..output.moving import under_way
from .compare import compare
from .judge import Drift


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright drift`."""
    add_environment(parser)
    parser.add_argument("--json", action="store_true", help="print drift and noise as JSON")
    parser.add_argument("--all", action="store_true", help="also print changes that services make by themselves")


def run(args: argparse.Namespace) -> int:
    """Print what is unlike its template; returns 1 when something is drift."""
    environment, account = open_target(args)
    under_way("reading what runs, and the templates that it was deployed from")
    compared = compare(account, environment, args.project)
    result, drift, read = compared.found, compared.drift, compared.read
    document = {
        "schema": "podwright.drift/1",
        "environment": environment.name,
        "read": read,
        "drift": [asdict(item) for item in drift],
        "noise": [asdict(item) for item in result if item.noise],
        "next_deploy": compared.next_deploy,
    }
    hidden = len(result) - len(drift)
    hint = "" if args.all else " (--all shows them)"
    noise = f", {hidden} changed by their services{hint}" if hidden else ""
    shown = [
        *(_line(item, environment.name) for item in result if not item.noise or args.all),
        *compared.next_deploy,
        f"{environment.name}: {read} resources read, {len(drift) or 'none'} unlike the template{noise}",
    ]
    write_answer(args.json, document, shown)
    return 1 if drift else 0


def _line(drift: Drift, environment: str) -> str:
    location = f"{drift.stack.removeprefix(f'{environment}-')}/{drift.logical_id}"
    template, live = (("nothing" if value is None else text(value)) for value in (drift.template, drift.live))
    sign = "noise" if drift.noise else "drift"
    return f"{sign}  {location} {drift.property}: template {template}, now {live}\n       {drift.what}"
