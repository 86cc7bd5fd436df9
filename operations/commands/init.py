"""Create a project: an environment file, and the `cdk.json` that lets `cdk` find podwright.

Without --account the environment uses the embedded sandbox, so `podwright deploy` works at once and costs nothing. The
command never changes existing files. To add an environment, run it again with another --name.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

from ...config.catalog.sandbox_account import SANDBOX_ACCOUNT
from ..environments.new_project import SKILLS, write_project, write_skill, write_workflows
from ..environments.questions import ask_beginning
from ..output.console import write_line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright init`."""
    parser.add_argument("folder", metavar="DIR", type=Path, help="folder of the project; created if it does not exist")
    begin = parser.add_mutually_exclusive_group()
    begin.add_argument("--scenario", metavar="SCENARIO", help="start from a scenario of podwright, such as two-teams")
    parser.add_argument(
        "--name",
        metavar="NAME",
        help="name of the environment (default: the scenario's, sandbox, or prod with --account)",
    )
    parser.add_argument("--account", metavar="ID", help="AWS account id (default: the embedded sandbox's)")
    parser.add_argument("--region", metavar="REGION", help="AWS region (default: the scenario's, or us-west-2)")
    parser.add_argument("--zones", metavar="ZONE,ZONE", help="zone ids, separated by commas, such as usw2-az2,usw2-az3")
    parser.add_argument(
        "--admins", metavar="ARN,ARN", help="IAM roles of Kubernetes administrators, separated by commas"
    )
    begin.add_argument(
        "--interactive",
        action="store_true",
        help="ask for account, type, count, zones, admins and VPC; offers what your credentials can list",
    )
    parser.add_argument(
        "--skill",
        metavar="DIR",
        nargs="?",
        const=SKILLS,
        help=f"write a SKILL.md for coding agents into this folder of the project (default: {SKILLS})",
    )
    parser.add_argument(
        "--ci", choices=["github"], help="write GitHub Actions workflows that promote the environments of the project"
    )
    parser.add_argument(
        "--repository",
        metavar="OWNER/NAME",
        help="with --ci: the GitHub repository, written into podwright.yaml if that file does not exist",
    )
    parser.add_argument(
        "--order", metavar="ENV,ENV", help="with --repository: the environments, in the order of promotion"
    )


def run(args: argparse.Namespace) -> int:
    """Write the files that are not there yet. Nothing is written unless the environment passes its checks."""
    folder: Path = args.folder
    if args.skill:
        write_line(str(write_skill(folder / args.skill)))
        return 0
    beginning = None
    if args.interactive:
        beginning = ask_beginning(args.name, args.account, args.region)
        args.name, args.account = beginning.name, None if beginning.account == SANDBOX_ACCOUNT else beginning.account
    if not args.ci or args.name or args.account or args.scenario:
        for written in write_project(
            folder,
            name=args.name,
            account=args.account,
            region=args.region,
            zones=args.zones,
            scenario=args.scenario,
            admins=tuple(args.admins.split(",")) if args.admins else (),
            beginning=beginning,
        ):
            write_line(str(written))
    if args.ci:
        for written in write_workflows(folder, args.repository, args.order):
            write_line(str(written))
        write_line("Next: `podwright pipeline bootstrap` prints what each account and the repository need")
        return 0
    if args.scenario:
        write_line("Roles, images and buckets in the file are examples: write your own before you deploy it to AWS.")
    name = args.name or args.scenario or ("prod" if args.account else "sandbox")
    for step in _next_steps(folder, name, bool(args.account or args.scenario)):
        write_line(step)
    return 0


def _next_steps(folder: Path, name: str, in_account: bool) -> Iterator[str]:
    """What to type after it, with why."""
    away = folder.resolve() != Path.cwd()
    if not in_account:
        yield f"Next: cd {folder} && podwright deploy" if away else "Next: podwright deploy"
        return
    steps = {
        f"podwright deploy {name} --sandbox": "rehearse on this machine, at no cost",
        "podwright chart fetch": "get its charts; commit artifacts.lock",
        f"podwright preflight {name}": "see what the account lacks",
        f"podwright deploy {name} --bootstrap": "prepare the account once, ask, deploy",
    }
    yield f"Next, in {folder}:" if away else "Next:"
    width = max(map(len, steps))
    yield from (f"  {command:{width}}  # {why}" for command, why in steps.items())
