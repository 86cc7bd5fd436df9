"""Starts and follows HyperPod's deep health checks. Their nodes accept no work until they end."""

import argparse
import time
from collections.abc import Sequence
from typing import Any, Final

from ...config.catalog.names import cluster_log_group
from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ..aws.account import Account
from ..aws.calls import change
from ..aws.clusters import Node
from ..aws.clusters import nodes as cluster_nodes
from ..output.confirm import confirm
from ..output.console import write_json, write_line, write_note
from .members import chosen
from .timeline import shown

CHECKS: Final = {
    "stress": "InstanceStress",
    "connectivity": "InstanceConnectivity",
    "training": "MultiNodeTrainingValidation",
}
"""HyperPod's checks by their names on the command line. Source: DeepHealthCheckType of botocore 1.44.5."""
_USUAL: Final = ("stress", "connectivity")
_POLL_SECONDS: Final = 5.0
_AT_WORK: Final = ("DeepHealthCheckInProgress", "Pending", "SystemUpdating")


def start(environment: Environment, account: Account, existing: Sequence[Node], args: argparse.Namespace) -> int:
    """Start checks, and with `--wait` follow them. Returns 1 if a node has not passed in time."""
    nodes = _chosen(environment, existing, args)
    checks = [CHECKS[name] for name in args.check or _USUAL]
    groups: dict[str, list[str]] = {}
    for node in sorted(nodes, key=lambda node: node.group):
        groups.setdefault(node.group, []).append(node.id)
    if "InstanceConnectivity" in checks and any(len(ids) < 2 for ids in groups.values()):
        raise CommandError(
            "connectivity is checked between nodes, and needs two of a group", "add a node, or --check stress", 2
        )
    cluster = environment.cluster.name
    write_note(f"check {', '.join(checks)} on {len(nodes)} nodes of {', '.join(groups)} → {account}")
    write_note("  they take no work until it is over, which can be hours; a node that fails is fixed")
    if not args.yes:
        confirm(environment.name, "check them")
    started = time.time()
    change(
        account,
        "sagemaker",
        "start_cluster_health_check",
        ClusterName=cluster,
        DeepHealthCheckConfigurations=[
            {"InstanceGroupName": group, "InstanceIds": ids, "DeepHealthChecks": checks}
            for group, ids in groups.items()
        ],
    )
    results: dict[str, Any] = {"checks": checks, "nodes": [node.id for node in nodes]}
    if args.wait:
        results |= _follow(account, cluster, nodes, started, args.wait)
    if args.json:
        write_json(results)
    elif args.wait:
        for id, status in results["status"].items():
            write_line(f"{id}: {status}")
    else:
        write_line(f"`podwright node health-check {environment.name} --wait` follows; results are log streams")
        write_line(f"DeepHealthCheckResults/… of {cluster_log_group(cluster, '…')}")
    return 1 if args.wait and not results["passed"] else 0


def _chosen(environment: Environment, existing: Sequence[Node], args: argparse.Namespace) -> list[Node]:
    """Return the named nodes and all nodes of the named groups."""
    if unknown := [group for group in args.group if group not in environment.groups]:
        raise CommandError(
            f"{environment.name} has no group {', '.join(unknown)}", f"it has {', '.join(environment.groups)}", 2
        )
    nodes = chosen(existing, args.nodes)
    nodes += [node for node in existing if node.group in args.group and node not in nodes]
    if not nodes:
        raise CommandError("name nodes, or --group G", "`podwright status` lists both", 2)
    return nodes


def _follow(account: Account, cluster: str, nodes: Sequence[Node], started: float, seconds: float) -> dict[str, Any]:
    """Return the results of the nodes after all checks have ended, or after `seconds`."""
    ids, checked = {node.id for node in nodes}, set[str]()
    status: dict[str, str] = {}
    while True:
        now = {node.id: node.status for node in cluster_nodes(account, cluster)}
        # A node that fails is replaced, and leaves the list under its id.
        changed = {id: now.get(id, "gone: replaced") for id in ids if now.get(id, "gone: replaced") != status.get(id)}
        for id, word in sorted(changed.items()):
            write_note(f"  {shown(time.time() - started):>9}  {id}: {word}")
        status |= changed
        # HyperPod may start after the first reads, so a node that was always Running has not been checked.
        checked |= {id for id in ids if status[id] != "Running"}
        at_work = any(word in _AT_WORK for word in status.values())
        if (checked == ids and not at_work) or time.time() - started > seconds:
            break
        time.sleep(_POLL_SECONDS)
    passed = checked == ids and all(word == "Running" for word in status.values())
    unseen = "Running; no check was seen"
    shown_as = {id: "passed" if word == "Running" and id in checked else word for id, word in status.items()}
    return {
        "passed": passed,
        "seconds": round(time.time() - started, 1),
        "status": {id: unseen if word == "Running" else word for id, word in sorted(shown_as.items())},
    }
