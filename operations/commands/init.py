"""Start a project of your own: an environment file and the `cdk.json` that lets `cdk` find podwright.

Without --account the environment is for the embedded sandbox, so `podwright deploy` works at once and costs nothing.
Existing files are never changed; run it again with another --name to add an environment.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

from ..environments.new_project import write_project, write_workflows
from ..output.console import write_line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright init`."""
    parser.add_argument("folder", metavar="DIR", type=Path, help="folder of the project; made when it is not there")
    parser.add_argument("--name", help="name of the environment (default: sandbox, or prod with --account)")
    parser.add_argument("--account", help="AWS account id (default: the embedded sandbox's)")
    parser.add_argument("--region", default="us-west-2", help="AWS region (default: us-west-2)")
    parser.add_argument("--zones", help="zone ids with commas between, such as usw2-az2,usw2-az3")
    parser.add_argument(
        "--ci",
        choices=["github"],
        help="write workflows of GitHub Actions that promote the environments of the project",
    )
    parser.add_argument(
        "--repository",
        metavar="OWNER/NAME",
        help="with --ci: the repository at GitHub, for a podwright.yaml that is written where there is none",
    )
    parser.add_argument("--order", metavar="ENV,ENV", help="with --repository: the environments, first ones first")


def run(args: argparse.Namespace) -> int:
    """Write the files that are not there yet. Nothing is written unless the environment passes its checks."""
    folder: Path = args.folder
    if not args.ci or args.name or args.account:
        for written in write_project(
            folder, name=args.name, account=args.account, region=args.region, zones=args.zones
        ):
            write_line(str(written))
    if args.ci:
        for written in write_workflows(folder, args.repository, args.order):
            write_line(str(written))
        write_line("Next: `podwright pipeline bootstrap` prints what each account and the repository need")
        return 0
    for step in _next_steps(folder, args.name or ("prod" if args.account else "sandbox"), bool(args.account)):
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
