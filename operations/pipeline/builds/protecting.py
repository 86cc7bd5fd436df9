"""Enable termination protection for the stacks of an environment, as their templates say.

The CDK CLI does this with each deployment; the CloudFormation actions of CodePipeline do not.
"""

import argparse
import json
from pathlib import Path

from ....config.errors import CommandError
from ....config.loading.project import Project
from ....planning.delivery.pipeline_steps import ASSEMBLY
from ...arguments import account_for, add_sandbox
from ...aws.stacks import protect, stack
from ...output.console import write_line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright pipeline protect`."""
    parser.add_argument("environment", metavar="ENV", help="name of an environment")
    parser.add_argument(
        "--assembly", type=Path, metavar="DIR", help=f"use the templates in this folder (default: {ASSEMBLY})"
    )
    add_sandbox(parser)


def run(args: argparse.Namespace) -> int:
    """Protect what is not protected yet."""
    environment = Project.at(args.project).load(args.environment).environment
    folder: Path = (args.assembly or args.project / ASSEMBLY) / f"assembly-{environment.name}"
    names = protected_stacks(folder)
    account = account_for(args, environment)
    for name in names:
        deployed = stack(account, name)
        if deployed is None:
            raise CommandError(f"there is no stack {name} in {account}", "deploy the environment first")
        if not deployed.protected:
            protect(account, name, protected=True)
            write_line(f"{name}: protected from being deleted")
    write_line(f"{environment.name}: {len(names)} stacks are protected")
    return 0


def protected_stacks(folder: Path) -> list[str]:
    """Names of the stacks in an assembly that are to be protected. Raises CommandError where there is no assembly."""
    manifest = folder / "manifest.json"
    if not manifest.is_file():
        raise CommandError(
            f"{manifest} is not there", "`podwright pipeline synth` writes it, or --assembly names its folder", 2
        )
    artifacts = json.loads(manifest.read_text(encoding="utf-8"))["artifacts"].values()
    stacks = [item["properties"] for item in artifacts if item["type"] == "aws:cloudformation:stack"]
    return [stack["stackName"] for stack in stacks if stack.get("terminationProtection")]
