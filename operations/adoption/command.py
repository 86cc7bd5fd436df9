"""Read a running HyperPod cluster, and write an environment file that adopts its resources.

The command changes nothing in the account and overwrites no file. Comments in the file say what could not be read, and
why. The command then checks and synthesizes the file, and prints every setting in which a deployment would differ from
the cluster. Exit code 1: the file breaks a rule, or the comparison failed.

The cluster itself stays with the stack or person that created it: CloudFormation cannot create a second cluster with
the same name.
"""

import argparse
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from ...config.catalog.sandbox_account import SANDBOX_ACCOUNT
from ...config.errors import CommandError, InvalidFile
from ...config.findings import Finding, counted, dotted, errors
from ...config.loading.load import load_environment
from ...planning.rules import findings
from ..aws.account import Account, opened_shell, sandbox_shell
from ..effects.permissions import text
from ..output.console import from_here, write_answer, write_findings, write_line
from ..output.moving import under_way
from ..output.tables import Block, new_table
from .differences import Comparison, Deviation, compare
from .reading import RunningCluster, groups, read
from .settings import environment_settings

_NAME: Final = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")
_LONGEST: Final = 32


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright import`."""
    parser.add_argument("cluster", metavar="CLUSTER", help="name of a HyperPod cluster")
    parser.add_argument(
        "--region", metavar="REGION", default="", help="AWS region (default: the region of your credentials)"
    )
    parser.add_argument("--name", metavar="NAME", help="name of the environment (default: the cluster's)")
    parser.add_argument("--out", metavar="FILE", type=Path, help="write this file (default: environments/NAME.yaml)")
    parser.add_argument("--sandbox", action="store_true", help="read the sandbox instead of AWS")
    parser.add_argument(
        "--account",
        metavar="ID",
        default=SANDBOX_ACCOUNT,
        help="with --sandbox: account of the sandbox (default: its own)",
    )
    parser.add_argument("--json", action="store_true", help="print the written file and the comparison as JSON")


def run(args: argparse.Namespace) -> int:
    """Write the file, check it, and print what differs."""
    name = args.name or args.cluster.lower()
    if not _NAME.fullmatch(name) or len(name) > _LONGEST:
        raise CommandError(f"{name} is not an environment name", "give one with --name: a-z, 0-9 and -", 2)
    file: Path = args.out or args.project / "environments" / f"{name}.yaml"
    if file.exists():
        raise CommandError(f"{from_here(file)} exists, and nothing is overwritten", "name another file with --out", 2)
    under_way("opening the account")
    account = _account(args)
    under_way(f"reading {args.cluster} and its network, storage and quotas")
    running = read(account, args.cluster)
    settings = environment_settings(running, name)
    _write(file, settings.text(_head(running)))
    under_way("checking the file")
    wrong = _checked(file)
    under_way("synthesizing the file, and comparing it with the cluster")
    comparison, reason = (None, "it breaks a rule") if errors(wrong) else _compared(args, running, name, file)
    document = {
        "schema": "podwright.import/1",
        "cluster": running.cluster["ClusterName"],
        "file": str(from_here(file)),
        "gaps": [gap._asdict() for gap in running.gaps],
        "notes": [{"path": dotted(path), "note": note} for path, note in settings.notes],
        "findings": [finding.to_json() for finding in wrong],
        "comparison": comparison.to_json() if comparison else None,
        "not_compared": reason,
    }
    if not args.json:
        _print_written(running, file, wrong)
    write_answer(args.json, document, _lines(comparison, reason, name))
    return 0 if comparison else 1


def _account(args: argparse.Namespace) -> Account:
    if not args.sandbox:
        return opened_shell(args.region)
    return sandbox_shell(args.project, args.account, args.region or "us-west-2")


def _head(running: RunningCluster) -> str:
    """The first lines of the file: what it is of, and what it is good for."""
    cluster, schema = running.cluster, "environment.schema.json"
    return (
        f"# yaml-language-server: $schema={schema}\n"
        f"# Read from the HyperPod cluster {cluster['ClusterName']} ({cluster['ClusterStatus']}) by "
        "`podwright import`.\n"
        "# The cluster's creator keeps managing it: CloudFormation cannot create another one with this name."
    )


def _write(file: Path, text: str) -> None:
    """Write the file, which is not there: somebody may have made it since it was looked for."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        raise CommandError(f"{file} cannot be written: {error.strerror}", "name another file with --out", 2) from None


def _checked(file: Path) -> list[Finding]:
    """What is wrong with the file; one that is no environment breaks a rule too."""
    try:
        loaded = load_environment(file)
    except InvalidFile as error:
        return error.findings
    return findings(loaded.environment, loaded.source)


def _compared(
    args: argparse.Namespace, running: RunningCluster, name: str, file: Path
) -> tuple[Comparison | None, str]:
    """The cluster beside its file; else why they could not be compared."""
    try:
        return compare(running, name, file, args.project, sandbox=bool(args.sandbox)), ""
    except CommandError as error:
        return None, str(error)


def _print_written(running: RunningCluster, file: Path, wrong: list[Finding]) -> None:
    """Say what was written, what is missing in it, and what `check` says of it."""
    number = len(list(groups(running.cluster)))
    write_line(f"written  {from_here(file)}: {number} instance group{'s' if number > 1 else ''}")
    if running.gaps:
        rows = [(gap.what, gap.why, gap.action) for gap in running.gaps]
        write_line(new_table("not read", ("what", "why", "permission"), rows))
    write_findings(wrong, sys.stdout)
    write_line(f"check: {counted(wrong) or 'ok'}")


def _lines(comparison: Comparison | None, reason: str, name: str) -> Iterator[Block]:
    """What differs between the cluster and the file."""
    if comparison is None:
        yield f"not compared with the cluster: {reason}"
        return
    several = len(comparison.deviations) != 1
    if comparison.deviations:
        columns = ("property", "now", "file", "why")
        yield new_table("where the file is unlike the cluster", columns, _rows(comparison.deviations))
    what = f"{len(comparison.deviations) or 'no'} propert{'ies are' if several else 'y is'} unlike the cluster"
    yield f"{name}: {comparison.compared} resources compared, {what}"
    if comparison.beside:
        stacks = ", ".join(f"{stack} {count}" for stack, count in comparison.beside.items())
        yield f"Besides, its stacks would have what the cluster has from elsewhere or lacks: {stacks}"
    yield f"Next: read the notes in the file; `podwright status {name}` and `podwright doctor {name}` use it as it is"


def _rows(deviations: Iterable[Deviation]) -> list[Sequence[str]]:
    """A row for each property; one for several instance groups that differ alike in it."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for item in deviations:
        path = item.property
        before, _, rest = path.partition("[")
        of_group = before.endswith("InstanceGroups") and bool(rest)
        group, after = rest.split("]", 1) if of_group else ("", path)
        head = f"{item.resource.rpartition('::')[2]}: {before if of_group else ''}"
        alike.setdefault((head, after, _value(item.now), _value(item.file), item.why), []).append(group)
    return [
        (f"{head}[{', '.join(names)}]{after}" if names[0] else f"{head}{after}", *cells)
        for (head, after, *cells), names in alike.items()
    ]


def _value(value: Any) -> str:
    return "nothing" if value is None else text(value)
