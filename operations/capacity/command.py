"""Find, buy and look at training plans: accelerator capacity of a zone, paid for in advance.

`search` and `show` change nothing. `reserve` and `extend` buy, once, after you typed the plan's name; the whole price
is charged at the purchase, and nothing gives it back.
"""

import argparse
from pathlib import Path

from . import extend, reserve, search, show

_VERBS = {
    "search": (search, "print offers of one or several regions, side by side"),
    "reserve": (reserve, "buy a plan that the file wants, and write it back into the file"),
    "show": (show, "print the plans of the file and of the account as they are now"),
    "extend": (extend, "buy more time for a plan"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright capacity`."""
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    for name, (module, help_text) in _VERBS.items():
        verb = verbs.add_parser(name, help=help_text, description=module.__doc__)
        verb.formatter_class = argparse.RawDescriptionHelpFormatter
        module.add_arguments(verb)
        verb.add_argument("--sandbox", action="store_true", help="use the sandbox, whatever account the file names")
        verb.add_argument("--json", action="store_true", help="print the result as JSON")
        # The same as the whole command has, so that it may stand behind the verb.
        verb.add_argument(
            "--project", metavar="DIR", type=Path, default=argparse.SUPPRESS, help="folder of the project"
        )
        verb.set_defaults(verb=module.run)


def run(args: argparse.Namespace) -> int:
    """Do what the verb says."""
    return args.verb(args)
