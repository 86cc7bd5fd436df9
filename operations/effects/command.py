"""Show what a deployment would change, and what each change does: nodes that restart, data at risk, time and money.

Nothing is changed. Every change set has a digest; `approved_changes:` of the environment takes it where a change
replaces or deletes what holds data, buys, interrupts, or takes nodes from a group that runs.
"""

import argparse
import json
from pathlib import Path

from ..arguments import add_environment, load
from ..cdk.deployment import cdk_for, failure
from ..cdk.progress import Progress
from ..output.console import write_answer
from .document import change_set, document
from .show import lines


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright diff`."""
    add_environment(parser)
    parser.add_argument("--json", action="store_true", help="print the change set as JSON")
    parser.add_argument("--out", metavar="FILE", type=Path, help="write the change set as JSON into a file as well")
    parser.add_argument(
        "--assembly", metavar="DIR", type=Path, help="compare the templates of this cloud assembly: synthesize nothing"
    )
    parser.add_argument("--all", action="store_true", help="show every new resource, not their numbers")
    parser.add_argument(
        "--require-approval", action="store_true", help="exit 1 unless `approved_changes` has what needs approval"
    )
    parser.add_argument("--cdk", action="store_true", help="show what the CDK CLI's own diff says instead")


def run(args: argparse.Namespace) -> int:
    """Print the change set; returns 1 where an approval is required and missing."""
    loaded = load(args)
    cdk = cdk_for(args, loaded)
    if args.cdk:
        return cdk.run("diff", f"{cdk.environment}/*")
    progress = Progress()
    if args.assembly is None and cdk.follow(progress, "synth", "--quiet", f"{cdk.environment}/*"):
        raise failure(cdk, progress)
    resolved_set = change_set(loaded.environment, cdk.account, args.project, args.assembly or cdk.assembly)
    plain = document(resolved_set)
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(plain, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    write_answer(args.json, plain, lines(resolved_set, whole=args.all))
    return 1 if args.require_approval and not resolved_set.given else 0
