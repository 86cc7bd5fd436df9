"""Connect a MultiKueue manager with its workers: the networks, and access to each worker's control plane.

A deployment cannot do this, because no stack may have the token of another cluster. For each worker with a private
endpoint, the command peers the two networks. It gives the manager access to the worker's control plane, and writes the
worker's kubeconfig into a Secret of the manager. It keeps what exists. Then it waits until Kueue reaches the workers.
"""

import argparse
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Final

from ...config.errors import CommandError
from ...config.loading.project import Project
from ...config.settings.environment import Environment
from ...planning.quota.links import Link, links, shared_work, worker_of
from ..arguments import account_for, add_environment, load
from ..aws.deployed import eks_cluster
from ..cdk.progress import Progress
from ..kubernetes.kubectl import NO_SCHEDULER, REAL_KUBERNETES, Kubectl, required_way
from ..output.console import write_answer
from ..output.tables import new_table
from .credentials import remove_secret, state, worker_token, write_secret
from .network_path import Side, make_path, remove_path

_POLL_SECONDS: Final = 1.0
_PATIENCE_SECONDS: Final = 60.0


@dataclass(slots=True)
class Row:
    """What became of one worker."""

    worker: str
    environment: str
    way: str
    secret: str
    connected: bool = False
    says: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright workers`."""
    add_environment(parser)
    parser.add_argument(
        "--worker", metavar="NAME", action="append", default=[], help="only this worker; may be repeated"
    )
    parser.add_argument("--renew", action="store_true", help="create new tokens; the former ones become invalid")
    parser.add_argument("--disconnect", action="store_true", help="delete what this command created")
    parser.add_argument("--json", action="store_true", help="print the result for each worker as JSON")


def run(args: argparse.Namespace) -> int:
    """Connect, or disconnect, the workers of a manager; 1 where Kueue does not reach all of them."""
    manager = load(args).environment
    chosen = list(_chosen(manager, args))
    progress = Progress()
    here = _side(manager, args)
    kubectl = required_way(args.project, manager, here.account)
    if not (kubectl.is_real or args.disconnect):
        raise CommandError(f"no Kueue would hand out work: {NO_SCHEDULER}", REAL_KUBERNETES)
    rows = list[Row]()
    for link, environment in chosen:
        worker = _side(environment, args)
        if args.disconnect:
            remove_secret(kubectl, link.worker.secret)
            remove_path(here, worker, progress.say)
            rows.append(Row(link.name, environment.name, "", link.worker.secret, says="disconnected"))
            continue
        way = make_path(here, worker, progress.say)
        reached, shared = required_way(args.project, environment, worker.account), shared_work(environment)
        assert shared, "a worker shares work"
        write_secret(kubectl, link.worker.secret, worker.cluster, worker_token(reached, shared, renew=args.renew))
        progress.say(link.name, f"the Secret {link.worker.secret} leads to {environment.name}")
        rows.append(Row(link.name, environment.name, way, link.worker.secret))
    if not args.disconnect:
        _wait(kubectl, rows)
    cells = [(row.worker, row.environment, row.way, row.secret, row.says) for row in rows]
    document = {"schema": 1, "manager": manager.name, "workers": [asdict(row) for row in rows]}
    write_answer(args.json, document, [new_table("", ("worker", "environment", "way", "secret", "state"), cells)])
    return 0 if args.disconnect or all(row.connected for row in rows) else 1


def _chosen(manager: Environment, args: argparse.Namespace) -> Iterator[tuple[Link, Environment]]:
    """The workers to connect, with their environments. Raises CommandError for what is none."""
    shared = shared_work(manager)
    if shared is None or shared.role != "manager":
        raise CommandError(
            f"{manager.name} is not a manager of MultiKueue",
            "name one with `governance.kueue.multikueue: {role: manager, …}`; `podwright project` lists them",
            2,
        )
    if unknown := [name for name in args.worker if name not in shared.workers]:
        raise CommandError(f"{manager.name} has no worker {unknown[0]}", f"it has {', '.join(shared.workers)}", 2)
    project = Project.at(args.project)
    environments = {name: project.load(name).environment for name in project.names}
    for link in links({manager.name: manager}):
        if args.worker and link.name not in args.worker:
            continue
        environment = worker_of(link, environments)
        if environment is None:
            raise CommandError(
                f"the file does not say which environment of this project {link.name} is",
                "write `environment: NAME` next to its secret; clusters of other projects are connected by hand: "
                "docs/operator/kueue.md",
                2,
            )
        yield link, environment


def _side(environment: Environment, args: argparse.Namespace) -> Side:
    account = account_for(args, environment)
    return Side(environment, account, eks_cluster(account, environment))


def _wait(kubectl: Kubectl, rows: list[Row]) -> None:
    """Ask Kueue until it reaches all workers, or for a minute."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        for row in rows:
            row.connected, row.says = state(kubectl, row.worker)
        if all(row.connected for row in rows) or time.monotonic() > deadline:
            return
        time.sleep(_POLL_SECONDS)
