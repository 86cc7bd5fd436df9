"""`podwright scale` and `podwright node quarantine` as they are typed: more nodes, fewer, and a sick one."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cloudformation_cdk import podwright
from podwright.config.loading.load import load_environment
from podwright.config.settings.environment import Environment
from podwright.operations.aws import sandbox_server as server
from podwright.operations.aws.account import Account, account_of
from podwright.operations.aws.calls import change, pages
from podwright.operations.aws.clusters import Node, existing_cluster
from podwright.operations.aws.clusters import nodes as cluster_nodes
from podwright.operations.aws.quarantines import quarantines
from podwright.operations.kubernetes.kubectl import required_way
from podwright.planning.node.quarantine import MARK, REASON
from sandbox_stacks import turn
from waiting import until

FILE = """\
account: "123456789012"
region: us-west-2
protection: destroy
network: {zones: [usw2-az1, usw2-az2]}
instance_groups:
  system: {instance_type: ml.m5.4xlarge, count: 2}
  # A10G, four of them
  g5:
    instance_type: ml.g5.12xlarge
    count: 4   # as of today
    zone: usw2-az2
observability: {alerts: [oncall@example.com], quarantine: {faults: 2, within_hours: 12}}
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cluster of four nodes that work and two for the system, deployed."""
    folder = tmp_path_factory.mktemp("scale") / "cluster"
    podwright(folder.parent, "init", str(folder))
    (folder / "environments/sandbox.yaml").write_text(FILE)
    server.start(folder, port=0, time_scale=0.25)
    assert run(folder, "deploy")[0] == 0
    yield folder
    server.stop(folder)


def run(project: Path, *arguments: str) -> tuple[int, Any, str]:
    """Exit code, answer and notes of a command."""
    answer = podwright(project, *arguments, "--json", code=None)
    return answer.code, answer.document if answer.output else None, answer.errors


def nodes(project: Path) -> dict[str, str]:
    """The nodes of the group, each with the reason of its quarantine, once all of them run."""
    environment, account = opened(project)
    rows = list[Node]()

    def running() -> bool:
        rows[:] = cluster_nodes(account, "sandbox", "g5")
        return all(node.status == "Running" for node in rows)

    until(running, lambda: rows)
    out = quarantines(environment, account)
    return {node.id: str(out.get(node.id, "")) for node in rows}


def target(project: Path) -> tuple[int, str]:
    """The target of the group, and the line of the file."""
    _, account = opened(project)
    text = (project / "environments/sandbox.yaml").read_text()
    line = next(line.strip() for line in text.splitlines() if "# as of today" in line)
    return existing_cluster(account, "sandbox").group("g5").target, line


def opened(project: Path) -> tuple[Environment, Account]:
    environment = load_environment(project / "environments/sandbox.yaml").environment
    return environment, account_of(environment, project, False)


def kubernetes_node(project: Path, instance: str) -> Any:
    environment, account = opened(project)
    return required_way(project, environment, account).one("node", f"hyperpod-{instance}")


def test_more_nodes_come_after_a_plan_that_changes_nothing(project: Path) -> None:
    code, plan, _ = run(project, "scale", "sandbox", "g5", "6", "--dry-run")
    assert (code, plan["applied"], plan["blocked"]) == (0, False, [])
    assert plan["count"] == {"file": 4, "cluster": 4, "wanted": 6}
    assert "-    count: 4   # as of today\n+    count: 6   # as of today" in plan["diff"]
    assert plan["cost"]["after"]["monthly"] > plan["cost"]["before"]["monthly"]
    [stack] = [stack for stack in plan["changes"]["stacks"] if stack["name"] == "sandbox-cluster"]
    assert [row["effect"] for row in stack["changes"][0]["rows"]] == ["adds_nodes"]
    assert target(project) == (4, "count: 4   # as of today")

    code, applied, _ = run(project, "scale", "sandbox", "g5", "6", "--yes")
    assert (code, applied["applied"], applied["digest"]) == (0, True, plan["digest"])
    assert target(project) == (6, "count: 6   # as of today")
    assert len(nodes(project)) == 6
    assert run(project, "scale", "sandbox", "g5", "6", "--yes")[1]["done"]


def test_exactly_the_named_nodes_go_and_an_interrupted_run_goes_on(project: Path) -> None:
    before = nodes(project)
    retained, first, second = sorted(before)[:3]
    code, _, message = run(project, "scale", "sandbox", "g5", "4", "--yes")
    assert code == 2
    assert "HyperPod would choose which" in message
    assert first in message
    code, _, message = run(project, "scale", "sandbox", "g5", "4", "--remove", first, "i-0123456789abcdef0", "--yes")
    assert code == 2
    assert "i-0123456789abcdef0 is no node of sandbox" in message
    assert target(project) == (6, "count: 6   # as of today")

    # As if the command had ended after the file was written and one of the nodes was gone.
    file = project / "environments/sandbox.yaml"
    file.write_text(file.read_text().replace("count: 6 ", "count: 4 "))
    _, account = opened(project)
    answer = change(account, "sagemaker", "batch_delete_cluster_nodes", ClusterName="sandbox", NodeIds=[first])
    assert answer["Successful"] == [first]
    code, plan, _ = run(project, "scale", "sandbox", "g5", "4", "--remove", first, f"hyperpod-{second}", "--yes")
    assert (code, plan["removed"], [row["node"] for row in plan["leaving"]]) == (0, [first], [second])
    after = nodes(project)
    assert after.keys() == before.keys() - {first, second}
    assert retained in after
    assert target(project) == (4, "count: 4   # as of today")
    code, plan, _ = run(project, "diff", "sandbox")
    assert plan["stacks"] == [], "file, cluster and CloudFormation say the same"


def test_a_node_is_taken_out_of_work_and_given_back(project: Path) -> None:
    node = min(nodes(project))
    code, answer, _ = run(project, "node", "quarantine", "sandbox", node, "--reason", "ECC errors, ticket 12")
    assert (code, answer["nodes"][0]["reason"]) == (0, "ECC errors, ticket 12")
    marked = kubernetes_node(project, node)
    assert {"key": MARK, "value": "true", "effect": "NoSchedule"} in marked["spec"]["taints"]
    assert marked["metadata"]["labels"][MARK] == "true"
    assert marked["metadata"]["annotations"][REASON] == "ECC errors, ticket 12"
    _, report, _ = run(project, "status", "sandbox")
    [row] = [row for row in report["nodes"] if row["id"] == node]
    assert row["quarantine"].endswith("ECC errors, ticket 12")
    _, diagnosis, _ = run(project, "doctor", "sandbox")
    assert "ECC errors, ticket 12" in json.dumps(diagnosis)

    for _ in range(2):
        assert run(project, "node", "release", "sandbox", node)[0] == 0
    provided = kubernetes_node(project, node)
    assert MARK not in provided["metadata"]["labels"]
    assert not provided["spec"].get("taints")
    assert nodes(project)[node] == ""


def reboots(account: Account, instance: str) -> int:
    """How often HyperPod has rebooted a node; asked, it does what is due."""
    events = pages(account, "sagemaker", "list_cluster_events", "Events", ClusterName="sandbox", NodeId=instance)
    return sum(event["Description"].startswith("Reboot of") for event in events)


def test_a_node_that_fails_again_is_taken_out_by_the_rule(project: Path) -> None:
    node, running = min(nodes(project)), server.status(project)
    _, account = opened(project)
    assert running is not None
    for number in (1, 2):
        turn(running.endpoint, "faults", {"nodes": [{"node": node, "kind": "xid-reboot"}]})
        until(lambda count=number: reboots(account, node) >= count)
        after = nodes(project)
        if number == 1:
            assert after[node] == ""
    why = until(lambda: nodes(project)[node])
    assert "2 faults within 12 hours" in why
    assert "rule of sandbox" in why
    taints = kubernetes_node(project, node)["spec"]["taints"]
    assert [taint["key"] for taint in taints] == [MARK]
    others = [quarantine for id, quarantine in nodes(project).items() if id != node]
    assert set(others) == {""}
