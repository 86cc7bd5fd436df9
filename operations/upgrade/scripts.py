"""`podwright upgrade ENV scripts`: which nodes were set up by earlier lifecycle scripts, and how they get the new ones.

A deployment publishes changed scripts under a new prefix of S3, and only nodes that are set up from then on run them:
new ones, replaced ones, and those whose software is updated. A reboot runs none. `--replace` gives nodes with earlier
scripts back, some at a time, and waits for their successors; `podwright upgrade ENV nodes` does it with the image.
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ..aws.account import Account, account_of
from ..aws.calls import change, get
from ..aws.clusters import Node, existing_cluster, node_details, nodes
from ..aws.unseen import Unseen, attempt
from ..cdk.deployment import load
from ..kubernetes.kubectl import way
from ..nodes.timeline import shown
from ..output.columns import columns
from ..output.confirm import confirm
from ..output.console import write_json, write_line, write_note
from .follow import POLL_SECONDS, SANDBOX_POLL_SECONDS
from .observed import jobs_on_nodes
from .software import in_order

# BatchReplaceClusterNodes of botocore 1.44.
_AT_ONCE: Final = 25
_WAIT_MINUTES: Final = 90.0


@dataclass(frozen=True, slots=True)
class Scripts:
    """The scripts of a node against those of its group."""

    node: str
    group: str
    has: str
    """Prefix that set it up, as far as HyperPod tells; else when it was set up."""
    wanted: str
    """The prefix of its group."""
    is_older: bool
    why: str
    """How that is known."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright upgrade ENV scripts`."""
    parser.add_argument("--group", action="append", default=[], metavar="G", help="only this group; repeatable")
    parser.add_argument("--replace", action="store_true", help="replace the nodes that have earlier scripts")
    parser.add_argument("--batch", type=int, default=1, metavar="N", help="nodes of a group at a time (default: 1)")
    parser.add_argument(
        "--wait",
        type=float,
        default=_WAIT_MINUTES,
        metavar="MINUTES",
        help="wait for each batch so long at most (default: 90)",
    )
    parser.add_argument("--yes", action="store_true", help="do it without asking")


def run(args: argparse.Namespace) -> int:
    """List, and with --replace roll. Returns 1 where nodes have earlier scripts, or their successors do not come."""
    if not 1 <= args.batch <= _AT_ONCE:
        raise CommandError(f"--batch is {args.batch}; allowed: 1 to {_AT_ONCE}", "HyperPod takes so many at once", 2)
    environment = load(args).environment
    account = account_of(environment, args.project, args.sandbox)
    result = list(compare(account, environment, args.group))
    older = [item for item in result if item.is_older]
    if args.replace and older:
        _replace(args, environment, account, older)
        result = list(compare(account, environment, args.group))
        older = [item for item in result if item.is_older]
    if args.json:
        keys = Scripts.__slots__
        nodes = [{key: getattr(item, key) for key in keys} for item in result]
        write_json({"environment": environment.name, "nodes": nodes, "older": len(older), "ok": not older})
    else:
        for line in _lines(environment, result, older):
            write_line(line)
    return 1 if older else 0


def compare(account: Account, environment: Environment, only: Sequence[str] = ()) -> Iterator[Scripts]:
    """Each node's scripts against those of its group; groups without scripts have nothing to compare.

    Raises:
        CommandError: there is no such cluster, or no such group.
    """
    cluster = environment.cluster.name
    groups = {group.name: group for group in existing_cluster(account, cluster).groups if not group.restricted}
    if unknown := [name for name in only if name not in groups]:
        raise CommandError(f"the cluster has no group {', '.join(unknown)}", f"it has {', '.join(groups)}", 2)
    published: dict[str, datetime | None] = {}
    for name in in_order(environment, [name for name in groups if not only or name in only]):
        desired = groups[name].scripts
        if not desired:
            continue
        if desired not in published:
            published[desired] = _published(account, desired, groups[name].script)
        for node in sorted(nodes(account, cluster, name), key=lambda node: node.id):
            has = node_details(account, cluster, node.id).get("LifeCycleConfig", {}).get("SourceS3Uri", "")
            yield _compared(node, has, desired, published[desired])


def _compared(node: Node, has: str, desired: str, since: datetime | None) -> Scripts:
    """Judge one node: by the prefix that HyperPod names, and by whether it was set up before the prefix was there."""
    set_up = max(filter(None, (node.launched, node.updated)), default=None)
    if has and has.rstrip("/") != desired.rstrip("/"):
        return Scripts(node.id, node.group, has, desired, True, "HyperPod names another prefix for it")
    if since and set_up and set_up < since:
        when, why = f"set up {set_up:%Y-%m-%d %H:%M} UTC", f"the scripts are there since {since:%Y-%m-%d %H:%M} UTC"
        return Scripts(node.id, node.group, when, desired, True, why)
    why = "set up from that prefix" if has else "set up since then"
    return Scripts(node.id, node.group, has or desired, desired, False, why)


def _published(account: Account, uri: str, script: str) -> datetime | None:
    """When scripts were published; None where their bucket does not say. A prefix of ours is written once."""
    bucket, _, prefix = uri.removeprefix("s3://").partition("/")
    key = f"{prefix.rstrip('/')}/{script}"
    head = attempt(lambda: get(account, "s3", "head_object", Bucket=bucket, Key=key))
    if isinstance(head, Unseen):
        write_note(
            f"when {uri} was published cannot be read ({head.code or head.why}); nodes are told apart by "
            "what HyperPod names alone"
        )
        return None
    return head["LastModified"]


def _replace(args: argparse.Namespace, environment: Environment, account: Account, older: Sequence[Scripts]) -> None:
    """Replace nodes, batch by batch. Raises CommandError when HyperPod refuses one, or no successor comes in time."""
    cluster = environment.cluster.name
    fixed = {
        name
        for name, group in environment.instance_groups.items()
        if group.slurm and group.slurm.node_type != "compute"
    }
    if retained := [item.node for item in older if item.group in fixed]:
        write_note(
            f"  not replaced: {', '.join(retained)}, controller or login nodes; `podwright upgrade {environment.name} "
            "nodes` runs their scripts again"
        )
    going = [item for item in older if item.group not in fixed]
    if not going:
        return
    kubectl = way(args.project, environment, account) if environment.cluster.orchestrator == "eks" else None
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
    poll = SANDBOX_POLL_SECONDS if account.endpoint else POLL_SECONDS
    for group in dict.fromkeys(item.group for item in going):
        ids = [item.node for item in going if item.group == group]
        for first in range(0, len(ids), args.batch):
            batch = ids[first : first + args.batch]
            _batch(account, cluster, group, batch, args.wait * 60, poll)


def _batch(account: Account, cluster: str, group: str, ids: Sequence[str], seconds: float, poll: float) -> None:
    started = time.time()
    desired = len(nodes(account, cluster, group))
    asked = {"ClusterName": cluster, "NodeIds": list(ids)}
    failed = change(account, "sagemaker", "batch_replace_cluster_nodes", **asked).get("Failed", ())
    if failed:
        message = "; ".join(f"{error['NodeId']}: {error['ErrorCode']}: {error['Message']}" for error in failed)
        raise CommandError(
            f"HyperPod does not replace {message}", "what it accepted continues; run this again once nodes are Running"
        )
    while True:
        running = {node.id for node in nodes(account, cluster, group) if node.status == "Running"}
        if not running & set(ids) and len(running) >= desired:
            write_note(f"  {shown(time.time() - started):>9}  {group}: {', '.join(ids)} replaced")
            return
        if time.time() - started > seconds:
            raise CommandError(
                f"{group} has {len(running)} of {desired} nodes {shown(seconds)} after {', '.join(ids)} "
                f"were given back",
                "`podwright doctor` says why; run this again, it continues with the nodes that are left",
            )
        time.sleep(poll)


def _lines(environment: Environment, scripts: Sequence[Scripts], older: Sequence[Scripts]) -> Iterator[str]:
    if not older:
        yield f"{environment.name}: all {len(scripts)} nodes were set up by the scripts that their groups name"
        return
    yield from columns(
        [("node", "group", "set up by", "now published", "")]
        + [(item.node, item.group, _short(item.has), _short(item.wanted), item.why) for item in older]
    )
    yield f"{len(older)} of {len(scripts)} nodes have earlier scripts. A reboot does not change that; these do:"
    yield f"    podwright upgrade {environment.name} scripts --replace     # new instances, one at a time"
    yield f"    podwright upgrade {environment.name} nodes                 # with a newer image, where there is one"


def _short(text: str) -> str:
    """A prefix by its last part, of which twelve characters tell digests apart."""
    return text.rstrip("/").rpartition("/")[2][:12] if text.startswith("s3://") else text
