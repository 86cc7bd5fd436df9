"""Inject a fault into a node, if the environment allows it, and measure the recovery.

`fault` injects the fault, follows HyperPod's label, the taint, the replacement or reboot and the jobs, and compares
each duration with the `targets` of the environment. On EKS a short-lived pod, a HyperPod label or a pod deletion makes
the fault. On Slurm you run the printed command. `kinds` lists the faults, `history` the results of earlier drills.
"""

import argparse
import time
from pathlib import Path

from ...config.catalog.drills import DrillKind, drill_kinds
from ...config.loading.artifacts import read_artifacts
from ...config.settings.environment import Environment
from ...config.settings.observability import Targets
from ...planning.helm.mirrors import mirror_of
from ..arguments import account_for, add_name, add_project, add_sandbox, as_time, load
from ..aws.account import Account
from ..aws.clusters import Node, node_details, nodes
from ..kubernetes.kubectl import required_way
from ..nodes.follow import POLL_SECONDS, SANDBOX_POLL_SECONDS, Events, follow
from ..nodes.members import chosen, slurm_name
from ..nodes.snapshot import Observer
from ..nodes.timeline import Timeline
from ..output.confirm import confirm
from ..output.console import write_answer, write_note
from ..output.tables import new_table
from .guard import check, kind_for, warnings
from .inject import image_of, inject
from .record import keep, kept, lines, record, table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright drill`."""
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    fault = verbs.add_parser("fault", help="inject a fault into a node, and measure the recovery")
    add_name(fault)
    fault.add_argument("--node", required=True, metavar="NODE", help="instance id, or name of the Kubernetes node")
    fault.add_argument("--fault", required=True, metavar="KIND", help=f"the fault: {', '.join(drill_kinds())}")
    fault.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    fault.add_argument(
        "--wait",
        type=as_time,
        default=5400.0,
        metavar="TIME",
        help="follow the node, at most for this time (default: 90m)",
    )
    fault.set_defaults(verb=_fault)
    kinds = verbs.add_parser("kinds", help="list the faults")
    kinds.set_defaults(verb=_kinds)
    history = verbs.add_parser("history", help="print the results of earlier drills")
    add_name(history)
    history.set_defaults(verb=_history)
    for verb in (fault, kinds, history):
        add_sandbox(verb)
        verb.add_argument("--json", action="store_true", help="print the result as JSON")
        add_project(verb)


def run(args: argparse.Namespace) -> int:
    """Run the verb."""
    return args.verb(args)


def _kinds(args: argparse.Namespace) -> int:
    """List the faults."""
    kinds = drill_kinds().values()
    document = [{"kind": kind.name, "orchestrator": kind.orchestrator, "what": kind.what} for kind in kinds]
    rows = ((kind.name, kind.orchestrator, kind.action, kind.what) for kind in kinds)
    write_answer(args.json, document, [new_table("", ("kind", "on", "expected", "what happens"), rows)])
    return 0


def _history(args: argparse.Namespace) -> int:
    """Print earlier drills."""
    name = load(args).environment.name
    drills = kept(args.project, name)
    write_answer(args.json, drills, table(drills) if drills else [f"No drill of {name} is kept in this project."])
    return 0


def _fault(args: argparse.Namespace) -> int:
    """Inject a fault. Returns 1 if HyperPod's action differs from the expected one, or a target is missed."""
    environment = load(args).environment
    kind = kind_for(environment, args.fault)
    account = account_for(args, environment)
    cluster = environment.cluster.name
    existing = nodes(account, cluster)
    (node,) = chosen(existing, [args.node])
    group = [member for member in existing if member.group == node.group]
    check(environment, kind, node, group)
    kubectl = required_way(args.project, environment, account) if kind.orchestrator == "eks" else None
    observer = Observer(account, cluster, node, kubectl)
    before = observer.observe()
    write_note(f"{kind.name} on {node.id} of {environment.name} → {account}")
    for warning in warnings(kind, node, group, before):
        write_note(f"  {warning}")
    if not args.yes:
        confirm(node.id, "break it")
    if kubectl is None:
        started = _by_hand(kind, node, node_details(account, cluster, node.id))
    else:
        started = inject(kind, node, before, kubectl, _image(environment, account, args.project))
    targets = environment.observability.targets if environment.observability else Targets()
    timeline = Timeline(before, node.id, kind.action, started)
    events, poll = Events(account, cluster, started), SANDBOX_POLL_SECONDS if account.endpoint else POLL_SECONDS
    follow([(observer, timeline)], events, args.wait, lambda text: write_note(text), poll=poll)
    result = record(environment.name, kind, node, timeline, targets, simulated=account.endpoint is not None)
    file = keep(args.project, result)
    write_answer(args.json, result, [*lines(result), f"Kept in {file.relative_to(args.project)}"])
    return 0 if result["ok"] else 1


def _image(environment: Environment, account: Account, project: Path) -> str:
    """Return the pod's image, or the mirror's copy of it."""
    return image_of({} if account.endpoint else mirror_of(environment, read_artifacts(project)))


def _by_hand(kind: DrillKind, node: Node, details: dict[str, str]) -> float:
    """Print the command for the user to run on Slurm's controller, which injects the fault. Returns the time."""
    name = slurm_name(node.id, details)
    write_note("Run this on the controller (`podwright connect` opens a shell), then follow here:")
    write_note(f'    sudo scontrol update node={name} state=fail reason="{kind.text}"')
    return time.time()
