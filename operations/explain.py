"""Print the page of a finding: what it means, where the fact can be read, an example that is found and one that passes.

Without ID, list the title of every finding.
"""

import argparse
import sys

from ..config.rules.pages import UnknownFinding, explain, level, titles
from .output import Stop, write_json, write_line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright explain`."""
    parser.add_argument("id", nargs="?", metavar="ID", help="id of a finding, such as NET003")
    parser.add_argument("--json", action="store_true", help="print the list as JSON")


def run(args: argparse.Namespace) -> int:
    """Print a page, or the list."""
    if args.id is None:
        found = [{"id": id, "level": str(level(id)), "title": title} for id, title in titles().items()]
        if args.json:
            write_json({"findings": found})
        else:
            write_line("\n".join(f"{item['id']}  {item['level']:<8} {item['title']}" for item in found))
        return 0
    try:
        page = explain(args.id)
    except UnknownFinding as error:
        raise Stop(str(error), "`podwright explain` lists them all", 2) from None
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.markdown import Markdown

        Console().print(Markdown(page))
    else:
        write_line(page.rstrip())
    return 0
