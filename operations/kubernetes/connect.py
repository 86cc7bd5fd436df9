"""Connect to the Kubernetes API of an environment, or to a login node of its Slurm cluster.

On EKS the command writes a kubeconfig to .podwright/kubeconfig/ENV, and opens a tunnel to a private API. It does not
change your own kubeconfig. It connects directly if the network allows it, for example by VPN, and otherwise through a
node by AWS Systems Manager. Without a node or session-manager-plugin, use --run to run a command inside the VPC.

On Slurm the command opens a shell on a login node, or on the controller if there is no login node.
"""

import argparse
import json
import shutil
import socket
import sys
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ..arguments import add_environment, open_target
from ..aws.account import Account
from ..aws.deployed import eks_cluster
from ..aws.runner import run_in_vpc
from ..aws.session import hand_over, nodes, shell, tunnel
from ..output.console import write_line, write_text
from ..programs.helm import tool

_REACH_SECONDS: Final = 3.0
_API_PORT: Final = 443


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `podwright connect`."""
    add_environment(parser)
    parser.add_argument("--port", metavar="PORT", type=int, default=8443, help="local port of a tunnel (default: 8443)")
    parser.add_argument("--run", dest="command", metavar="COMMAND", help="run this bash command inside the VPC instead")


def run(args: argparse.Namespace) -> int:
    """Write the kubeconfig, say how to use it, and hold the tunnel open if there is one."""
    environment, account = open_target(args)
    if environment.cluster.orchestrator == "slurm":
        return _login(environment, account, args.command)
    if args.command:
        if account.endpoint:
            raise CommandError("the sandbox runs no builds", "leave --run away: its Kubernetes API is within reach")
        return run_in_vpc(account, environment, args.command, write_line)
    cluster = eks_cluster(account, environment)
    endpoint = urlsplit(cluster["endpoint"])
    host, port = endpoint.hostname or "", endpoint.port or _API_PORT
    if reachable(host, port):
        file = write_kubeconfig(args.project, environment, account, cluster, cluster["endpoint"])
        _say(file)
        return 0
    system = nodes(account, environment.cluster.name)
    if not system:
        raise CommandError(
            f"{host} cannot be reached from here, and there is no running node to go through",
            f"`podwright connect {environment.name} --run 'kubectl get nodes'` works inside the VPC",
        )
    # The same node for the same cluster, so that a second tunnel goes the same way.
    command = tunnel(account, min(system, key=lambda node: (node.group, node.instance)), host, port, args.port)
    # Before the tunnel: once the plugin has the terminal nothing of ours runs any more.
    file = write_kubeconfig(args.project, environment, account, cluster, f"https://127.0.0.1:{args.port}")
    _say(file)
    write_line("The tunnel stays open until you press Ctrl-C.")
    return hand_over(command)


def _login(environment: Environment, account: Account, command: str | None) -> int:
    """Become a shell on the node where people use Slurm."""
    if command or account.endpoint:
        what = "--run needs the runner of an EKS cluster" if command else "the nodes of the sandbox are simulated"
        raise CommandError(f"{what}; {environment.name} is a Slurm cluster", "connect without --run to one in AWS")
    existing = nodes(account, environment.cluster.name)
    # The login node is the one for people; the controller stands in where there is none.
    for node_type in ("login", "controller"):
        groups = [
            name
            for name, group in environment.instance_groups.items()
            if group.slurm and group.slurm.node_type == node_type
        ]
        if matches := [node for node in existing if node.group in groups]:
            return hand_over(shell(account, min(matches, key=lambda node: node.instance)))
    raise CommandError(
        f"no login node or controller of {environment.name} is running", "`podwright status` shows its nodes"
    )


def reachable(host: str, port: int) -> bool:
    """Whether a connection to the port can be opened from here."""
    try:
        with socket.create_connection((host, port), timeout=_REACH_SECONDS):
            return True
    except OSError:
        return False


def write_kubeconfig(
    root: Path, environment: Environment, account: Account, cluster: dict[str, Any], server: str
) -> Path:
    """A kubeconfig for the cluster at `server`, readable by its owner alone. It holds no secret: tokens are made anew.

    Through a tunnel the certificate is still checked against the API's own name.
    """
    name = environment.name
    # -I: the plugin runs in whatever folder kubectl is called from, and takes no module from there.
    program = [
        "-I",
        "-m",
        "podwright.operations.kubernetes.token",
        "--cluster",
        cluster["name"],
        "--region",
        account.region,
    ]
    # The sandbox's credentials open nothing else; those of AWS stay where they are.
    retained = (
        name for name in account.variables if name.startswith("AWS_") and (account.endpoint or name == "AWS_PROFILE")
    )
    variables = [{"name": name, "value": account.variables[name]} for name in sorted(retained)]
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [
            {
                "name": name,
                "cluster": {
                    "server": server,
                    # Through a tunnel the server is 127.0.0.1, and the certificate is for the API's own name.
                    "tls-server-name": urlsplit(cluster["endpoint"]).hostname,
                    "certificate-authority-data": cluster["certificateAuthority"]["data"],
                },
            }
        ],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "users": [
            {
                "name": name,
                "user": {
                    "exec": {
                        "apiVersion": "client.authentication.k8s.io/v1",
                        # kubectl may run in a script, where a question would hang.
                        "interactiveMode": "Never",
                        "command": sys.executable,
                        "args": program,
                        "env": variables,
                    }
                },
            }
        ],
    }
    file = root / ".podwright" / "kubeconfig" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    # Made before it is written, so that it is never readable by others.
    file.touch(mode=0o600)
    file.chmod(0o600)
    # JSON is YAML, and kubectl reads both.
    file.write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    return file


def _say(file: Path) -> None:
    write_text(f"export KUBECONFIG={file}")
    kubectl = "kubectl" if shutil.which("kubectl") else tool("kubectl")
    write_text(f"{kubectl} get nodes")
