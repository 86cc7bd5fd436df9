"""Deploy the pipeline into its account. Run this once; after that each commit deploys the pipeline.

With GitHub Actions, the command deploys the roles of the jobs and GitHub's identity provider into the accounts of the
named environments. It needs credentials for each account. Run `podwright pipeline bootstrap` first.
"""

import argparse

from ...config.errors import CommandError
from ...config.loading.project import Project
from ...planning.delivery.pipeline_steps import ASSEMBLY
from ...planning.delivery.promotable import promoted_names, source_of
from ..cdk.cli import run_app
from .synth import context


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright pipeline deploy`."""
    parser.add_argument(
        "environments", nargs="*", metavar="ENV", help="with GitHub Actions: environments whose roles to deploy"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")


def run(args: argparse.Namespace) -> int:
    """Deploy; returns the CDK CLI's exit code."""
    project = Project.at(args.project)
    settings, source = source_of(project)
    known = promoted_names(project)
    if wrong := [name for name in args.environments if name not in known]:
        raise CommandError(f"{', '.join(wrong)} is not promoted", f"promoted: {', '.join(known)}", 2)
    if source.on_github and not args.environments:
        raise CommandError("whose roles?", f"name one or several of {', '.join(known)} that your credentials open", 2)
    if not source.on_github and args.environments:
        raise CommandError("the pipeline deploys the roles of environments itself", "`podwright pipeline deploy`", 2)
    stacks = [f"{settings.name}-{name}/*" for name in args.environments] or ["pipeline"]
    approval = "never" if args.yes else "broadening"
    return run_app(
        args.project,
        "deploy",
        *stacks,
        "--require-approval",
        approval,
        output=args.project / ASSEMBLY,
        context=context(project),
    )
