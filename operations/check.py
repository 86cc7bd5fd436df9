"""Check environment files: syntax, types and every rule. Accepted findings are printed with their reasons."""

import argparse
import sys
from typing import Any

from ..config.findings import Finding, InvalidFile, counted, errors
from ..config.project import Project
from .output import Stop, write_findings, write_json, write_line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright check`."""
    parser.add_argument(
        "environments",
        nargs="*",
        metavar="ENV",
        help="name in environments/, or path of a file (default: all of the project)",
    )
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")


def run(args: argparse.Namespace) -> int:
    """Returns 2 when a file is no environment, 1 when a rule is broken that nobody accepted, 0 otherwise."""
    project = Project.at(args.project)
    names = args.environments or project.names
    if not names:
        raise Stop(f"{args.project} holds no environments/*.yaml", "`podwright init DIR` starts a project", 2)
    results = [(name, *_check(project, name)) for name in names]
    if args.json:
        write_json({"environments": [_report(name, code, found) for name, code, found in results]})
    else:
        for index, (name, code, found) in enumerate(results):
            if index and found:
                write_line()
            write_findings(found, sys.stdout)
            verdict = ("ok", "failed", "not an environment")[code]
            write_line(f"{name}: {verdict}{f' ({counted(found)})' if found else ''}")
    return max(code for _, code, _ in results)


def _check(project: Project, name: str) -> tuple[int, list[Finding]]:
    from ..config.rules import findings

    try:
        loaded = project.load(name)
    except InvalidFile as error:
        return 2, error.findings
    found = findings(loaded.environment, loaded.source)
    return (1 if errors(found) else 0), found


def _report(name: str, code: int, found: list[Finding]) -> dict[str, Any]:
    return {"environment": name, "ok": code == 0, "exit_code": code, "findings": [item.to_json() for item in found]}
