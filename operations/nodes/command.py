"""Reboot, replace or check nodes of a HyperPod cluster, or quarantine them.

NODE is an instance id (i-0123456789abcdef0) or a Kubernetes node name (hyperpod-i-0123456789abcdef0). Jobs stop on a
node that is rebooted or replaced. Replacing a node deletes the data on its disks, and ends its quarantine. In
quarantine, running jobs continue, and no new pods are scheduled until `release`.
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, Final

from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ...config.settings.groups import InstanceGroup
from ..arguments import add_name, add_project, add_sandbox, as_time, open_target
from ..aws.account import Account
from ..aws.calls import change
from ..aws.clusters import Node, existing_cluster
from ..aws.clusters import nodes as cluster_nodes
from ..kubernetes.kubectl import way
from ..output.confirm import confirm
from ..output.console import write_answer, write_note
from .follow import POLL_SECONDS, SANDBOX_POLL_SECONDS, Events, follow
from .health_check import CHECKS, start
from .members import chosen
from .quarantine import quarantine, release
from .snapshot import Observer, Snapshot
from .timeline import Action, Timeline, shown

# BatchRebootClusterNodes and BatchReplaceClusterNodes of botocore 1.44.
_AT_ONCE: Final = 25
_ERRORS: Final = {
    "InstanceIdNotFound": "it is gone; `podwright status` lists the nodes",
    "InvalidInstanceStatus": "its status does not allow it now; wait until it is Running",
    "InstanceIdInUse": "something else is done with it; wait and try again",
    "InternalServerError": "HyperPod failed; try again",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright node`."""
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    words = {
        "reboot": "reboot nodes; their disks stay",
        "replace": "replace nodes with new ones",
        "health-check": "run HyperPod's deep health checks; HyperPod replaces failed nodes",
        "quarantine": "keep new pods off nodes; running jobs continue",
        "release": "end the quarantine of nodes",
    }
    for name, help_text in words.items():
        verb = verbs.add_parser(name, help=help_text)
        add_name(verb)
        checks, stays = name == "health-check", name in ("quarantine", "release")
        verb.add_argument(
            "nodes", metavar="NODE", nargs="*" if checks else "+", help="instance id, or name of the Kubernetes node"
        )
        if checks:
            verb.add_argument(
                "--group",
                action="append",
                default=[],
                metavar="GROUP",
                help="all nodes of this instance group; may be repeated",
            )
            verb.add_argument("--check", action="append", choices=list(CHECKS), help="only this check; may be repeated")
        if name == "quarantine":
            verb.add_argument(
                "--reason", required=True, type=_reason, metavar="TEXT", help="reason; `status` prints it"
            )
        # What `release` takes back needs no question.
        if not stays:
            verb.add_argument("--yes", action="store_true", help="do not ask for confirmation")
            verb.add_argument("--wait", type=as_time, metavar="TIME", help="follow the nodes, at most for this time")
        add_sandbox(verb)
        verb.add_argument("--json", action="store_true", help="print the result as JSON")
        add_project(verb)
        verb.set_defaults(verb=name)


def run(args: argparse.Namespace) -> int:
    """Do what the verb says. Returns 1 when HyperPod refuses a node, or what was waited for does not come."""
    environment, account = open_target(args)
    cluster = environment.cluster.name
    existing = cluster_nodes(account, cluster)
    if args.verb == "health-check":
        return start(environment, account, existing, args)
    nodes = chosen(existing, args.nodes)
    if args.verb in ("quarantine", "release"):
        return _take_out_or_back(args, environment, account, nodes)
    action: Action = "reboot" if args.verb == "reboot" else "replace"
    _refuse(environment, action, nodes, account)
    kubectl = way(args.project, environment, account)
    observers = [Observer(account, cluster, node, kubectl) for node in nodes]
    before = [observer.observe() for observer in observers]
    write_note(f"{args.verb} {', '.join(node.id for node in nodes)} of {environment.name} → {account}")
    for warning in _warnings(action, nodes, existing, before):
        write_note(f"  {warning}")
    if not args.yes:
        confirm(environment.name, f"{args.verb} {len(nodes)} of its nodes")
    started = time.time()
    failed = _call(account, cluster, action, nodes)
    done = [node.id for node in nodes if node.id not in failed]
    results: dict[str, Any] = {"action": action, "accepted": done, "failed": failed}
    if args.wait and done:
        watched = [
            (observer, Timeline(attempt, observer.node.id, action, started))
            for observer, attempt in zip(observers, before, strict=True)
            if observer.node.id in done
        ]
        events = Events(account, cluster, started)
        poll = SANDBOX_POLL_SECONDS if account.endpoint else POLL_SECONDS
        follow(watched, events, args.wait, lambda text: write_note(text), poll=poll)
        results["seconds"] = {observer.node.id: _whole_after(timeline, action) for observer, timeline in watched}
    write_answer(args.json, results, _lines(results))
    return 1 if failed or None in results.get("seconds", {}).values() else 0


def _reason(text: str) -> str:
    """A reason as Kubernetes and Slurm both keep it: one line."""
    if not text.strip() or not text.isprintable():
        raise argparse.ArgumentTypeError("say why, in one line")
    return text.strip()


def _take_out_or_back(
    args: argparse.Namespace, environment: Environment, account: Account, nodes: Sequence[Node]
) -> int:
    """Quarantine or release nodes, and say what that means."""
    ids = ", ".join(node.id for node in nodes)
    if args.verb == "release":
        release(environment, account, args.project, nodes)
        write_answer(
            args.json, {"action": "release", "nodes": [node.id for node in nodes]}, [f"{ids} takes work again"]
        )
        return 0
    for node in nodes:
        _refuse_controller(environment, node, "runs no jobs", "quarantine compute nodes")
    done = quarantine(environment, account, args.project, nodes, args.reason)
    again = f"`podwright node release {environment.name} {' '.join(node.id for node in nodes)}` gives it work again"
    lines = [f"{ids} takes no new work; what runs there continues", again]
    write_answer(args.json, {"action": "quarantine", "nodes": [asdict(item) for item in done]}, lines)
    return 0


def _refuse_controller(environment: Environment, node: Node, what: str, hint: str) -> None:
    """Raise CommandError for Slurm's controller."""
    group = environment.groups.get(node.group)
    slurm = group.slurm if isinstance(group, InstanceGroup) else None
    if slurm and slurm.node_type == "controller":
        raise CommandError(f"{node.id} is Slurm's controller, which {what}", hint)


def _refuse(environment: Environment, action: Action, nodes: Sequence[Node], account: Account) -> None:
    """Raise CommandError for what HyperPod would refuse."""
    if action != "replace":
        return
    name = environment.cluster.name
    status = existing_cluster(account, name).status
    if status != "InService":
        raise CommandError(f"cluster {name} is {status}", "HyperPod replaces nodes once it is InService")
    for node in nodes:
        _refuse_controller(environment, node, "HyperPod does not replace", "reboot it instead")


def _warnings(
    action: Action, nodes: Sequence[Node], existing: Sequence[Node], before: Sequence[Snapshot]
) -> Iterator[str]:
    """Yield the consequences that the user should know before confirming."""
    for node, attempt in zip(nodes, before, strict=True):
        for job in sorted(attempt.jobs):
            yield f"{node.id}: {job} runs on it"
    for group in sorted({node.group for node in nodes}):
        count, total = sum(node.group == group for node in nodes), sum(node.group == group for node in existing)
        if count > 1 or total == 1:
            yield f"{group} loses {count} of {total} nodes for a while"
    if action == "replace":
        yield "everything on the disks of a replaced node is lost; file systems stay"
        if old := [node.id for node in nodes if not node.updated]:
            yield (
                f"software never updated: {', '.join(old)}; where HyperPod refuses for that, "
                "`aws sagemaker update-cluster-software` comes first"
            )


def _call(account: Account, cluster: str, action: Action, nodes: Sequence[Node]) -> dict[str, str]:
    """Ask HyperPod, 25 nodes at a time. Returns why it refuses the nodes that it refuses."""
    failed: dict[str, str] = {}
    for first in range(0, len(nodes), _AT_ONCE):
        ids = [node.id for node in nodes[first : first + _AT_ONCE]]
        answer = change(account, "sagemaker", f"batch_{action}_cluster_nodes", ClusterName=cluster, NodeIds=ids)
        for error in answer.get("Failed", ()):
            hint = _ERRORS.get(error["ErrorCode"], "try again")
            failed[error["NodeId"]] = f"{error['ErrorCode']}: {error['Message']} ({hint})"
    return failed


def _whole_after(timeline: Timeline, action: Action) -> float | None:
    """Seconds until the node's group was whole again; None when it was not in time."""
    return timeline.marks["back"] - timeline.begun if timeline.action == action and "back" in timeline.marks else None


def _lines(result: dict[str, Any]) -> Iterator[str]:
    words = {"reboot": "is rebooted", "replace": "is replaced"}
    for id in result["accepted"]:
        seconds = result.get("seconds", {}).get(id)
        took = f"; its group was whole again after {shown(seconds)}" if seconds is not None else ""
        yield f"{id} {words[result['action']]}{took}"
    for id, reason in result["failed"].items():
        yield f"{id}: {reason}"
