"""`podwright upgrade ENV eks`: whether the control plane can go to another Kubernetes version, and writing it down.

Nothing in the account is changed. The order is control plane, add-ons, nodes: the deployment of a new `version` does
the first two, `podwright upgrade ENV nodes` the third. EKS goes one minor version at a time.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...config.errors import CommandError
from ...config.loading.load import LoadedEnvironment
from ...config.loading.project import Project
from ...config.loading.source import Source
from ...config.settings.environment import Environment
from ...planning.delivery.kubernetes_upgrades import ROLLBACK_DAYS
from ..aws.account import account_of
from ..aws.deployed import eks_cluster_name
from ..capacity.plan_file import NotWritten, lines, write_values
from ..cdk.deployment import load
from ..kubernetes.kubectl import way
from ..output.columns import columns
from ..output.console import write_answer, write_note
from .readiness import Readiness, read_readiness


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright upgrade ENV eks`."""
    parser.add_argument("--to", metavar="VERSION", help="Kubernetes version (default: the next minor one)")
    parser.add_argument("--write", action="store_true", help="write version, and add-ons that need it, into the file")


def run(args: argparse.Namespace) -> int:
    """Returns 1 where something stops the upgrade; with --write the file is left alone then."""
    loaded = load(args)
    environment = loaded.environment
    if environment.cluster.orchestrator != "eks":
        raise CommandError(f"{environment.name} has no EKS cluster: its orchestrator is Slurm", code=2)
    account = account_of(environment, args.project, args.sandbox)
    name = eks_cluster_name(account, environment)
    kubectl = way(args.project, environment, account)
    readiness = read_readiness(environment, account, name, args.to, kubectl, args.project)
    written = args.write and readiness.is_ready and readiness.wanted != environment.cluster.eks.version
    if written:
        write(Project.at(args.project).file(args.environment), loaded.source, readiness)
    write_answer(
        args.json,
        document(readiness) | {"environment": environment.name, "written": written},
        _lines(environment, readiness, written, sees=kubectl is not None),
    )
    return 0 if readiness.is_ready else 1


def write(file: Path, source: Source, readiness: Readiness) -> None:
    """Write the version into an environment file, and the add-ons whose version would not fit. Comments stay.

    Raises:
        CommandError: the file cannot take it; it says what to write by hand.
    """
    addons = {addon.name: addon.offered[0] for addon in readiness.addons if addon.offered and not addon.fits}
    settings: dict[str, Any] = {"version": readiness.wanted}
    specified = source.data.get("cluster") or {}
    try:
        if not specified.get("eks"):
            write_values(file, ("cluster",), {"eks": settings | ({"addons": addons} if addons else {})})
            return
        if addons and specified["eks"].get("addons"):
            write_values(file, ("cluster", "eks", "addons"), addons)
        elif addons:
            settings["addons"] = addons
        write_values(file, ("cluster", "eks"), settings)
    except NotWritten as reason:
        by_hand = lines(settings, 6)
        raise CommandError(
            f"nothing was written: {reason}", f"write under `cluster: {{eks: …}}` by hand:\n{by_hand}"
        ) from None


def document(readiness: Readiness) -> dict[str, Any]:
    """What was found, for machines."""
    return {
        "cluster": readiness.cluster,
        "deployed": readiness.deployed,
        "wanted": readiness.wanted,
        "ready": readiness.is_ready,
        "support": {version: readiness.support.get(version) for version in (readiness.deployed, readiness.wanted)},
        "addons": [
            {"name": addon.name, "now": addon.now, "then": addon.then, "fits": addon.fits} for addon in readiness.addons
        ],
        "kubelets": readiness.kubelets,
        "insights": [
            {"name": item["name"], "status": item["insightStatus"]["status"], "reason": item["insightStatus"]["reason"]}
            for item in readiness.insights
        ],
        "obstacles": [{"level": item.level, "what": item.what, "hint": item.hint} for item in readiness.obstacles],
    }


def _lines(environment: Environment, readiness: Readiness, written: bool, *, sees: bool) -> Iterator[str]:
    """The readiness for people; `written` says that the file was changed now, `sees` that Kubernetes could be asked."""
    until = readiness.support.get(readiness.deployed)
    yield f"{readiness.cluster}: Kubernetes {readiness.deployed}" + (
        f", standard support until {until}" if until else ""
    )
    if readiness.wanted == readiness.deployed:
        yield f"{environment.name} has that version already"
        return
    later = readiness.support.get(readiness.wanted)
    yield f"to {readiness.wanted}" + (f", standard support until {later}" if later else "")
    if readiness.addons:
        rows = [("add-on", "now", "then", "")]
        rows += [
            (addon.name, addon.now or "–", addon.then or "–", "" if addon.fits else f"not for {readiness.wanted}")
            for addon in readiness.addons
        ]
        yield from ("", *columns(rows), "")
    if readiness.kubelets:
        yield "nodes: " + ", ".join(f"{count} with kubelet {version}" for version, count in readiness.kubelets.items())
    elif not sees:
        yield "nodes: not seen from here (`podwright connect`); EKS's own insight on their kubelets is below"
    for item in readiness.insights:
        yield f"EKS insight: {item['name']}: {item['insightStatus']['status']}"
    for item in readiness.obstacles:
        yield f"{item.level}: {item.what}"
        yield f"    → {item.hint}"
    if not readiness.is_ready:
        return
    if not written and readiness.wanted != environment.cluster.eks.version:
        command = f"podwright upgrade {environment.name} eks --to {readiness.wanted} --write"
        yield f"ready: `{command}` writes it into the file"
        return
    yield f"the file says {readiness.wanted}; next, in this order:"
    versions = f"{readiness.deployed} → {readiness.wanted}"
    yield f"    podwright diff {environment.name}            # control plane and add-ons alone"
    yield f"    podwright deploy {environment.name}          # {versions}, then the add-ons"
    yield f"    podwright upgrade {environment.name} nodes   # images with its kubelet, batch by batch"
    yield (
        f"Wait with the nodes as long as you may want to go back: EKS takes the control plane back to "
        f"{readiness.deployed} "
        f"for {ROLLBACK_DAYS} days, while no node is newer."
    )


def warn(loaded: LoadedEnvironment) -> None:
    """Say on stderr that the file leaves the version to podwright, whose default moves with its major versions."""
    cluster, eks = loaded.source.data.get("cluster") or {}, loaded.environment.cluster.eks
    if loaded.environment.cluster.orchestrator == "eks" and "version" not in (cluster.get("eks") or {}):
        write_note(f"  the file names no cluster.eks.version; podwright's default is {eks.version}")
