"""`podwright upgrade ENV`: what is behind, in the order in which to renew it. Nothing is changed."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...config.settings.environment import Environment
from ..arguments import account_for, load
from ..aws.clusters import existing_cluster
from ..kubernetes.kubectl import way
from ..output.console import write_answer, write_note
from ..output.tables import Block, new_table
from .eks import warn
from .observed import behind, kubernetes_nodes
from .software import Software, in_order, software
from .steps import steps_of


def run(args: argparse.Namespace) -> int:
    """Print the plan. Returns 0 where nothing is behind, else 1."""
    loaded = load(args)
    environment = loaded.environment
    account = account_for(args, environment)
    write_note(f"{environment.name} → {account}")
    warn(loaded)
    cluster = existing_cluster(account, environment.cluster.name)
    groups = software(cluster)
    kubectl = way(args.project, environment, account)
    server, kubelets = behind(account, cluster, kubernetes_nodes(kubectl))
    older = {name: f"{name} with kubelet {kubelet} beside {server}" for name, kubelet in kubelets.items()}
    steps = list(steps_of(environment, account, kubectl, groups, older, args.project))
    late = [step for step in steps if step["behind"]]
    groups_shown = [
        {"group": name, "release": now.current, "state": now.state, "update": now.update}
        for name, now in groups.items()
    ]
    document = {"environment": environment.name, "steps": steps, "groups": groups_shown, "ok": not late}
    write_answer(args.json, document, _lines(environment, steps, groups))
    return 1 if late else 0


def _lines(
    environment: Environment, steps: Sequence[Mapping[str, Any]], groups: Mapping[str, Software]
) -> Iterator[Block]:
    for number, step in enumerate(steps, 1):
        yield f"{number}. {step['what']}: {step['state']}"
        if step["behind"] and step["command"]:
            yield f"     {step['command']}"
    rows = [
        (now.group, str(now.nodes), now.current or "–", now.state or "–", now.update or "–")
        for now in map(groups.__getitem__, in_order(environment, list(groups)))
    ]
    yield from ("", new_table("", ("group", "nodes", "release", "state", "last update"), rows, right=("nodes",)))
