"""Taking nodes out of work without replacing them, and giving them back.

On EKS a taint keeps new pods away and a label shows it; on Slurm the node is drained. What runs continues.
"""

import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ...planning.node.quarantine import MARK, MARKED, annotations
from ..aws.account import Account
from ..aws.calls import get
from ..aws.clusters import Node
from ..aws.quarantines import Quarantine, forget, quarantines, remember
from ..aws.session import NotConnected
from ..gates.slurm import Slurm
from ..jobs.slurm_jobs import Question, is_slurm
from ..kubernetes.in_vpc import kubectl_of
from ..kubernetes.kubectl import Kubectl, Refused
from .members import slurm_names

# What `sinfo -R` shows first.
_SLURM_REASON: Final = "podwright quarantine"


def quarantine(
    environment: Environment, account: Account, project: Path, nodes: Sequence[Node], reason: str
) -> list[Quarantine]:
    """Take nodes out of work; what runs on them continues. Repeated, it changes the reason.

    Raises:
        CommandError: Kubernetes or Slurm does not take it.
    """
    by = get(account, "sts", "get_caller_identity")["Arn"]
    since = datetime.now(UTC).isoformat(timespec="seconds")
    if is_slurm(environment):
        text = shlex.quote(f"{_SLURM_REASON}: {reason} ({by})")
        _on_slurm(environment, account, nodes, f"state=drain reason={text}")
    else:
        _on_kubernetes(
            environment, account, project, nodes, f"{MARK}={MARKED}:NoSchedule", MARKED, annotations(reason, by, since)
        )
    entries = [Quarantine(node.id, reason, by, since) for node in nodes]
    remember(environment, account, entries)
    return entries


def release(environment: Environment, account: Account, project: Path, nodes: Sequence[Node]) -> None:
    """Give nodes work again. One that is in no quarantine stays as it is.

    Raises:
        CommandError: Kubernetes or Slurm does not take it.
    """
    if is_slurm(environment):
        # If another user or HyperPod has drained a node, they resume it.
        known = quarantines(environment, account)
        _on_slurm(environment, account, [node for node in nodes if node.id in known], "state=resume")
    else:
        _on_kubernetes(environment, account, project, nodes, f"{MARK}-", None, dict.fromkeys(annotations("", "", "")))
    forget(environment, account, [node.id for node in nodes])


def _on_kubernetes(
    environment: Environment,
    account: Account,
    project: Path,
    nodes: Sequence[Node],
    taint: str,
    label: str | None,
    notes: Mapping[str, str | None],
) -> None:
    """Set or, where a value is None, remove annotations, label and taint, in this order: the taint is what counts."""
    kubectl, names = kubectl_of(project, environment, account), [node.kubernetes_name for node in nodes]
    try:
        kubectl.run("annotate", "--overwrite", "nodes", *names, *_pairs(notes))
        kubectl.run("label", "--overwrite", "nodes", *names, *_pairs({MARK: label}))
        # One by one: of several nodes, kubectl leaves those after one without the taint as they are.
        for name in names:
            _taint(kubectl, name, taint)
    except Refused as refused:
        raise CommandError(f"Kubernetes does not take it: {refused}", "the same command does what is left") from None


def _taint(kubectl: Kubectl, name: str, taint: str) -> None:
    """Set a taint or, with a dash at its end, remove it; one that is not there is as good as removed."""
    try:
        kubectl.run("taint", "--overwrite", "nodes", name, taint)
    except Refused as refused:
        if not (taint.endswith("-") and "taint" in str(refused) and "not found" in str(refused)):
            raise


def _pairs(values: Mapping[str, str | None]) -> list[str]:
    return [f"{key}-" if value is None else f"{key}={value}" for key, value in values.items()]


def _on_slurm(environment: Environment, account: Account, nodes: Sequence[Node], change: str) -> None:
    names = ",".join(slurm_names(environment, account, nodes).values())
    if not names:
        return
    try:
        Slurm(Question(account, environment)).run(f"scontrol update nodename={names} {change}")
    except NotConnected:
        # The sandbox's nodes run no Slurm where Debian's is not installed; there is nothing to be drained.
        if not account.endpoint:
            raise
