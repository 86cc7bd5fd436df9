"""Which nodes were set up by earlier lifecycle scripts than their group names, and giving them back for new ones."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ..aws.account import Account
from ..aws.calls import change, get
from ..aws.clusters import Node, existing_cluster, node_details, nodes
from ..aws.unseen import Unseen, attempt
from ..nodes.timeline import shown
from ..output.moving import waiting_for
from .follow import POLL_SECONDS, SANDBOX_POLL_SECONDS
from .software import in_order

AT_ONCE: Final = 25
"""Nodes that BatchReplaceClusterNodes of botocore 1.44 takes."""


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


def compare(
    account: Account, environment: Environment, note: Callable[[str], object], only: Sequence[str] = ()
) -> Iterator[Scripts]:
    """Each node's scripts against those of its group; groups without scripts have nothing to compare.

    Args:
        account: Where the cluster is.
        environment: The environment of the cluster.
        note: Hears which bucket does not say when its scripts were published.
        only: Names of the groups to look at; all where it is empty.

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
            # Groups share the prefix, and each read of it is a request.
            published[desired] = _published(account, desired, groups[name].script, note)
        for node in sorted(nodes(account, cluster, name), key=lambda node: node.id):
            has = node_details(account, cluster, node.id).get("LifeCycleConfig", {}).get("SourceS3Uri", "")
            yield _compared(node, has, desired, published[desired])


def _compared(node: Node, has: str, desired: str, since: datetime | None) -> Scripts:
    """Judge one node: by the prefix that HyperPod names, and by whether it was set up before the prefix was there."""
    # What came last counts: an update of the software runs the scripts anew.
    set_up = max(filter(None, (node.launched, node.updated)), default=None)
    # A prefix counts as the same with and without a slash at its end.
    if has and has.rstrip("/") != desired.rstrip("/"):
        return Scripts(node.id, node.group, has, desired, True, "HyperPod names another prefix for it")
    if since and set_up and set_up < since:
        when, why = f"set up {set_up:%Y-%m-%d %H:%M} UTC", f"the scripts are there since {since:%Y-%m-%d %H:%M} UTC"
        return Scripts(node.id, node.group, when, desired, True, why)
    why = "set up from that prefix" if has else "set up since then"
    return Scripts(node.id, node.group, has or desired, desired, False, why)


def _published(account: Account, uri: str, script: str, note: Callable[[str], object]) -> datetime | None:
    """When scripts were published; None where their bucket does not say. A prefix of ours is written once."""
    bucket, _, prefix = uri.removeprefix("s3://").partition("/")
    key = f"{prefix.rstrip('/')}/{script}"
    head = attempt(lambda: get(account, "s3", "head_object", Bucket=bucket, Key=key))
    if isinstance(head, Unseen):
        note(
            f"when {uri} was published cannot be read ({head.code or head.why}); nodes are compared by "
            "HyperPod's data only"
        )
        return None
    return head["LastModified"]


def replaceable(environment: Environment, older: Sequence[Scripts]) -> list[Scripts]:
    """Those of the nodes that may be replaced: not Slurm's controller and login nodes."""
    # A replaced controller takes the state of all jobs with it, and a login node the people on it.
    fixed = {
        name
        for name, group in environment.instance_groups.items()
        if group.slurm and group.slurm.node_type != "compute"
    }
    return [item for item in older if item.group not in fixed]


def replace(account: Account, cluster: str, going: Sequence[Scripts], batch: int, minutes: float) -> Iterator[str]:
    """Replace nodes, so many of a group at a time, and say of each batch when its successors run.

    Raises:
        CommandError: HyperPod refuses a node, or no successor comes within the minutes that each batch has.
    """
    for group in dict.fromkeys(item.group for item in going):
        ids = [item.node for item in going if item.group == group]
        for first in range(0, len(ids), batch):
            yield _replaced(account, cluster, group, ids[first : first + batch], minutes * 60)


def _replaced(account: Account, cluster: str, group: str, ids: Sequence[str], seconds: float) -> str:
    """Replace nodes of a group at once, and wait for their successors."""
    started = time.time()
    # Counted before: while a node is replaced the group lists fewer.
    desired = len(nodes(account, cluster, group))
    asked = {"ClusterName": cluster, "NodeIds": list(ids)}
    failed = change(account, "sagemaker", "batch_replace_cluster_nodes", **asked).get("Failed", ())
    if failed:
        message = "; ".join(f"{error['NodeId']}: {error['ErrorCode']}: {error['Message']}" for error in failed)
        raise CommandError(
            f"HyperPod does not replace {message}", "what it accepted continues; run this again once nodes are Running"
        )
    waiting = waiting_for(f"the successors of {', '.join(ids)}")
    while True:
        running = {node.id for node in nodes(account, cluster, group) if node.status == "Running"}
        # Names of instances are new after a replacement, so the old ones have to be gone, and as many as before be
        # there.
        if not running & set(ids) and len(running) >= desired:
            return f"{shown(time.time() - started):>9}  {group}: {', '.join(ids)} replaced"
        if time.time() - started > seconds:
            raise CommandError(
                f"{group} has {len(running)} of {desired} nodes {shown(seconds)} after {', '.join(ids)} "
                f"were given back",
                "`podwright doctor` says why; run this again, it continues with the nodes that are left",
            )
        waiting.tick()
        time.sleep(SANDBOX_POLL_SECONDS if account.endpoint else POLL_SECONDS)
