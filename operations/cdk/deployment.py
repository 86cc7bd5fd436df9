"""What deploy, diff, destroy and status share: which environment, in which account, and why the CDK CLI stopped."""

import argparse
import json
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final

from ...config.errors import CommandError
from ...config.loading.load import LoadedEnvironment
from ...config.loading.project import Project
from ...planning.delivery.canary import counts_text
from ..arguments import account_for
from ..aws.account import Account
from ..aws.calls import find
from ..aws.stacks import Stack, stacks
from ..output.console import from_here
from .app import app_context, environment_context
from .cli import Cdk, Synthesized
from .events import Event, StackEvents
from .inputs import SynthesisInputs
from .progress import Progress

_HINTS: Final = {
    "capacity": "the zone has none now: reserve it with a training plan, or try another zone or a smaller count",
    "limit": "raise the quota in Service Quotas",
    "quota": "raise the quota in Service Quotas",
    "not authorized": "the CloudFormation role that `cdk bootstrap` made lacks that permission",
    "in use by": "deploy in two steps: first remove or move its users, then remove it",
    "already belongs to hyperpod": (
        "an EKS cluster can have one HyperPod cluster, and a renamed one would be a second: "
        "delete the cluster stack first, which deletes its nodes and keeps the data"
    ),
    "already exists": "another stack or a person made it; adopt it in the environment file, or delete it",
}
_POLL_SECONDS: Final = 5.0
# What the CDK's own default synthesizer looks for.
_QUALIFIER: Final = "hnb659fds"


def cdk_for(args: argparse.Namespace, loaded: LoadedEnvironment, counts: Mapping[str, int] | None = None) -> Cdk:
    """The CDK CLI for the environment that the arguments mean, with `counts` of nodes, once its account is open."""
    name = loaded.environment.name
    account = account_for(args, loaded.environment)
    context = environment_context(args.project, args.environment, loaded.environment)
    if counts:
        context |= {"counts": counts_text(counts)}
    if account.endpoint:
        # AWS's chart archive is the user's to fetch; the sandbox takes one that stands in for it.
        context |= {"chart": "stand-in"}
    log = args.project / ".podwright/logs" / f"{name}-{datetime.now().astimezone():%Y%m%d-%H%M%S}.log"
    return Cdk(args.project, name, SynthesisInputs.of(args.project, loaded, context), account, log)


def deployed_stacks(account: Account, environment: str, project: Path, *, nested: bool = False) -> list[Stack]:
    """The stacks of an environment, in the order in which they came to be.

    Stacks that others hold, whose names begin with theirs, are left out unless they are asked for.
    """
    longer = tuple(f"{name}-" for name in Project.at(project).names if name.startswith(f"{environment}-"))
    matches = [
        stack
        for stack in stacks(account)
        if stack.name.startswith(f"{environment}-") and not stack.name.startswith(longer)
    ]
    holders = tuple(f"{stack.name}-" for stack in matches)
    shown = [stack for stack in matches if nested or not stack.name.startswith(holders)]
    return sorted(shown, key=lambda stack: stack.created)


def watch(cdk: Cdk, progress: Progress, total: Callable[[str], int | None] = lambda _: None) -> None:
    """Have `progress` follow CloudFormation's events on the environment's stacks while the CLI runs next.

    `total` gives the number of resources of a stack by its name.
    """
    listed = partial(deployed_stacks, cdk.account, cdk.environment, cdk.project, nested=True)
    progress.watch(StackEvents(cdk.account, listed), total)


def wait_for_earlier_run(cdk: Cdk, progress: Progress) -> None:
    """Wait until CloudFormation is done with what an interrupted run began; it refuses new work meanwhile."""
    while busy := [
        f"{stack.name} ({stack.status})"
        for stack in deployed_stacks(cdk.account, cdk.environment, cdk.project)
        # A stack in review is what a change set that was never executed leaves; the CLI deletes it.
        if stack.status.endswith("_IN_PROGRESS") and stack.status != "REVIEW_IN_PROGRESS"
    ]:
        progress.say("an earlier run", f"is still at work on {', '.join(busy)}; waiting")
        time.sleep(_POLL_SECONDS)


def bootstrap(cdk: Cdk, progress: Progress, desired: bool) -> None:
    """Prepare account and region for the CDK: the sandbox always, AWS only when the user wants it.

    Raises:
        CommandError: AWS is not prepared and nobody asked for it, or it cannot be.
    """
    qualifier = app_context(cdk.project, {}).get("@aws-cdk/core:bootstrapQualifier", _QUALIFIER)
    if is_bootstrapped(cdk.account, qualifier):
        return
    command = ("bootstrap", f"aws://{cdk.account.id}/{cdk.account.region}", "--qualifier", qualifier)
    if not desired and cdk.account.endpoint is None:
        raise CommandError(
            f"account {cdk.account.id} is not prepared for the CDK in {cdk.account.region}",
            f"`podwright deploy {cdk.environment} --bootstrap` prepares it, or an administrator runs "
            f"`cdk {' '.join(command)}`",
        )
    if cdk.follow(progress, *command):
        raise failure(cdk, progress)
    progress.say("bootstrap", "done")


def is_bootstrapped(account: Account, qualifier: str = _QUALIFIER) -> bool:
    """Whether `cdk bootstrap` has run, by the parameter that every version of it writes."""
    name = f"/cdk-bootstrap/{qualifier}/version"
    return find(account, "ssm", "get_parameter", ("ParameterNotFound",), Name=name) is not None


def failure(cdk: Cdk, progress: Progress, assembly: Synthesized | None = None) -> CommandError:
    """Why the CLI stopped: CloudFormation's own reason where there is one, else the CLI's last words.

    `assembly` gives the construct path of the resource that failed.
    """
    log = f"the whole output is in {from_here(cdk.log)}"
    if progress.failures:
        first = progress.failures[0]
        path = construct_path(assembly.folder, first) if assembly else first.logical_id
        what, reason = f"{first.stack}: {path} ({first.type})", first.reason
    elif progress.turned_back:
        what, reason = progress.turned_back[0].stack, progress.turned_back[0].reason
    else:
        return CommandError("the CDK CLI failed:\n" + "\n".join(f"    {line}" for line in progress.last), log)
    hint = next((hint for word, hint in _HINTS.items() if word in reason.lower()), "fix the cause")
    return CommandError(
        f"{what} failed: {reason}", f"{hint}; then run the same command again, it resumes from here; {log}"
    )


def construct_path(assembly: Path, event: Event) -> str:
    """The construct path of a resource, by the last synthesis; its logical id where that wrote none."""
    own = {"type": "aws:cdk:logicalId", "data": event.logical_id}
    for file in sorted(assembly.rglob("*.metadata.json")):
        for path, entries in json.loads(file.read_text(encoding="utf-8")).items():
            # Logical ids are those of other stacks too. A path begins with the stage and the stack.
            if own in entries and "-".join(path.split("/")[1:3]) == event.outermost:
                return path.strip("/").removesuffix("/Resource")
    return event.logical_id
