"""Delete the stacks of an environment.

Stacks with termination protection stay, and the networks and data in them: `protection: retain` sets it. They go too
once the environment was deployed with `protection: destroy`.
"""

import argparse
import sys

from .assembly import stacks
from .cluster_table import deployed_stacks
from .deployment import add_environment, cdk_for, failure, load, wait_for_earlier_run
from .output import Stop, write_line
from .progress import Progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright destroy`."""
    add_environment(parser)
    parser.add_argument("--yes", action="store_true", help="delete without asking for the environment's name")


def run(args: argparse.Namespace) -> int:
    """Delete every stack that is there and not protected."""
    environment = load(args).environment
    progress = Progress(sys.stderr)
    cdk = cdk_for(args, load(args))
    write_line(f"{environment.name} → {cdk.account}", sys.stderr)
    if cdk.follow(progress, "synth", "--quiet", f"{environment.name}/*"):
        raise failure(cdk, progress)
    wait_for_earlier_run(cdk, progress)
    known = stacks(cdk.assembly)
    there = deployed_stacks(cdk.account, [stack.name for stack in known])
    kept = [stack.name for stack in known if stack.name in there and there[stack.name]["EnableTerminationProtection"]]
    going = [stack for stack in known if stack.name in there and stack.name not in kept]
    if kept:
        write_line(f"  kept, for their termination protection: {', '.join(kept)}", sys.stderr)
    if not going:
        write_line(f"{environment.name}: no stack to delete")
        return 0
    if not args.yes:
        _ask(environment.name, [stack.name for stack in going])
    if cdk.follow(progress, "destroy", *(stack.path for stack in going), "--force", synthesize=False):
        raise failure(cdk, progress)
    write_line(f"{environment.name}: deleted {', '.join(stack.name for stack in reversed(going))}")
    return 0


def _ask(name: str, going: list[str]) -> None:
    if not sys.stdin.isatty():
        raise Stop("nobody can be asked here", "--yes deletes without asking", 2)
    write_line(f"This deletes {', '.join(going)} and everything in them.", sys.stderr)
    if input(f"Type {name} to go on: ").strip() != name:
        raise Stop("nothing was deleted")
