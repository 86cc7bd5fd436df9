"""`podwright upgrade ENV`: what is behind, in the order in which to renew it. Nothing is changed."""

import argparse
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from ...config.settings.environment import Environment
from ..aws.account import Account, account_of
from ..aws.clusters import existing_cluster
from ..aws.deployed import eks_cluster_name
from ..cdk.deployment import load
from ..kubernetes.kubectl import Kubectl, way
from ..output.columns import columns
from ..output.console import write_json, write_line, write_note
from .eks import document, warn
from .lifecycle import compare
from .observed import behind, kubernetes_nodes
from .readiness import read_readiness
from .software import Software, in_order, software


def run(args: argparse.Namespace) -> int:
    """Print the plan. Returns 0 where nothing is behind, else 1."""
    loaded = load(args)
    environment = loaded.environment
    account = account_of(environment, args.project, args.sandbox)
    write_note(f"{environment.name} → {account}")
    warn(loaded)
    cluster = existing_cluster(account, environment.cluster.name)
    groups = software(cluster)
    kubectl = way(args.project, environment, account) if environment.cluster.orchestrator == "eks" else None
    server, kubelets = behind(account, cluster, kubernetes_nodes(kubectl))
    older = {name: f"{name} with kubelet {kubelet} beside {server}" for name, kubelet in kubelets.items()}
    steps = list(_steps(args, environment, account, kubectl, groups, older))
    late = [step for step in steps if step["behind"]]
    if args.json:
        groups_shown = [
            {"group": name, "release": now.current, "state": now.state, "update": now.update}
            for name, now in groups.items()
        ]
        write_json({"environment": environment.name, "steps": steps, "groups": groups_shown, "ok": not late})
        return 1 if late else 0
    for number, step in enumerate(steps, 1):
        write_line(f"{number}. {step['what']}: {step['state']}")
        if step["behind"] and step["command"]:
            write_line(f"     {step['command']}")
    rows = [("group", "nodes", "release", "state", "last update")]
    rows += [
        (now.group, str(now.nodes), now.current or "–", now.state or "–", now.update or "–")
        for now in map(groups.__getitem__, in_order(environment, list(groups)))
    ]
    write_line()
    for line in columns(rows, right={1}):
        write_line(line)
    return 1 if late else 0


def _steps(
    args: argparse.Namespace,
    environment: Environment,
    account: Account,
    kubectl: Kubectl | None,
    groups: Mapping[str, Software],
    kubelets: Mapping[str, str],
) -> Iterator[dict[str, Any]]:
    """Each part with its state and the command that renews it; empty where renewing nodes renews scripts too."""
    name = environment.name
    if environment.cluster.orchestrator == "eks":
        yield _kubernetes(args, environment, account, kubectl)
    at_work = [now.group for now in groups.values() if now.is_active]
    late = [group for group in in_order(environment, list(groups)) if groups[group].is_behind or group in kubelets]
    state = ", ".join(_behind(groups[group]) if groups[group].is_behind else kubelets[group] for group in late)
    if at_work:
        state = f"an update of {', '.join(at_work)} is under way"
    yield {
        "part": "nodes",
        "what": "images of nodes",
        "state": state or "up to date, as HyperPod says",
        "behind": bool(late or at_work),
        "command": f"podwright upgrade {name} nodes",
    }
    older = [item for item in compare(account, environment, write_note) if item.is_older]
    covered = bool(older) and {item.group for item in older} <= set(late)
    yield {
        "part": "scripts",
        "what": "lifecycle scripts",
        "state": f"{len(older)} nodes were set up by earlier ones" if older else "all nodes were set up by these",
        "behind": bool(older),
        "command": "" if covered else f"podwright upgrade {name} scripts",
    }


def _kubernetes(
    args: argparse.Namespace, environment: Environment, account: Account, kubectl: Kubectl | None
) -> dict[str, Any]:
    """The part of the control plane: behind where the file says another version, or standard support ends soon."""
    readiness = read_readiness(
        environment, account, eks_cluster_name(account, environment), None, kubectl, args.project
    )
    desired, step = environment.cluster.eks.version, {"part": "eks", "what": "Kubernetes"}
    if desired != readiness.deployed and environment.cluster.eks.existing is None:
        state = f"{readiness.deployed} is deployed, the file says {desired}"
        command = f"podwright deploy {environment.name}"
        return step | {"state": state, "behind": True, "command": command, "details": document(readiness)}
    until = readiness.support.get(readiness.deployed)
    state = readiness.deployed + (f", standard support until {until}" if until else "")
    possible = readiness.wanted in readiness.support
    if possible:
        state += f"; {readiness.wanted} is there" + ("" if readiness.is_ready else ", and something stops it")
    command = f"podwright upgrade {environment.name} eks"
    # A later version is no reason by itself: staying is right until support ends.
    ends = bool(until) and until <= f"{datetime.now(UTC) + timedelta(days=60):%Y-%m-%d}"
    return step | {"state": state, "behind": ends, "command": command, "details": document(readiness)}


def _behind(now: Software) -> str:
    return f"{now.group} {now.current or '–'} {now.state or 'behind'}"
