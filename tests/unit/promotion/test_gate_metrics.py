"""The gate `metrics`, and what the sandbox's clusters send: exporters that are silent are named."""

import re
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gate_account import Clock, context
from podwright.config.loading.load import load_environment
from podwright.operations.gates import metrics
from podwright.operations.gates.gate import Result
from podwright.operations.programs.prometheus import QueryError
from podwright.sandbox.hyperpod.cluster import Cluster, Node, Timing
from podwright.sandbox.protocol.clock import now
from podwright.sandbox.telemetry.feed import page

SANDBOX = load_environment(Path(__file__).parents[3] / "environments/sandbox.yaml")


def asked(
    monkeypatch: pytest.MonkeyPatch, silent: str = "", *, nodes: int = 2, delivered: bool = True, endpoint: str = ""
) -> Result:
    """The gate against a workspace in which one metric's exporter is silent."""

    def instant(query: str, _: float) -> list[Any]:
        if silent == "everything":
            raise QueryError("there is no Prometheus on this machine to answer with (sandbox)")
        if "count by (instance)" in query:
            return [{"value": [0, str(nodes)]}]
        return [] if silent and silent in query else [{"value": [0, "7"]}]

    rows = [
        {"ResourceType": "AWS::Grafana::Workspace", "PhysicalResourceId": "g-1", "ResourceStatus": "CREATE_COMPLETE"},
        {"ResourceType": "Custom::PodwrightGrafanaContent", "ResourceStatus": "UPDATE_COMPLETE"},
    ]
    node = {"InstanceId": "i-1", "InstanceGroupName": "h200", "InstanceStatus": {"Status": "Running"}}
    pages = {
        "list_stack_resources": [{"StackResourceSummaries": rows if delivered else rows[:1]}],
        "list_cluster_nodes": [{"ClusterNodeSummaries": [node] * 2}],
    }
    client = SimpleNamespace(
        get_paginator=lambda name: SimpleNamespace(paginate=lambda **_: pages[name]),
        describe_workspace=lambda **_: {"workspace": {"status": "ACTIVE"}},
    )
    account = SimpleNamespace(endpoint=endpoint or None, client=lambda _: client)
    server = SimpleNamespace(instant=instant, url="https://x/workspaces/ws-1")
    monkeypatch.setattr(metrics, "workspace", lambda *_: server)
    clock = Clock()
    return metrics.run(context("metrics", account, SANDBOX, 1, clock=clock, sleep=clock.sleep))


def test_everything_that_runs_has_to_send(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (result := asked(monkeypatch)).passed, result
    silent = asked(monkeypatch, "DCGM_FI_DEV_GPU_TEMP")
    assert silent.reason == "not reached in 1 min: metrics of dcgm nothing in 10 min"
    assert "nodes that send metrics 1 of 2" in asked(monkeypatch, nodes=1).reason
    assert "dashboards in Grafana not delivered" in asked(monkeypatch, delivered=False).reason
    assert asked(monkeypatch, "everything", endpoint="http://localhost:1").skipped


def test_clusters_send_to_the_workspace_of_their_collector() -> None:
    node = Node("h200", "ml.p5en.48xlarge", "subnet-1", "us-west-2a", "usw2-az1", "10.0.0.9", 0, 0, 0)
    node.launched = now() - timedelta(minutes=5)
    cluster = Cluster(
        "prod", "arn:cluster", "us-west-2", {"Orchestrator": {"Eks": {"ClusterArn": "arn:eks"}}}, Timing()
    )
    cluster.nodes.append(node)
    eks = SimpleNamespace(addons={"o": {"configurationValues": '{"workspace": "ws-1"}'}})
    faults: dict[str, dict[str, str]] = {"exporters": {}}
    hyperpod: Any = SimpleNamespace(
        clusters={("us-west-2", "prod"): cluster},
        all=lambda _: [cluster],
        eks=SimpleNamespace(by_arn=lambda arn: eks if arn == "arn:eks" else None),
        schedulers=SimpleNamespace(all=lambda *_: []),
        clients=SimpleNamespace(account="123456789012"),
        faults=faults,
    )
    text = page(hyperpod, "ws-1")
    assert re.search(r'node_uname_info\{[^}]*cluster_name="prod"[^}]*\} 1\n', text)
    assert "DCGM_FI_DEV_GPU_TEMP{" in text
    assert text.endswith("# EOF\n")
    faults["exporters"] = {"dcgm": "silent"}
    assert "DCGM_" not in page(hyperpod, "ws-1")
    assert page(hyperpod, "ws-other") == "# EOF\n"
