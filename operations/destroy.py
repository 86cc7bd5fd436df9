"""Delete the stacks of an environment.

Stacks with termination protection stay, and the networks and data in them: `protection: retain` sets it. They go too
once the environment was deployed with `protection: destroy`.
"""

import argparse
import sys
from collections.abc import Iterator

from .account import Account
from .deployment import add_environment, cdk_for, deployed_stacks, failure, load, wait_for_earlier_run
from .output import Stop, write_line
from .progress import Progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright destroy`."""
    add_environment(parser)
    parser.add_argument("--yes", action="store_true", help="delete without asking for the environment's name")


def run(args: argparse.Namespace) -> int:
    """Delete every stack that is there and not protected."""
    loaded = load(args)
    name = loaded.environment.name
    progress = Progress(sys.stderr)
    cdk = cdk_for(args, loaded)
    write_line(f"{name} → {cdk.account}", sys.stderr)
    wait_for_earlier_run(cdk, progress)
    there = deployed_stacks(cdk.account, name, args.project)
    kept = [stack["StackName"] for stack in there if stack["EnableTerminationProtection"]]
    going = [stack["StackName"] for stack in there if stack["StackName"] not in kept]
    if kept:
        write_line(f"  kept for their termination protection: {', '.join(kept)}", sys.stderr)
    for cluster in _protected_control_planes(cdk.account, going):
        # Found out halfway, the nodes would be gone and the control plane still there.
        raise Stop(
            f"nothing was deleted: the EKS cluster {cluster} has deletion protection",
            "deploy once with `cluster.eks.deletion_protection: false`, or `protection: destroy` for everything",
        )
    if not going:
        write_line(f"{name}: no stack to delete")
        return 0
    if not args.yes:
        _ask(name, going)
    # A stack's path in the app is the stage's and its own.
    paths = [f"{name}/{stack.removeprefix(f'{name}-')}" for stack in going]
    if cdk.follow(progress, "destroy", *paths, "--force"):
        raise failure(cdk, progress)
    write_line(f"{name}: deleted {', '.join(reversed(going))}")
    return 0


def _protected_control_planes(account: Account, stacks: list[str]) -> Iterator[str]:
    """EKS clusters of these stacks that AWS would not delete."""
    pages = account.client("cloudformation").get_paginator("list_stack_resources")
    for stack in stacks:
        for resource in (row for page in pages.paginate(StackName=stack) for row in page["StackResourceSummaries"]):
            name = resource.get("PhysicalResourceId") if resource["ResourceType"] == "AWS::EKS::Cluster" else None
            if name and account.client("eks").describe_cluster(name=name)["cluster"].get("deletionProtection"):
                yield name


def _ask(name: str, going: list[str]) -> None:
    if not sys.stdin.isatty():
        raise Stop("nobody can be asked here", "--yes deletes without asking", 2)
    write_line(f"This deletes {', '.join(going)} and everything in them.", sys.stderr)
    if input(f"Type {name} to go on: ").strip() != name:
        raise Stop("nothing was deleted")
