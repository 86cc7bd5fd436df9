"""Print what a shell needs to complete `podwright` on the Tab key: commands, options, environments.

For bash, in ~/.bashrc:    eval "$(podwright completion bash)"
For zsh:                   podwright completion zsh > FOLDER/_podwright, a folder of $fpath
For fish:                  podwright completion fish > ~/.config/fish/completions/podwright.fish
"""

import argparse
from collections.abc import Iterator

import shtab

from ..cli import parser_of
from ..output.console import write_line

_ENVIRONMENTS = shtab.cmd("ls environments 2>/dev/null | sed -n 's/[.]yaml$//p'")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright completion`."""
    parser.add_argument("shell", choices=shtab.SUPPORTED_SHELLS, help="the shell that completes")


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    parser = parser_of()
    for action in _actions(parser):
        # What the shell offers for a value: argparse has no place for it, and shtab looks for it here.
        if action.metavar == "ENV":
            vars(action)["complete"] = _ENVIRONMENTS
        elif action.dest == "project":
            vars(action)["complete"] = shtab.DIRECTORY
        elif action.metavar == "FILE":
            vars(action)["complete"] = shtab.FILE
    write_line(shtab.complete(parser, args.shell))
    return 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """The arguments and options of a parser and of those below it."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from _actions(below)
