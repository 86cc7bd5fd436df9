"""SSM sessions on HyperPod nodes: a shell, or a tunnel to what a node reaches."""

import json
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from ...config.errors import CommandError
from ..output.moving import settle
from .account import Account
from .calls import change
from .clusters import cluster as find_cluster
from .clusters import nodes as cluster_nodes
from .unseen import code_of

_FORWARD: Final = "AWS-StartPortForwardingSessionToRemoteHost"
_PLUGIN: Final = "session-manager-plugin"
_ONE_COMMAND: Final = "AWS-StartNonInteractiveCommand"


class NotConnected(CommandError):
    """A node takes no session: its agent of Systems Manager does not answer, or it is one of the sandbox's."""


@dataclass(frozen=True, slots=True)
class ClusterNode:
    """A node of a HyperPod cluster."""

    cluster_arn: str
    group: str
    instance: str

    @property
    def target(self) -> str:
        """The node as SSM knows it. Source: SageMaker Developer Guide, access to HyperPod nodes, 2026-11."""
        return f"sagemaker-cluster:{self.cluster_arn.rpartition('/')[2]}_{self.group}-{self.instance}"


def nodes(account: Account, cluster: str) -> list[ClusterNode]:
    """The running nodes of a cluster; none when there is no such cluster."""
    existing = find_cluster(account, cluster)
    if existing is None:
        return []
    listed = cluster_nodes(account, cluster)
    return [ClusterNode(existing.arn, node.group, node.id) for node in listed if node.status == "Running"]


def shell(account: Account, node: ClusterNode) -> list[str]:
    """The command line of a shell on a node."""
    return _command(account, {"Target": node.target})


def tunnel(account: Account, node: ClusterNode, host: str, port: int, local_port: int) -> list[str]:
    """The command line of a tunnel from a local port to what a node reaches."""
    parameters = {"host": [host], "portNumber": [str(port)], "localPortNumber": [str(local_port)]}
    return _command(account, {"Target": node.target, "DocumentName": _FORWARD, "Parameters": parameters})


def one_command(account: Account, node: ClusterNode, command: str) -> list[str]:
    """The command line of a session that runs one shell command on a node and ends with it.

    SSM has no other way onto HyperPod's nodes: its Run Command does not know them.
    """
    return _command(
        account, {"Target": node.target, "DocumentName": _ONE_COMMAND, "Parameters": {"command": [command]}}
    )


def hand_over(command: list[str]) -> NoReturn:
    """Become that command, which from here on has the terminal and its signals."""
    # Not a child process: the plugin reads the terminal and has to get Ctrl-C itself.
    settle()
    os.execv(command[0], command)


def _command(account: Account, request: Mapping[str, Any]) -> list[str]:
    """The plugin's command line, as the AWS CLI calls it. The session is started here. Raises NotConnected."""
    if account.endpoint:
        return [sys.executable, "-P", "-m", f"{__package__}.sandbox_session", json.dumps(_started(account, request))]
    plugin = shutil.which(_PLUGIN)
    if plugin is None:
        raise CommandError(
            f"{_PLUGIN} is not on PATH",
            'install it: AWS Systems Manager User Guide, "Install the Session Manager plugin"',
        )
    # The plugin's arguments by position; it reads the answer of StartSession and the request both.
    return [
        plugin,
        json.dumps(_started(account, request)),
        account.region,
        "StartSession",
        os.environ.get("AWS_PROFILE", ""),
        json.dumps(request),
        account.client("ssm").meta.endpoint_url,
    ]


def _started(account: Account, request: Mapping[str, Any]) -> dict[str, Any]:
    """The answer of StartSession. Raises NotConnected."""
    from botocore.exceptions import ClientError

    try:
        answer = change(account, "ssm", "start_session", **request)
    except ClientError as error:
        if code_of(error) != "TargetNotConnected":
            raise
        hint = "run it against AWS" if account.endpoint else "`podwright status` shows the nodes that run"
        raise NotConnected(error.response["Error"]["Message"], hint) from None
    return {key: value for key, value in answer.items() if key != "ResponseMetadata"}
