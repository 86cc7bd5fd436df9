"""Print a script that completes `podwright` on the Tab key: commands, options, environments, jobs.

For bash, in ~/.bashrc:    eval "$(podwright completion bash)"
For zsh:                   podwright completion zsh > FOLDER/_podwright, a folder of $fpath
For fish:                  podwright completion fish > ~/.config/fish/completions/podwright.fish
"""

import argparse
from collections.abc import Iterator

import shtab

from ..cli import parser_of
from ..output.console import write_text

_NAMES = "ls environments 2>/dev/null | sed -n 's/[.]yaml$//p'"
_ENVIRONMENTS = shtab.cmd(_NAMES)
# Fish would take the dollar for a variable where shtab puts it.
_ENVIRONMENTS_IN_FISH = {
    "fish": "(_podwright_environments)",
    "preamble": {"fish": f"function _podwright_environments\n  {_NAMES}\nend"},
}
# The keys below `jobs` of a file and of the one that it extends. A Tab is answered in milliseconds, which no Python is.
_KEYS = (
    "awk '/^[^[:space:]#]/ { inside = /^jobs:/; own = 0 } inside && /^ +[a-z][-a-z0-9]*:/ "
    '{ at = match($0, /[^ ]/); if (!own) own = at; if (at == own) { sub(/^ +/, ""); sub(/:.*/, ""); print } }\''
)
_EXTENDED = "sed -n 's|^extends: *|environments/|p'"
_OF_WORDS = f"""_podwright_jobs() {{
  for word in "$@"; do
    file="environments/$word.yaml"
    [ -f "$file" ] && {_KEYS} "$file" $({_EXTENDED} "$file")
  done
}}"""
_JOBS = {
    "bash": "_podwright_compgen_jobs",
    "zsh": "($(_podwright_jobs $words))",
    "fish": "(_podwright_jobs)",
    "preamble": {
        "bash": f"""{_OF_WORDS}
_podwright_compgen_jobs() {{
  compgen -W "$(_podwright_jobs "${{COMP_WORDS[@]}}")" -- "$1"
}}""",
        "zsh": _OF_WORDS,
        "fish": f"""function _podwright_jobs
  for word in (commandline -opc)
    set -l file environments/$word.yaml
    test -f $file; and {_KEYS} $file ({_EXTENDED} $file)
  end
end""",
    },
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright completion`."""
    parser.add_argument("shell", choices=shtab.SUPPORTED_SHELLS, help="shell that completes")


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    parser = parser_of()
    environments = _ENVIRONMENTS_IN_FISH if args.shell == "fish" else _ENVIRONMENTS
    for action in _actions(parser):
        # What the shell offers for a value: argparse has no place for it, and shtab looks for it here.
        if action.metavar == "ENV":
            vars(action)["complete"] = environments
        elif action.metavar == "JOB" and args.shell in _JOBS:
            vars(action)["complete"] = _JOBS
        elif action.dest == "project":
            vars(action)["complete"] = shtab.DIRECTORY
        elif action.metavar == "FILE":
            vars(action)["complete"] = shtab.FILE
    write_text(shtab.complete(parser, args.shell))
    return 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """The arguments and options of a parser and of those below it."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from _actions(below)
