"""Check whether the control plane can change to another Kubernetes version, and write that version into the file.

The command changes nothing in the account. The order is control plane, add-ons, nodes: a deployment of the new
`version` upgrades the first two, and `podwright upgrade ENV nodes` the third. EKS upgrades one minor version at a time.
"""

import argparse
from collections.abc import Iterator

from ...config.errors import CommandError
from ...config.loading.load import LoadedEnvironment
from ...config.loading.project import Project
from ...config.settings.environment import Environment
from ...planning.delivery.kubernetes_upgrades import ROLLBACK_DAYS
from ..arguments import account_for, load
from ..aws.deployed import eks_cluster_name
from ..kubernetes.kubectl import way
from ..output.console import write_answer, write_note
from ..output.tables import Block, new_table
from .readiness import Readiness, read_readiness
from .version_file import write_version


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright upgrade ENV eks`."""
    parser.add_argument("--to", metavar="VERSION", help="Kubernetes version (default: the next minor one)")
    parser.add_argument(
        "--write", action="store_true", help="write the version, and add-on versions that need it, into the file"
    )


def run(args: argparse.Namespace) -> int:
    """Returns 1 where something stops the upgrade; with --write the file is left alone then."""
    loaded = load(args)
    environment = loaded.environment
    if environment.cluster.orchestrator != "eks":
        raise CommandError(f"{environment.name} has no EKS cluster: its orchestrator is Slurm", code=2)
    account = account_for(args, environment)
    name = eks_cluster_name(account, environment)
    kubectl = way(args.project, environment, account)
    readiness = read_readiness(environment, account, name, args.to, kubectl, args.project)
    written = args.write and readiness.is_ready and readiness.wanted != environment.cluster.eks.version
    if written:
        write_version(Project.at(args.project).file(args.environment), loaded.source, readiness)
    write_answer(
        args.json,
        readiness.to_json() | {"environment": environment.name, "written": written},
        _lines(environment, readiness, written, sees=kubectl is not None),
    )
    return 0 if readiness.is_ready else 1


def _lines(environment: Environment, readiness: Readiness, written: bool, *, sees: bool) -> Iterator[Block]:
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
        rows = [
            (addon.name, addon.now or "–", addon.then or "–", "" if addon.fits else f"not for {readiness.wanted}")
            for addon in readiness.addons
        ]
        yield from ("", new_table("", ("add-on", "now", "then", ""), rows), "")
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
        f"Wait with the nodes while you may want to roll back: EKS rolls the control plane back to "
        f"{readiness.deployed} "
        f"for {ROLLBACK_DAYS} days, while no node is newer."
    )


def warn(loaded: LoadedEnvironment) -> None:
    """Say on stderr that the file leaves the version to podwright, whose default moves with its major versions."""
    cluster, eks = loaded.source.data.get("cluster") or {}, loaded.environment.cluster.eks
    if loaded.environment.cluster.orchestrator == "eks" and "version" not in (cluster.get("eks") or {}):
        write_note(f"  the file names no cluster.eks.version; podwright's default is {eks.version}")
