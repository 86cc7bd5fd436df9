"""Delete the stacks of an environment, after a plan of what is deleted, what stays and what blocks the deletion.

Stacks with termination protection stay, with their networks and data: `protection: retain` sets it. To delete them,
deploy the environment with `protection: destroy`, or name each stack with --unprotect. Resources that a stack retains
stay unless --delete-data names them. Training plans stay, because AWS cannot cancel them. In the sandbox, `--sandbox
--yes` deletes everything.
"""

import argparse
import sys

from ...config.errors import CommandError
from ..arguments import add_environment, load
from ..cdk.deployment import cdk_for, deployed_stacks, wait_for_earlier_run
from ..cdk.progress import Progress
from ..output.console import write_answer, write_json, write_line, write_note
from ..output.moving import under_way
from .data import DELETABLE, delete_data, empty_bucket
from .inventory import Inventory, take_inventory
from .plan import Blocker, Kept
from .record import left_behind, write_record
from .rehearsal import lift_protection
from .run import Run
from .table import plan_lines
from .work import end_work


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright destroy`."""
    add_environment(parser)
    parser.add_argument("--dry-run", action="store_true", help="show the plan, and change nothing")
    parser.add_argument("--json", action="store_true", help="print the plan, or the result, as JSON")
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    for option, name, text in (
        ("--unprotect", "STACK", "remove the termination protection of this stack and delete it"),
        ("--empty-bucket", "NAME", "delete all objects of a bucket that blocks the deletion of its stack"),
        ("--delete-data", "NAME", "delete a retained resource, by the id in the plan"),
    ):
        parser.add_argument(option, metavar=name, action="append", default=[], help=f"{text}; may be repeated")
    parser.add_argument(
        "--leave-blocked", action="store_true", help="skip stacks that are blocked, and delete the others"
    )


def run(args: argparse.Namespace) -> int:
    """Delete every stack that is there and not protected, and what was named."""
    loaded = load(args)
    environment, name = loaded.environment, loaded.environment.name
    progress = Progress()
    cdk = cdk_for(args, loaded)
    account = cdk.account
    write_note(f"{name} → {account}")
    # CloudFormation refuses to delete a stack that is being changed.
    wait_for_earlier_run(cdk, progress)
    existing = deployed_stacks(account, name, args.project)
    _check_stacks(args.unprotect, [stack.name for stack in existing])
    # Never in AWS, whatever the arguments say.
    is_rehearsal = account.endpoint is not None and args.sandbox and args.yes and not args.dry_run
    if is_rehearsal:
        # Before the plan, which would otherwise call what is protected here a hindrance.
        lift_protection(account, existing, progress.say)
        existing = deployed_stacks(account, name, args.project)
    under_way("looking at what goes, what stays and what is in the way")
    observed = take_inventory(
        environment,
        account,
        args.project,
        existing,
        unprotect=args.unprotect,
        empty=args.empty_bucket,
        leave_blocked=args.leave_blocked,
    )
    plan = observed.plan
    earlier = left_behind(args.project, name, account.id, account.region)
    known = {item.name for items in observed.resources.values() for item in items} | {item.name for item in plan.kept}
    # Left by earlier teardowns and in no stack any more.
    plan.kept += [item for item in earlier if item.name not in known]
    if args.dry_run:
        write_answer(args.json, plan.to_json(), plan_lines(plan))
        return 0
    for block in plan_lines(plan):
        write_note(block)
    data = [item for item in plan.kept if item.type in DELETABLE] if is_rehearsal else _named(args, observed)
    # After the plan was printed, so that a person sees everything that is in the way at once.
    _stop_at([item for item in plan.blockers if item.by == "you"])
    if not plan.going and not data:
        write_line(f"{name}: no stack to delete")
        return 0
    if not args.yes:
        _ask(name, plan.going, [item.name for item in data])
    run = Run(environment, cdk, progress, observed)
    run.unprotect([stack for stack in args.unprotect if stack in plan.going])
    for bucket in args.empty_bucket:
        empty_bucket(account, bucket, progress.say)
    # Should this end half-way, what is retained by then is in no stack any more, and nobody would find it.
    write_record(args.project, plan, plan.kept, [])
    if plan.nodes:
        end_work(args.project, environment, account, progress)
    run.delete()
    deleted = delete_data(account, data, progress.say)
    file = write_record(args.project, plan, plan.kept, deleted)
    left = [item for item in plan.kept if item.name not in deleted]
    if args.json:
        write_json({"deleted": plan.going, "data": deleted, "left": [item.name for item in left], "record": str(file)})
        return 0
    _report(name, plan.going, deleted, left)
    if left:
        write_line(f"{file} lists what remains.")
    return 0


def _report(name: str, stacks: list[str], deleted: list[str], left: list[Kept]) -> None:
    write_line(f"{name}: deleted {', '.join([*stacks, *deleted])}")
    for item in left:
        held = f" ({item.holds})" if item.holds else ""
        write_line(f"  left: {item.type} {item.name}{held}")
        if item.command:
            write_line(f"        {item.command}")


def _check_stacks(named: list[str], existing: list[str]) -> None:
    if missing := [name for name in named if name not in existing]:
        raise CommandError(f"there is no stack {', '.join(missing)}", f"there are {', '.join(existing) or 'none'}", 2)


def _named(args: argparse.Namespace, inventory: Inventory) -> list[Kept]:
    """What --delete-data names. Raises CommandError for what is not there, or is in a stack that stays."""
    plan, known = inventory.plan, {item.name: item for item in inventory.plan.kept}
    buckets = {item.name for item in plan.blockers if item.kind == "bucket"}
    if missing := [name for name in args.empty_bucket if name not in buckets]:
        hint = f"in the way are {', '.join(sorted(buckets)) or 'none'}; --delete-data deletes a bucket that stays"
        raise CommandError(f"{', '.join(missing)} is not the bucket of a retained stack", hint, 2)
    for name in args.delete_data:
        if name in known and known[name].type in DELETABLE:
            continue
        owner = next((item for items in inventory.resources.values() for item in items if item.name == name), None)
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
    things = "thing is" if len(others) == 1 else "things are"
    more = f", and {len(others)} more {things} in the way" if others else ""
    hint = "; ".join(dict.fromkeys(item.how for item in blockers))
    raise CommandError(
        f"nothing was deleted: {first.why}{more}", f"{hint}; or --leave-blocked deletes the other stacks"
    )


def _ask(name: str, going: list[str], data: list[str]) -> None:
    if not sys.stdin.isatty():
        raise CommandError(
            "a confirmation needs a terminal", "--yes deletes without asking; --plan prints what would happen", 2
        )
    write_note(f"This deletes {', '.join([*going, *data])} and everything in them.")
    if input(f"Type {name} to continue: ").strip() != name:
        raise CommandError("nothing was deleted")
