"""Delete the stacks of an environment, after a plan of what goes, what stays and what is in the way.

Stacks with termination protection stay, and the networks and data in them: `protection: retain` sets it. They go once
the environment was deployed with `protection: destroy`, or one by one with --unprotect. What a stack retains survives
it all the same, unless --delete-data names it. Training plans stay in any case: nothing cancels them.
"""

import argparse
import sys
from dataclasses import dataclass
from typing import Final

from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ...planning.kubernetes.isolation import names_identities
from ..aws.account import Account
from ..aws.stacks import delete_stack, protect
from ..cdk.cli import Cdk
from ..cdk.deployment import add_environment, cdk_for, deployed_stacks, failure, load, wait_for_earlier_run, watch
from ..cdk.progress import Progress
from ..output.console import write_json, write_line
from .data import DELETABLE, delete_data, empty_bucket
from .look import Look, look, still_there
from .network import remove
from .plan import Blocker, Kept
from .record import left_behind, write_record
from .stacks import Resource, failed, resources_of
from .table import plan_lines

_OF_TEAMS: Final = (
    *("AWS::EKS::AccessEntry", "AWS::EKS::PodIdentityAssociation", "AWS::SageMaker::ComputeQuota"),
    *("Custom::AWSCDK-EKS", "Custom::Podwright"),
)
# What services leave behind comes to light one after another.
_ATTEMPTS: Final = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright destroy`."""
    add_environment(parser)
    parser.add_argument("--plan", action="store_true", help="print what would happen, and change nothing")
    parser.add_argument("--json", action="store_true", help="print the plan, or what was done, as JSON")
    parser.add_argument("--yes", action="store_true", help="delete without asking for the environment's name")
    for option, name, text in (
        ("--unprotect", "STACK", "lift the termination protection of a stack, so that it goes too"),
        ("--empty-bucket", "NAME", "delete all versions of all objects in a bucket that keeps its stack"),
        ("--delete-data", "NAME", "delete something that stays otherwise, by the id that the plan prints"),
    ):
        parser.add_argument(option, metavar=name, action="append", default=[], help=f"{text}; may be repeated")
    parser.add_argument(
        "--leave-blocked", action="store_true", help="leave the stacks that something else keeps, delete the others"
    )


def run(args: argparse.Namespace) -> int:
    """Delete every stack that is there and not protected, and what was named."""
    loaded = load(args)
    environment, name = loaded.environment, loaded.environment.name
    progress = Progress(sys.stderr)
    cdk = cdk_for(args, loaded)
    account = cdk.account
    write_line(f"{name} → {account}", sys.stderr)
    wait_for_earlier_run(cdk, progress)
    there = deployed_stacks(account, name, args.project)
    _check_stacks(args.unprotect, [stack.name for stack in there])
    seen = look(
        environment,
        account,
        args.project,
        there,
        unprotect=args.unprotect,
        empty=args.empty_bucket,
        leave_blocked=args.leave_blocked,
    )
    plan = seen.plan
    earlier = left_behind(args.project, name, account.id, account.region)
    known = {item.name for items in seen.resources.values() for item in items} | {item.name for item in plan.kept}
    plan.kept += [item for item in earlier if item.name not in known]
    if args.plan:
        if args.json:
            write_json(plan.to_json())
        else:
            write_line("\n".join(plan_lines(plan)))
        return 0
    write_line("\n".join(plan_lines(plan)), sys.stderr)
    data = _named(args, seen)
    _stop_at([item for item in plan.blockers if item.by == "you"])
    if not plan.going and not data:
        write_line(f"{name}: no stack to delete")
        return 0
    if not args.yes:
        _ask(name, plan.going, [item.name for item in data])
    run = _Run(environment, cdk, progress, seen)
    run.unprotect([stack for stack in args.unprotect if stack in plan.going])
    for bucket in args.empty_bucket:
        empty_bucket(account, bucket, progress.say)
    # Should this end half-way, what is retained by then is in no stack any more, and nobody would find it.
    write_record(args.project, plan, plan.kept, [])
    run.delete()
    deleted = delete_data(account, data, progress.say)
    file = write_record(args.project, plan, plan.kept, deleted)
    left = [item for item in plan.kept if item.name not in deleted]
    if args.json:
        write_json({"deleted": plan.going, "data": deleted, "left": [item.name for item in left], "record": str(file)})
        return 0
    _report(name, plan.going, deleted, left)
    if left:
        write_line(f"What is left stands in {file}.")
    return 0


def _report(name: str, stacks: list[str], deleted: list[str], left: list[Kept]) -> None:
    write_line(f"{name}: deleted {', '.join([*stacks, *deleted])}")
    for item in left:
        held = f" ({item.holds})" if item.holds else ""
        write_line(f"  left: {item.type} {item.name}{held}")
        if item.command:
            write_line(f"        {item.command}")


def _check_stacks(named: list[str], there: list[str]) -> None:
    if missing := [name for name in named if name not in there]:
        raise CommandError(f"there is no stack {', '.join(missing)}", f"there are {', '.join(there) or 'none'}", 2)


def _named(args: argparse.Namespace, seen: Look) -> list[Kept]:
    """What --delete-data names. Raises CommandError for what is not there, or is in a stack that stays."""
    plan, known = seen.plan, {item.name: item for item in seen.plan.kept}
    buckets = {item.name for item in plan.blockers if item.kind == "bucket"}
    if missing := [name for name in args.empty_bucket if name not in buckets]:
        hint = f"in the way are {', '.join(sorted(buckets)) or 'none'}; --delete-data deletes a bucket that stays"
        raise CommandError(f"{', '.join(missing)} is no bucket that keeps a stack", hint, 2)
    for name in args.delete_data:
        if name in known and known[name].type in DELETABLE:
            continue
        owner = next((item for items in seen.resources.values() for item in items if item.name == name), None)
        if owner and owner.stack not in plan.going:
            hint = f"--unprotect {owner.stack} lets the stack go; what it retains can be named then"
            raise CommandError(f"{name} belongs to {owner.stack}, which stays", hint, 2)
        can = sorted(name for name, item in known.items() if item.type in DELETABLE)
        raise CommandError(f"{name} is nothing that could be deleted here", f"there are {', '.join(can) or 'none'}", 2)
    return [known[name] for name in dict.fromkeys(args.delete_data)]


def _stop_at(blockers: list[Blocker]) -> None:
    if not blockers:
        return
    # Found out halfway, the nodes would be gone and the rest still there.
    first, *others = blockers
    more = f", and {len(others)} more {'thing is' if len(others) == 1 else 'things are'} in the way" if others else ""
    hint = "; ".join(dict.fromkeys(item.how for item in blockers))
    raise CommandError(
        f"nothing was deleted: {first.why}{more}", f"{hint}; or --leave-blocked deletes the other stacks"
    )


@dataclass(slots=True)
class _Run:
    """Carrying out the plan."""

    environment: Environment
    cdk: Cdk
    progress: Progress
    seen: Look

    def unprotect(self, stacks: list[str]) -> None:
        """Lift the termination protection of stacks."""
        for stack in stacks:
            protect(self.cdk.account, stack, protected=False)
            self.progress.say(stack, "is no longer protected")

    def delete(self) -> None:
        """Delete the stacks of the plan; the network last, once what others left in it is gone."""
        name, going = self.environment.name, sorted(self.seen.plan.going, key=list(self.seen.resources).index)
        resources = {stack: self.seen.resources[stack] for stack in going}
        strays, late = _strays(self.environment, resources), _late_strays(self.environment, resources)
        # Of what a late stray exports nobody imports anything; it imports from the others.
        _delete(self.cdk.account, self.progress, late)
        # What a stray exports only the cluster imports, and what it imports others still export.
        first = [stack for stack in going if strays and stack == f"{name}-cluster"]
        self._destroy(first)
        _delete(self.cdk.account, self.progress, strays)
        rest = [stack for stack in going if stack not in (*first, *strays, *late)]
        network = self.seen.network[0] if self.seen.network else None
        self._destroy([stack for stack in rest if stack != network])
        if network:
            self._free()
            self._destroy([network])

    def _free(self) -> bool:
        """Take away what others left in the network; whether there was anything.

        Raises:
            CommandError: something is in the way that somebody else has to remove.
        """
        found = still_there(self.seen, self.cdk.account)
        if yours := [item for item in found if item.by == "you"]:
            stack = yours[0].stack
            lines = "\n".join(f"    {item.why}" for item in yours)
            hint = "; ".join(item.how for item in yours)
            raise CommandError(f"{stack} stays, because something is in it:\n{lines}", f"{hint}; then run this again")
        remove(self.cdk.account, found, self.progress.say)
        return bool(found)

    def _destroy(self, stacks: list[str]) -> None:
        """Delete stacks of the app, again where what kept them could be taken away."""
        # A stack's path in the app is the stage's and its own.
        name = self.environment.name
        paths = [f"{name}/{stack.removeprefix(f'{name}-')}" for stack in stacks]
        of_network = self.seen.network is not None and self.seen.network[0] in stacks
        for attempt in range(1, _ATTEMPTS + 1):
            watch(self.cdk, self.progress)
            if not paths or not self.cdk.follow(self.progress, "destroy", *paths, "--force"):
                return
            if attempt < _ATTEMPTS and of_network and self._free():
                self.progress.say(stacks[0], "is deleted again, without what kept it")
                continue
            raise self._failure()

    def _failure(self) -> CommandError:
        """Why stacks were not deleted: every resource with CloudFormation's reason, else what the CLI says."""
        account, name = self.cdk.account, self.environment.name
        left = deployed_stacks(account, name, self.cdk.project)
        stuck = [stack for stack in left if stack.status == "DELETE_FAILED"]
        reasons = {stack: failed(items) for stack, items in resources_of(account, stuck).items()}
        if not any(reasons.values()):
            return failure(self.cdk, self.progress)
        lines = [f"    {stack}: {reason}" for stack, items in reasons.items() for reason in items]
        hint = f"fix the causes, then run the same command again: it goes on from here; log: {self.cdk.log}"
        return CommandError(f"{', '.join(reasons)} could not be deleted:\n" + "\n".join(lines), hint)


def _strays(environment: Environment, resources: dict[str, list[Resource]]) -> list[str]:
    """Stacks of ours that the app does not know any more, because the file has lost its training plans."""
    capacity = f"{environment.name}-capacity"
    # Somebody else's stack may have that name; only ours holds such resources.
    plans = [item for item in resources.get(capacity, []) if item.type == "Custom::PodwrightTrainingPlan"]
    return [capacity] if not environment.training_plans and plans else []


def _late_strays(environment: Environment, resources: dict[str, list[Resource]]) -> list[str]:
    """Stacks of ours that the app does not know any more, because the file has lost its teams or who works in them."""
    governance = environment.governance
    wanted = {"governance": governance.engine is not None, "access": names_identities(governance)}
    return [
        stack
        for key, needed in wanted.items()
        if not needed and _is_ours(resources.get(stack := f"{environment.name}-{key}", []))
    ]


def _is_ours(resources: list[Resource]) -> bool:
    """Whether a stack holds what only podwright's stacks of teams hold together."""
    return any(item.type.startswith(_OF_TEAMS) for item in resources)


def _delete(account: Account, progress: Progress, stacks: list[str]) -> None:
    """Delete stacks by CloudFormation itself."""
    for stack in reversed(stacks):
        progress.say(stack, "is of something that the file no longer has; deleting it")
        delete_stack(account, stack)


def _ask(name: str, going: list[str], data: list[str]) -> None:
    if not sys.stdin.isatty():
        raise CommandError(
            "nobody can be asked here", "--yes deletes without asking; --plan prints what would happen", 2
        )
    write_line(f"This deletes {', '.join([*going, *data])} and everything in them.", sys.stderr)
    if input(f"Type {name} to go on: ").strip() != name:
        raise CommandError("nothing was deleted")
