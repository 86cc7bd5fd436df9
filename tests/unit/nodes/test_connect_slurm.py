"""Getting to a Slurm cluster: `connect` opens a shell where people use it, and what needs Kubernetes says so."""

import argparse
from pathlib import Path
from typing import Any

import pytest

from podwright.config.errors import CommandError
from podwright.operations.artifacts import images
from podwright.operations.aws.session import ClusterNode
from podwright.operations.kubernetes import connect

ROOT = Path(__file__).parents[3]
ARN = "arn:aws:sagemaker:us-west-2:111122223333:cluster/abcdefghijkl"


class Account:
    """An account; nothing here asks it."""

    endpoint: str | None = None


def arguments(**more: Any) -> argparse.Namespace:
    provided = {"project": ROOT, "environment": "slurm-classic", "sandbox": False, "port": 8443, "command": None}
    return argparse.Namespace(**{**provided, **more})


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Account:
    made = Account()
    monkeypatch.setattr("podwright.operations.arguments.account_of", lambda *_, **__: made)
    monkeypatch.setattr(connect, "shell", lambda _, node: ["plugin", node.target])
    monkeypatch.setattr(connect, "hand_over", lambda command: command)
    return made


def running(monkeypatch: pytest.MonkeyPatch, **nodes: str) -> None:
    cluster_nodes = [ClusterNode(ARN, group, instance) for group, instance in nodes.items()]
    monkeypatch.setattr(connect, "nodes", lambda *_: cluster_nodes)


def test_a_shell_opens_on_a_login_node(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    running(monkeypatch, h200="i-0", controller="i-1", login="i-2")
    assert connect.run(arguments()) == ["plugin", "sagemaker-cluster:abcdefghijkl_login-i-2"]


def test_the_controller_serves_where_there_is_no_login_node(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    running(monkeypatch, h200="i-0", controller="i-1")
    assert connect.run(arguments()) == ["plugin", "sagemaker-cluster:abcdefghijkl_controller-i-1"]


def test_compute_nodes_are_no_way_in(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    running(monkeypatch, h200="i-0")
    with pytest.raises(CommandError, match="no login node or controller of slurm-classic is running"):
        connect.run(arguments())


def test_what_needs_kubernetes_or_real_nodes_says_so(account: Account) -> None:
    with pytest.raises(CommandError, match="--run needs the runner of an EKS cluster"):
        connect.run(arguments(command="kubectl get nodes"))
    account.endpoint = "http://localhost:1"
    with pytest.raises(CommandError, match="simulated"):
        connect.run(arguments())
    with pytest.raises(CommandError, match="slurm-classic has no EKS cluster and runs no pods"):
        images.run(arguments(action="list", json=False))
