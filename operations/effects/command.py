"""Print what a deployment would change, and the effect of each change: restarted nodes, data at risk, time and cost.

The command changes nothing. Every change set has a digest. Add the digest to `approved_changes:` of the environment to
approve a change that replaces or deletes data, buys capacity, interrupts jobs, or removes nodes from a running group.
"""

import argparse
import json
from itertools import chain
from pathlib import Path
from typing import Any

from ...config.loading.load import LoadedEnvironment
from ...config.settings.environment import Environment
from ...planning.simulation.traces.trace import latest
from ..arguments import add_environment, load
from ..cdk.cli import Cdk, Synthesized
from ..cdk.deployment import cdk_for
from ..cdk.progress import Progress
from ..output.console import write_answer
from ..output.moving import under_way
from ..simulation.decisions import ENGINES, decide
from ..simulation.document import document as simulation_document
from ..simulation.trace_files import trace_of
from . import patches
from .document import ChangeSet, change_set, document
from .patches import patched_fields
from .quota_effect import effect_lines, quota_effect, trace_file
from .show import lines


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright diff`."""
    add_environment(parser)
    parser.add_argument("--json", action="store_true", help="print the change set as JSON")
    parser.add_argument("--out", metavar="FILE", type=Path, help="also write the change set as JSON into this file")
    parser.add_argument(
        "--assembly", metavar="DIR", type=Path, help="use the templates in this folder; do not synthesize"
    )
    parser.add_argument("--all", action="store_true", help="list every new resource, not only their numbers")
    parser.add_argument(
        "--require-approval", action="store_true", help="exit with 1 if `approved_changes` lacks a required approval"
    )
    parser.add_argument(
        "--trace",
        metavar="WHERE",
        help="simulate this work if quotas change: a file, `metrics` or a Prometheus server (default: traces/ENV.*)",
    )
    parser.add_argument("--days", metavar="N", type=float, default=30.0, help="days of history to read (default: 30)")
    parser.add_argument("--cdk", action="store_true", help="print the diff of the CDK CLI instead")


def run(args: argparse.Namespace) -> int:
    """Print the change set; returns 1 where an approval is required and missing."""
    loaded = load(args)
    cdk = cdk_for(args, loaded)
    if args.assembly is not None:
        return _compare(args, loaded, cdk, Synthesized(args.assembly.resolve()))
    with cdk.synthesized(Progress()) as assembly:
        return _compare(args, loaded, cdk, assembly)


def _compare(args: argparse.Namespace, loaded: LoadedEnvironment, cdk: Cdk, assembly: Synthesized) -> int:
    """Show the changes to an assembly, by podwright or by the CDK CLI."""
    if args.cdk:
        return cdk.run(assembly, "diff", f"{cdk.environment}/*")
    return _show(args, loaded, cdk, assembly.folder)


def _show(args: argparse.Namespace, loaded: LoadedEnvironment, cdk: Cdk, assembly: Path) -> int:
    """Compare an assembly with the deployed stacks, and print the change set."""
    under_way("comparing with what is deployed")
    resolved_set = change_set(loaded.environment, cdk.account, args.project, assembly)
    patched = patched_fields(loaded.environment)
    effect = _quota_effect(args, loaded.environment, resolved_set)
    plain = document(resolved_set) | {"patches": patches.plain(patched), "quota_effect": effect}
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(plain, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    shown = effect_lines(effect) if effect else ()
    write_answer(args.json, plain, chain(lines(resolved_set, whole=args.all), patches.lines(patched), shown))
    return 1 if args.require_approval and not resolved_set.given else 0


def _quota_effect(args: argparse.Namespace, environment: Environment, resolved_set: ChangeSet) -> dict[str, Any] | None:
    """What came of the last days' work before and after, where quotas change and there is a trace."""
    where = args.trace or trace_file(args.project, environment)
    if where is None or environment.governance.engine not in ENGINES or resolved_set.first:
        return None
    trace = latest(trace_of(str(where), environment, args.project, args.days), args.days)
    result = quota_effect(environment, resolved_set.changes, trace, decide)
    return simulation_document(result) if result else None
