"""Print which versions of an environment are behind, in which order to upgrade them, and upgrade nodes.

Without a verb the command changes nothing: it prints what is behind (Kubernetes, node images, lifecycle scripts), in
the order of the upgrade. `eks`, `nodes`, `scripts` and `podwright` handle one of these each.
"""

import argparse
from importlib import import_module
from typing import Final

from ...config.errors import CommandError
from ..arguments import add_name, add_project
from ..kubernetes.kubectl import Refused

PARTS: Final = {
    "eks": "check an upgrade of the control plane, and write the version into the file",
    "nodes": "install a newer image on nodes, batch by batch",
    "scripts": "list nodes with earlier lifecycle scripts, and replace them",
    "podwright": "compare what another version of podwright would deploy",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright upgrade`."""
    add_name(parser)
    _common(parser, False)
    parser.set_defaults(part="plan")
    parts = parser.add_subparsers(metavar="PART")
    for name, help_text in PARTS.items():
        part = parts.add_parser(name, help=help_text, description=_module(name).__doc__)
        _module(name).add_arguments(part)
        _common(part, argparse.SUPPRESS)
        add_project(part)
        part.set_defaults(part=name)


def run(args: argparse.Namespace) -> int:
    """Do what the part does. Returns 1 where something is behind, stopped, or not as it should be."""
    try:
        return _module(args.part).run(args)
    except Refused as refused:
        hint = f"`podwright connect {args.environment}` opens a tunnel; without one, only the rest is checked"
        raise CommandError(f"Kubernetes does not answer: {refused}", hint) from None


def _common(parser: argparse.ArgumentParser, default: bool | str) -> None:
    """Options that may stand before and after the part; there a default would undo what stands before it."""
    parser.add_argument(
        "--sandbox", action="store_true", help="use the sandbox instead of the account in the file", default=default
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON", default=default)


def _module(part: str):  # noqa: ANN202 - a module
    return import_module({"podwright": ".versions"}.get(part, f".{part}"), __package__)
