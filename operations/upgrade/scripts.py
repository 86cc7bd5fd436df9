"""List nodes that were set up by earlier lifecycle scripts. With --replace, replace them.

A deployment publishes changed scripts under a new S3 prefix. Only new nodes, replaced nodes and nodes with updated
software run them; a reboot does not. --replace replaces nodes with earlier scripts in batches, and waits for the new
nodes. `podwright upgrade ENV nodes` does the same together with the image.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ..arguments import as_time, open_target
from ..aws.account import Account
from ..kubernetes.kubectl import way
from ..output.confirm import confirm
from ..output.console import write_answer, write_note
from ..output.tables import Block, new_table
from .lifecycle import AT_ONCE, Scripts, compare, replace, replaceable
from .observed import jobs_on_nodes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright upgrade ENV scripts`."""
    parser.add_argument(
        "--group", action="append", default=[], metavar="GROUP", help="only this instance group; may be repeated"
    )
    parser.add_argument("--replace", action="store_true", help="replace the nodes that have earlier scripts")
    parser.add_argument("--batch", type=int, default=1, metavar="N", help="nodes of a group at a time (default: 1)")
    parser.add_argument(
        "--wait",
        type=as_time,
        default=5400.0,
        metavar="TIME",
        help="wait for each batch, at most for this time (default: 90m)",
    )
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")


def run(args: argparse.Namespace) -> int:
    """List, and with --replace roll. Returns 1 where nodes have earlier scripts, or their successors do not come."""
    if not 1 <= args.batch <= AT_ONCE:
        raise CommandError(f"--batch is {args.batch}; allowed: 1 to {AT_ONCE}", "HyperPod takes so many at once", 2)
    environment, account = open_target(args)
    result = list(compare(account, environment, write_note, args.group))
    older = [item for item in result if item.is_older]
    if args.replace and older:
        _replace(args, environment, account, older)
        result = list(compare(account, environment, write_note, args.group))
        older = [item for item in result if item.is_older]
    rows = [asdict(item) for item in result]
    document = {"environment": environment.name, "nodes": rows, "older": len(older), "ok": not older}
    write_answer(args.json, document, _lines(environment, result, older))
    return 1 if older else 0


def _replace(args: argparse.Namespace, environment: Environment, account: Account, older: Sequence[Scripts]) -> None:
    """Say what stops and what is lost, ask, and replace nodes batch by batch."""
    going = replaceable(environment, older)
    if retained := [item.node for item in older if item not in going]:
        write_note(
            f"  not replaced: {', '.join(retained)}, controller or login nodes; `podwright upgrade {environment.name} "
            "nodes` runs their scripts again"
        )
    if not going:
        return
    kubectl = way(args.project, environment, account)
    jobs = jobs_on_nodes(kubectl)
    write_note(f"replace {len(going)} nodes of {environment.name}, {args.batch} at a time → {account}")
    if kubectl is None:
        write_note("  which jobs run there is not seen from here")
    for item in going:
        for job in jobs.get(item.node, ()):
            write_note(f"  {item.node} ({item.group}): {job} runs on it and stops")
    write_note("  everything on their disks is lost; file systems stay")
    if not args.yes:
        confirm(environment.name, f"replace {len(going)} of its nodes")
    for line in replace(account, environment.cluster.name, going, args.batch, args.wait / 60):
        write_note(f"  {line}")


def _lines(environment: Environment, scripts: Sequence[Scripts], older: Sequence[Scripts]) -> Iterator[Block]:
    if not older:
        yield f"{environment.name}: all {len(scripts)} nodes were set up by the scripts that their groups name"
        return
    rows = ((item.node, item.group, _short(item.has), _short(item.wanted), item.why) for item in older)
    yield new_table("", ("node", "group", "set up by", "now published", ""), rows)
    yield f"{len(older)} of {len(scripts)} nodes have earlier scripts. A reboot does not change that; these do:"
    yield f"    podwright upgrade {environment.name} scripts --replace     # new instances, one at a time"
    yield f"    podwright upgrade {environment.name} nodes                 # with a newer image, if there is one"


def _short(text: str) -> str:
    """A prefix by its last part, of which twelve characters tell digests apart."""
    return text.rstrip("/").rpartition("/")[2][:12] if text.startswith("s3://") else text
