"""What is behind in an environment, part by part, in the order in which to renew it."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ...config.settings.environment import Environment
from ..aws.account import Account
from ..aws.deployed import eks_cluster_name
from ..kubernetes.kubectl import Kubectl
from ..output.console import write_note
from .lifecycle import compare
from .readiness import read_readiness
from .software import Software, in_order


def steps_of(
    environment: Environment,
    account: Account,
    kubectl: Kubectl | None,
    groups: Mapping[str, Software],
    kubelets: Mapping[str, str],
    project: Path,
) -> Iterator[dict[str, Any]]:
    """Each part with its state and the command that renews it; empty where renewing nodes renews scripts too."""
    name = environment.name
    if environment.cluster.orchestrator == "eks":
        yield _kubernetes(environment, account, kubectl, project)
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


def _kubernetes(environment: Environment, account: Account, kubectl: Kubectl | None, project: Path) -> dict[str, Any]:
    """The part of the control plane: behind where the file says another version, or standard support ends soon."""
    readiness = read_readiness(environment, account, eks_cluster_name(account, environment), None, kubectl, project)
    desired, step = environment.cluster.eks.version, {"part": "eks", "what": "Kubernetes"}
    if desired != readiness.deployed and environment.cluster.eks.existing is None:
        state = f"{readiness.deployed} is deployed, the file says {desired}"
        command = f"podwright deploy {environment.name}"
        return step | {"state": state, "behind": True, "command": command, "details": readiness.to_json()}
    until = readiness.support.get(readiness.deployed)
    state = readiness.deployed + (f", standard support until {until}" if until else "")
    possible = readiness.wanted in readiness.support
    if possible:
        state += f"; {readiness.wanted} is there" + ("" if readiness.is_ready else ", and something stops it")
    command = f"podwright upgrade {environment.name} eks"
    # A later version is no reason by itself: staying is right until support ends.
    ends = bool(until) and until <= f"{datetime.now(UTC) + timedelta(days=60):%Y-%m-%d}"
    return step | {"state": state, "behind": ends, "command": command, "details": readiness.to_json()}


def _behind(now: Software) -> str:
    return f"{now.group} {now.current or '–'} {now.state or 'behind'}"
