"""Synthesize all promoted environments to cdk.out, with roles and pipeline if `pipeline:` names a source.

The command needs no account. It stops if a part is missing in the file, in artifacts.lock or in .podwright/artifacts.
With --stand-in it uses stand-ins for charts that were not fetched.
"""

import argparse
from pathlib import Path

from ...config.catalog.sandbox_account import SANDBOX_ACCOUNT
from ...config.errors import CommandError
from ...config.loading.project import Project
from ...planning.delivery.pipeline_steps import ASSEMBLY
from ...planning.delivery.promotable import promotable, promoted_names
from ..cdk.app import now_context, runs_our_app
from ..cdk.app import synthesize as synthesize_app
from ..cdk.cli import run_app
from ..cdk.store import VALIDATION_REPORT
from ..cdk.synthesis import refusals, refused
from ..output.console import write_line
from ..output.moving import under_way


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright pipeline synth`."""
    parser.add_argument("--stand-in", action="store_true", help="use stand-ins for charts that were not fetched")


def run(args: argparse.Namespace) -> int:
    """Synthesize, and say where the templates are."""
    folder = synthesize(args.project, stand_in=args.stand_in)
    write_line(f"synthesized to {folder}")
    return 0


def context(project: Project, *, stand_in: bool = False) -> dict[str, str]:
    """What the app is told: to add what promotes, where the file says who does."""
    promotes = project.settings.pipeline is not None and project.settings.pipeline.source is not None
    if promotes:
        promotable(project)
    accounts = {project.load(name).environment.account for name in promoted_names(project)}
    messages = {"pipeline": "true"} if promotes else {}
    return messages | now_context() | ({"chart": "stand-in"} if stand_in or accounts == {SANDBOX_ACCOUNT} else {})


def synthesize(root: Path, *, stand_in: bool = False) -> Path:
    """Synthesize to the project's `cdk.out`, and return that folder.

    Raises:
        CommandError: the app or the CDK refuses; both have said why.
        InvalidFile: the project cannot be promoted as it is.
    """
    folder, messages = root / ASSEMBLY, context(Project.at(root), stand_in=stand_in)
    if not runs_our_app(root):
        if run_app(root, "synth", "--quiet", output=folder, context=messages):
            raise CommandError("the synthesis failed", "fix the errors above")
        return folder
    under_way("synthesizing and validating")
    # The app leaves the report of an earlier run where its validator is off.
    (folder / VALIDATION_REPORT).unlink(missing_ok=True)
    problem = synthesize_app(root, messages, folder)
    if problem is not None:
        raise CommandError(f"the synthesis failed:\n{problem}", "`cdk synth` shows the whole output")
    if problems := refusals(folder):
        raise refused(problems)
    return folder
