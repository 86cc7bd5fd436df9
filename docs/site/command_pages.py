"""The reference of the command line, made of its parsers: every command with every argument and option."""

import argparse
from collections.abc import Iterator
from importlib import import_module

from podwright.operations.cli import COMMANDS

PAGE = "reference/commands.md"
_WIDTH = 110


def _parsers() -> Iterator[tuple[str, str, argparse.ArgumentParser]]:
    """Each command, and each sub-command, with its line of help and its parser."""
    for command in COMMANDS:
        module = import_module(command.module, "podwright.operations")
        parser = argparse.ArgumentParser(
            prog=f"podwright {command.name}", description=module.__doc__, formatter_class=_Formatter
        )
        module.add_arguments(parser)
        yield from _with_below(command.name, command.help, parser)


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """As wide on every machine."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_WIDTH)


def _with_below(
    name: str, help: str, parser: argparse.ArgumentParser
) -> Iterator[tuple[str, str, argparse.ArgumentParser]]:
    yield name, help, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for word, below in action.choices.items():
                below.formatter_class = _Formatter
                yield from _with_below(f"{name} {word}", helps.get(word, ""), below)


def _rows(parser: argparse.ArgumentParser) -> list[str]:
    """A row of the table for each argument and option; the sub-commands have sections of their own."""
    formatter = _Formatter(parser.prog)
    rows = []
    for action in parser._actions:
        if isinstance(action, argparse._HelpAction | argparse._SubParsersAction) or action.help == argparse.SUPPRESS:
            continue
        value = formatter._format_args(action, action.dest.upper().replace("_", "-"))
        written = ", ".join(action.option_strings)
        shown = f"{written} {value}".strip()
        meaning = formatter._expand_help(action) if action.help else ""
        if action.choices and not any(str(choice) in shown for choice in action.choices):
            meaning += f" ({', '.join(map(str, action.choices))})"
        rows.append(f"| `{shown}` | {' '.join(meaning.split())} |")
    return rows


def page() -> str:
    """The text of the page."""
    parts = [
        "# Every command and option\n\nMade of the parsers of the command line. "
        "[The command line](../cli.md) says what the commands are for and what they print. "
        "Each command also takes `--project DIR`, the folder of the project (default: the nearest one from here "
        "upward), and `--help`.\n"
    ]
    for name, help, parser in _parsers():
        usage = " ".join(parser.format_usage().removeprefix("usage: ").split())
        description = (parser.description or help).strip()
        if not description.endswith((".", ":")):
            description = f"{description[:1].upper()}{description[1:]}."
        depth = "##" if " " not in name else "###"
        text = f"{depth} podwright {name}\n\n{description}\n\n```\n{usage}\n```\n"
        if rows := _rows(parser):
            text += "\n| Argument | Meaning |\n|---|---|\n" + "\n".join(rows) + "\n"
        parts.append(text)
    return "\n".join(parts)
