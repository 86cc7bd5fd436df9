"""Print the page of a finding: meaning, fix, source, an example that is found and one that passes.

With the name of an alert, print the runbook of the alert. Without ID, list the titles of all findings.
"""

import argparse
import difflib

from ...config.errors import CommandError
from ...config.findings import listed
from ...planning.monitoring.alerts import alerts, pages
from ...planning.rules.pages import UnknownFinding, explain, level, titles
from ..output.console import write_answer, write_markdown
from ..output.tables import new_table, severity


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright explain`."""
    parser.add_argument(
        "id", nargs="?", metavar="ID", help="id of a finding, such as NET003, or name of an alert, such as GpuXid"
    )
    parser.add_argument("--json", action="store_true", help="print the list as JSON")


def run(args: argparse.Namespace) -> int:
    """Print a page, or the list."""
    if args.id is None:
        results = [{"id": id, "level": str(level(id)), "title": title} for id, title in titles().items()]
        rows = ((item["id"], severity(item["level"]), item["title"]) for item in results)
        write_answer(args.json, {"findings": results}, [new_table("", (), rows)])
        return 0
    try:
        page = _alert(args.id) or explain(args.id)
    except UnknownFinding as error:
        raise CommandError(str(error), "`podwright explain` lists them all", 2) from None
    write_markdown(page)
    return 0


def _alert(name: str) -> str:
    """The page of an alert; empty for a name that none has. Ids of findings have digits, which no alert's name has."""
    if not name.isalpha():
        return ""
    known = {item.lower(): item for item in alerts()}
    if name.lower() not in known:
        close = difflib.get_close_matches(name.lower(), known, 3, 0.6)
        near = f"close are {listed((known[item] for item in close), 'and')}" if close else "names look like GpuXid"
        raise CommandError(
            f"there is no alert {name}; {near}", "`podwright alerts ENV` lists those of an environment", 2
        )
    return pages.page(known[name.lower()])
