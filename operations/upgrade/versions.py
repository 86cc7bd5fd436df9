"""`podwright upgrade ENV podwright --from OLD`: what this podwright would deploy differently than another one.

Both synthesize the environment from the same file, and their templates are compared: no account is asked. OLD is the
Python of a virtual environment with another podwright, or the folder of such an environment; in a checkout of podwright
also a commit or a tag.
"""

import argparse
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ...config.catalog.sandbox_account import SANDBOX_ACCOUNT
from ...config.errors import CommandError
from ...config.loading.project import Project
from ...planning.delivery.effects import Effect
from ..cdk.deployment import load
from ..effects.changes import ResourceChange, changes, short
from ..effects.templates import pairs, synthesized
from ..output.console import write_answer
from ..programs.node import use_bundled_node

NOTICED: Final = (
    Effect.INTERRUPTS,
    Effect.REMOVES_NODES,
    Effect.ROLLS_NODES,
    Effect.REFUSED,
    Effect.REPLACES,
    Effect.DELETES_DATA,
)
"""Effects that somebody has to know of before a new podwright is deployed."""
_ROOT: Final = Path(__file__).resolve().parents[2]
_PACKAGES: Final = (
    "bin",
    "cdk8s_charts",
    "cdk.json",
    "config",
    "constructs",
    "lifecycle_scripts",
    "operations",
    "stacks",
)
_ROWS: Final = 6


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright upgrade ENV podwright`."""
    parser.add_argument(
        "--from", dest="old", metavar="OLD", required=True, help="a Python or virtual environment, or a commit"
    )
    parser.add_argument("--all", action="store_true", help="show harmless differences as well")
    parser.add_argument("--stand-in", action="store_true", help="take stand-ins for charts that were not fetched")


def run(args: argparse.Namespace) -> int:
    """Returns 1 where a difference replaces, removes, interrupts or rolls something, or is refused."""
    loaded = load(args)
    name, project = loaded.environment.name, args.project
    known = args.environment in Project.at(project).names
    context = {"environment": args.environment if known else str(Path(args.environment).resolve())}
    if args.stand_in or args.sandbox or loaded.environment.account == SANDBOX_ACCOUNT:
        context["chart"] = "stand-in"
    with tempfile.TemporaryDirectory(prefix="podwright-versions-") as folder:
        existing = Path(folder)
        python, path = interpreter(args.old, existing / "old")
        old = synthesis(project, python, path, context, existing / "before", name)
        new = synthesis(project, sys.executable, None, context, existing / "after", name)
    resource_changes = changes(pairs(old, new), name)
    noticed = [change for change in resource_changes if is_noticed(change)]
    write_answer(
        args.json,
        {"environment": name, "changes": [plain(change, name) for change in resource_changes], "ok": not noticed},
        lines(name, resource_changes, noticed, whole=args.all),
    )
    return 1 if noticed else 0


def is_noticed(change: ResourceChange) -> bool:
    """Whether somebody has to know of a change: by its effect, or because what holds state gets another id."""
    return change.effect in NOTICED or (change.stateful and change.action in ("delete", "replace"))


def interpreter(old: str, folder: Path) -> tuple[str, str | None]:
    """The Python that has the other podwright, and what it has to look up packages in first.

    Raises:
        CommandError: `old` is neither a Python, nor a virtual environment, nor a commit.
    """
    specified = Path(old)
    python = specified / "bin/python" if specified.is_dir() else specified
    if python.is_file():
        return str(python.absolute()), None
    if not (_ROOT / ".git").exists():
        raise CommandError(
            f"--from {old} is no Python", "give the Python of a virtual environment that has another podwright", 2
        )
    # Of the commit only what a synthesis reads; this checkout's own packages serve it.
    archive = folder.with_suffix(".tar")
    message = subprocess.run(
        ["git", "-C", str(_ROOT), "archive", f"--output={archive}", old, *_PACKAGES], capture_output=True, text=True
    )
    if message.returncode:
        raise CommandError(
            f"--from {old} is no Python, and git says: {message.stderr.strip()}", "give a commit or a tag", 2
        )
    with tarfile.open(archive) as content:
        content.extractall(folder / "podwright", filter="data")
    return sys.executable, str(folder)


def synthesis(
    project: Path, python: str, path: str | None, context: Mapping[str, str], out: Path, name: str
) -> dict[str, Mapping[str, Any]]:
    """The templates that a podwright makes of an environment. Raises CommandError with its last lines if it cannot."""
    use_bundled_node()
    file = project / "cdk.json"
    flags = json.loads(file.read_text(encoding="utf-8")).get("context", {}) if file.is_file() else {}
    variables = {**os.environ, "CDK_OUTDIR": str(out), "CDK_CONTEXT_JSON": json.dumps({**flags, **context})}
    if path:
        variables["PYTHONPATH"] = path
    message = subprocess.run(
        [python, "-P", "-m", "podwright.bin.app"], cwd=project, env=variables, capture_output=True, text=True
    )
    if message.returncode:
        words = "\n".join(f"    {line}" for line in message.stderr.strip().splitlines()[-12:])
        raise CommandError(
            f"{path or python} does not synthesize {name}:\n{words}", "fix the file, or compare versions nearer"
        )
    return {key: dict(template) for key, template in synthesized(out, name).items()}


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
