"""Say what is behind in an environment, in which order to renew it, and renew nodes.

Without a word after ENV nothing is changed: it prints what is behind (Kubernetes, images of nodes, lifecycle scripts)
in the order in which to go. `eks`, `nodes`, `scripts` and `podwright` are about one of these each.
"""

import argparse
from importlib import import_module
from typing import Final

from ...config.errors import CommandError
from ..arguments import add_name, add_project
from ..command_help import HelpFormatter
from ..kubernetes.kubectl import Refused

PARTS: Final = {
    "eks": "whether the control plane can go to another Kubernetes version; writes it into the file",
    "nodes": "a newer image on nodes, batch by batch, followed until it is there",
    "scripts": "which nodes were set up by earlier lifecycle scripts; replaces them",
    "podwright": "what another version of podwright would deploy differently",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright upgrade`."""
    add_name(parser)
    _common(parser, False)
    parser.set_defaults(part="plan")
    parts = parser.add_subparsers(metavar="PART")
    for name, help_text in PARTS.items():
        part = parts.add_parser(name, help=help_text, description=_module(name).__doc__)
        part.formatter_class = HelpFormatter
        _module(name).add_arguments(part)
        _common(part, argparse.SUPPRESS)
        add_project(part)
        part.set_defaults(part=name)


def run(args: argparse.Namespace) -> int:
    """Do what the part does. Returns 1 where something is behind, stopped, or not as it should be."""
    try:
        return _module(args.part).run(args)
    except Refused as refused:
        hint = f"`podwright connect {args.environment}` holds a way open; without one the rest is looked at alone"
        raise CommandError(f"Kubernetes does not answer: {refused}", hint) from None


def _common(parser: argparse.ArgumentParser, default: bool | str) -> None:
    """Options that may stand before and after the part; there a default would undo what stands before it."""
    parser.add_argument(
        "--sandbox", action="store_true", help="use the sandbox, whatever account the file names", default=default
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON", default=default)


def _module(part: str):  # noqa: ANN202 - a module
    return import_module({"podwright": ".versions"}.get(part, f".{part}"), __package__)
