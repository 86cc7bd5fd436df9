"""Open a shell on a node of a HyperPod cluster, through AWS Systems Manager.

NODE is an instance id (i-0123456789abcdef0) or a Kubernetes node name (hyperpod-i-0123456789abcdef0). Without
--environment the command searches every environment of the account that your credentials open.
"""

import argparse

from ...config.errors import CommandError
from ...config.loading.project import Project
from ...config.settings.environment import Environment
from ..aws.account import Account, account_of, is_sandboxed
from ..aws.session import ClusterNode, hand_over, nodes, shell
from ..output.moving import under_way


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright shell`."""
    parser.add_argument("node", metavar="NODE", help="instance id, or name of the Kubernetes node")
    parser.add_argument("--environment", metavar="ENV", help="environment of the node")


def run(args: argparse.Namespace) -> int:
    """Become the shell."""
    project = Project.at(args.project)
    chosen = [project.load(args.environment)] if args.environment else list(project.load_all())
    instance = args.node.removeprefix("hyperpod-")
    account, node = find([loaded.environment for loaded in chosen], instance, args)
    return hand_over(shell(account, node))


def find(environments: list[Environment], instance: str, args: argparse.Namespace) -> tuple[Account, ClusterNode]:
    """The node with that instance id, and the account that it is in.

    Raises:
        CommandError: no environment has it; with the reason for each that could not be asked.
    """
    reasons: list[str] = []
    for environment in environments:
        if is_sandboxed(environment, sandbox=False):
            reasons.append(f"{environment.name}: its nodes are simulated")
            continue
        try:
            account = account_of(environment, args.project, sandbox=False)
        except CommandError as stop:
            reasons.append(f"{environment.name}: {stop}")
            continue
        under_way(f"looking for it among the nodes of {environment.name}")
        for node in nodes(account, environment.cluster.name):
            if node.instance == instance:
                return account, node
        reasons.append(f"{environment.name}: no running node {instance}")
    raise CommandError(
        f"there is no node {instance} to open:\n" + "\n".join(f"    {reason}" for reason in reasons),
        "`podwright status ENV` lists the nodes",
    )
