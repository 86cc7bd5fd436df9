"""Delete the stacks of an environment.

Stacks with termination protection stay, and the networks and data in them: `protection: retain` sets it. They go too
once the environment was deployed with `protection: destroy`. Training plans stay in any case: nothing cancels them.
"""

import argparse
import sys
from itertools import chain
from typing import Any, Final

from ..config.environment import Environment
from ..config.isolation import names_identities
from .account import Account
from .cdk import Cdk
from .deployment import add_environment, cdk_for, deployed_stacks, failure, load, wait_for_earlier_run
from .output import Stop, write_line
from .progress import Progress

_OF_TEAMS: Final = (
    *("AWS::EKS::AccessEntry", "AWS::EKS::PodIdentityAssociation", "AWS::SageMaker::ComputeQuota"),
    *("Custom::AWSCDK-EKS", "Custom::Podwright"),
)


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
    resources = _resources(cdk.account, going)
    for cluster in _protected_control_planes(cdk.account, list(chain(*resources.values()))):
        # Found out halfway, the nodes would be gone and the control plane still there.
        raise Stop(
            f"nothing was deleted: the EKS cluster {cluster} has deletion protection",
            "deploy once with `cluster.eks.deletion_protection: false`, or `protection: destroy` for everything",
        )
    if not going:
        write_line(f"{name}: no stack to delete")
        return 0
    for plan in chain(*map(_training_plans, resources.values())):
        write_line(f"  {plan} stays and is paid for until its end: nothing cancels a training plan", sys.stderr)
    if not args.yes:
        _ask(name, going)
    strays, late = _strays(loaded.environment, resources), _late_strays(loaded.environment, resources)
    # Of what a late stray exports nobody imports anything; it imports from the others.
    _delete(cdk.account, progress, late)
    # What a stray exports only the cluster imports, and what it imports others still export.
    first = [stack for stack in going if strays and stack == f"{name}-cluster"]
    _destroy(cdk, progress, first)
    _delete(cdk.account, progress, strays)
    _destroy(cdk, progress, [stack for stack in going if stack not in (*first, *strays, *late)])
    write_line(f"{name}: deleted {', '.join(reversed(going))}")
    return 0


def _strays(environment: Environment, resources: dict[str, list[dict[str, Any]]]) -> list[str]:
    """Stacks of ours that the app does not know any more, because the file has lost its training plans."""
    capacity = f"{environment.name}-capacity"
    # Somebody else's stack may have that name; only ours holds such resources.
    return [capacity] if not environment.training_plans and _training_plans(resources.get(capacity, [])) else []


def _late_strays(environment: Environment, resources: dict[str, list[dict[str, Any]]]) -> list[str]:
    """Stacks of ours that the app does not know any more, because the file has lost its teams or who works in them."""
    governance = environment.governance
    wanted = {"governance": governance.engine is not None, "access": names_identities(governance)}
    return [
        stack
        for key, needed in wanted.items()
        if not needed and _is_ours(resources.get(stack := f"{environment.name}-{key}", []))
    ]


def _is_ours(resources: list[dict[str, Any]]) -> bool:
    """Whether a stack holds what only podwright's stacks of teams hold together."""
    return any(row["ResourceType"].startswith(_OF_TEAMS) for row in resources)


def _destroy(cdk: Cdk, progress: Progress, stacks: list[str]) -> None:
    """Delete stacks of the app."""
    # A stack's path in the app is the stage's and its own.
    paths = [f"{cdk.environment}/{stack.removeprefix(f'{cdk.environment}-')}" for stack in stacks]
    if paths and cdk.follow(progress, "destroy", *paths, "--force"):
        raise failure(cdk, progress)


def _delete(account: Account, progress: Progress, stacks: list[str]) -> None:
    """Delete stacks by CloudFormation itself."""
    from botocore.exceptions import WaiterError

    client = account.client("cloudformation")
    for stack in reversed(stacks):
        progress.say(stack, "is of something that the file no longer has; deleting it")
        client.delete_stack(StackName=stack)
        try:
            client.get_waiter("stack_delete_complete").wait(StackName=stack)
        except WaiterError as error:
            raise Stop(f"{stack} is not deleted: {error}", "CloudFormation's console shows its events") from None


def _resources(account: Account, stacks: list[str]) -> dict[str, list[dict[str, Any]]]:
    """The resources of each stack."""
    pages = account.client("cloudformation").get_paginator("list_stack_resources")
    return {
        stack: [row for page in pages.paginate(StackName=stack) for row in page["StackResourceSummaries"]]
        for stack in stacks
    }


def _training_plans(resources: list[dict[str, Any]]) -> list[str]:
    """ARNs of the plans among resources."""
    plans = [row for row in resources if row["ResourceType"] == "Custom::PodwrightTrainingPlan"]
    return [row["PhysicalResourceId"] for row in plans if ":training-plan/" in row.get("PhysicalResourceId", "")]


def _protected_control_planes(account: Account, resources: list[dict[str, Any]]) -> list[str]:
    """EKS clusters among resources that AWS would not delete."""
    clusters = [row.get("PhysicalResourceId") for row in resources if row["ResourceType"] == "AWS::EKS::Cluster"]
    described = {name: account.client("eks").describe_cluster(name=name) for name in clusters if name}
    return [name for name, answer in described.items() if answer["cluster"].get("deletionProtection")]


def _ask(name: str, going: list[str]) -> None:
    if not sys.stdin.isatty():
        raise Stop("nobody can be asked here", "--yes deletes without asking", 2)
    write_line(f"This deletes {', '.join(going)} and everything in them.", sys.stderr)
    if input(f"Type {name} to go on: ").strip() != name:
        raise Stop("nothing was deleted")
