"""Check environment files: syntax, types and every rule. Accepted findings are printed with their reasons.

For each environment without errors, the command prints the cost. Without names it also compares the environments of the
project: names, address ranges, training plans and MultiKueue links. --full also synthesizes each environment without
errors, and has the CDK's CloudFormation validator check the templates, as `podwright deploy` does.
"""

import argparse
import sys
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from ...config.errors import CommandError, InvalidFile
from ...config.findings import Finding, counted, errors
from ...config.loading.load import LoadedEnvironment
from ...config.loading.project import Project
from ...planning.delivery.missing_artifacts import missing_artifacts
from ...planning.helm.chart_types import chart_type_findings
from ...planning.rules import findings
from ...planning.rules.project.project import project_findings
from ..arguments import add_date
from ..aws.account import is_sandboxed
from ..cdk.app import environment_context, runs_our_app
from ..cdk.inputs import SynthesisInputs
from ..cdk.progress import Progress
from ..cdk.synthesis import assembly_of
from ..environments.costs import brief, today
from ..output.console import write_findings, write_json, write_line


class Checked(NamedTuple):
    """What came of one environment."""

    name: str
    exit_code: int
    findings: list[Finding]
    cost: dict[str, Any] | None = None
    """What it costs, where nothing is wrong."""
    refused: str | None = None
    """Why its templates cannot be deployed; empty if they can, None if nothing was synthesized."""

    def to_json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        shown = [item.to_json() for item in self.findings]
        code = self.exit_code
        result = {"environment": self.name, "ok": code == 0, "exit_code": code, "findings": shown, "cost": self.cost}
        return result if self.refused is None else result | {"refused": self.refused}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright check`."""
    parser.add_argument(
        "environments",
        nargs="*",
        metavar="ENV",
        help="names of environments, or paths of their files (default: all of the project)",
    )
    add_date(parser, "day on which the ends of support are checked")
    parser.add_argument(
        "--full", action="store_true", help="also synthesize, and check the templates with the CDK's validator"
    )
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")


def run(args: argparse.Namespace) -> int:
    """Returns 2 when a file is no environment, 1 when a rule is broken that nobody accepted, 0 otherwise."""
    project = Project.at(args.project)
    names = args.environments or project.names
    if not names:
        raise CommandError(f"{args.project} holds no environments/*.yaml", "`podwright init DIR` starts a project", 2)
    loaded, results = dict[str, LoadedEnvironment](), list[Checked]()
    for name in names:
        try:
            loaded[name] = project.load(name)
        except InvalidFile as error:
            results.append(Checked(name, 2, error.findings))
    compared = project_findings(loaded) if not args.environments and len(loaded) == len(names) > 1 else {}
    results += [
        _check(args.project, name, item, compared.get(name, []), args.date or today()) for name, item in loaded.items()
    ]
    if args.full:
        if not runs_our_app(args.project):
            hint = "run `podwright deploy` for it, which validates the app of cdk.json before anything changes"
            raise CommandError(
                "--full: cdk.json has another app or a build command, whose templates are unknown", hint, 2
            )
        results = [_validated(args.project, loaded, result) for result in results]
    results.sort(key=lambda result: names.index(result.name))
    if args.json:
        write_json({"environments": [result.to_json() for result in results]})
    else:
        for index, (name, code, matches, cost, refused) in enumerate(results):
            if index and matches:
                write_line()
            write_findings(matches, sys.stdout)
            verdict = ("ok", "failed", "not an environment")[code]
            write_line(f"{name}: {verdict}{f' ({counted(matches)})' if matches else ''}")
            if refused is not None:
                write_line(refused or "    the templates pass the CDK's validator")
            if cost:
                write_line(f"    {cost['summary']}")
    if len(loaded) < len(names) and not args.environments and not args.json:
        write_line("the environments were not compared with each other, because some cannot be read")
    return max(result.exit_code for result in results)


def _check(root: Path, name: str, loaded: LoadedEnvironment, compared: list[Finding], day: date) -> Checked:
    fetched = chart_type_findings(root, loaded.environment, loaded.source)
    results = [*findings(loaded.environment, loaded.source, day), *fetched, *compared]
    return Checked(name, 1, results) if errors(results) else Checked(name, 0, results, brief(loaded.environment, day))


def _validated(root: Path, loaded: Mapping[str, LoadedEnvironment], result: Checked) -> Checked:
    """The result with what the CDK's validator says of the templates; unchanged for an environment with errors."""
    if result.exit_code:
        return result
    item = loaded[result.name]
    context = environment_context(root, result.name, item.environment)
    # The validator does not read charts, so stand-ins may replace those that are not fetched.
    if is_sandboxed(item.environment, sandbox=False) or missing_artifacts(root, item.environment):
        context |= {"chart": "stand-in"}
    try:
        with assembly_of(SynthesisInputs.of(root, item, context), Progress(), validated=True):
            return result._replace(refused="")
    except CommandError as error:
        return result._replace(exit_code=1, cost=None, refused=f"    {error}")
