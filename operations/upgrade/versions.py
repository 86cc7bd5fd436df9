"""Compare what this podwright and another one would deploy from the same file.

The command synthesizes the environment with both, and compares the templates. It needs no account. OLD is the Python of
a virtual environment with another podwright, the folder of such an environment, or, in a checkout of podwright, a
commit or a tag.
"""

import argparse
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ...config.catalog.sandbox_account import SANDBOX_ACCOUNT
from ...config.loading.load import LoadedEnvironment
from ..arguments import load
from ..cdk.app import environment_context
from ..cdk.inputs import SynthesisInputs
from ..cdk.progress import Progress
from ..cdk.synthesis import assembly_of
from ..effects.changes import ResourceChange, changes, short
from ..effects.templates import Template, pairs, synthesized
from ..output.console import write_answer
from .other_version import interpreter, is_noticed, synthesis

_ROWS: Final = 6


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright upgrade ENV podwright`."""
    parser.add_argument(
        "--from",
        dest="old",
        metavar="OLD",
        required=True,
        help="Python or virtual environment of the other podwright, or a commit",
    )
    parser.add_argument("--all", action="store_true", help="also print harmless differences")
    parser.add_argument("--stand-in", action="store_true", help="use stand-ins for charts that were not fetched")


def run(args: argparse.Namespace) -> int:
    """Returns 1 where a difference replaces, removes, interrupts or rolls something, or is refused."""
    loaded = load(args)
    name, project = loaded.environment.name, args.project
    context = environment_context(project, args.environment, loaded.environment)
    if args.stand_in or args.sandbox or loaded.environment.account == SANDBOX_ACCOUNT:
        context["chart"] = "stand-in"
    with tempfile.TemporaryDirectory(prefix="podwright-versions-") as folder:
        existing = Path(folder)
        python, path = interpreter(args.old, existing / "old")
        old = synthesis(project, python, path, context, existing / "before", name)
    new = _templates(project, loaded, context)
    resource_changes = changes(pairs(old, new), name)
    noticed = [change for change in resource_changes if is_noticed(change)]
    write_answer(
        args.json,
        {"environment": name, "changes": [plain(change, name) for change in resource_changes], "ok": not noticed},
        lines(name, resource_changes, noticed, whole=args.all),
    )
    return 1 if noticed else 0


def _templates(project: Path, loaded: LoadedEnvironment, context: Mapping[str, str]) -> dict[str, Template]:
    """Returns the templates of an environment as this podwright synthesizes it."""
    with assembly_of(SynthesisInputs.of(project, loaded, context), Progress()) as stored:
        return synthesized(stored.folder, loaded.environment.name)


def plain(change: ResourceChange, environment: str) -> dict[str, Any]:
    """A change for machines."""
    return {
        "name": f"{short(change.stack, environment)}/{change.logical_id}",
        "type": change.type,
        "path": change.path,
        "action": change.action,
        "effect": change.effect.value,
        "stateful": change.stateful,
        "noticed": is_noticed(change),
        "rows": [
            {"property": row.property, "effect": row.effect.value, "before": row.before, "after": row.after}
            for row in change.rows
        ],
    }


def lines(
    name: str, resource_changes: Sequence[ResourceChange], noticed: Sequence[ResourceChange], *, whole: bool
) -> Iterator[str]:
    """The differences for people, those that have an effect first."""
    if not resource_changes:
        yield f"{name}: both make the same templates"
        return
    for change in [*noticed, *(item for item in resource_changes if whole and item not in noticed)]:
        yield f"{change.action} {short(change.stack, name)}/{change.logical_id}  {change.type}  {change.effect.words}"
        for row in change.rows[:_ROWS]:
            yield f"    {row.property}  [{row.effect.words}]"
        if len(change.rows) > _ROWS:
            yield f"    and {len(change.rows) - _ROWS} more"
    rest = len(resource_changes) - len(noticed)
    counted = f"{len(noticed)} differences with an effect, {rest} without"
    yield f"{name}: {counted}{'' if whole or not rest else ' (--all shows them)'}"
