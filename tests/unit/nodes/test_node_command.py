"""`podwright node`: what it asks HyperPod for, what it says before, and what it waits for."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from drill_cluster import BOTH, BROKEN, OTHER, REPLACED, WHOLE, DrillCluster, Moment
from podwright.operations.cli import main
from podwright.operations.drills import command as drill_command
from podwright.operations.nodes import command, follow, health_check

FILE = """\
account: "111122223333"
region: us-west-2
network: {zones: [usw2-az2, usw2-az3]}
cluster: {name: prod}
instance_groups:
  system: {instance_type: ml.m5.4xlarge, count: 2}
  h200: {instance_type: ml.p5en.48xlarge, count: 2, zone: usw2-az2}
"""
SLURM = """\
account: "111122223333"
region: us-west-2
network: {zones: [usw2-az2]}
cluster: {name: prod, orchestrator: slurm}
instance_groups:
  h200: {instance_type: ml.m5.4xlarge, count: 1, slurm: {node_type: TYPE}}
observability: {drills: true}
"""


@pytest.fixture
def drill_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DrillCluster:
    """A project whose node is replaced as soon as time passes."""
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments/prod.yaml").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    drill_cluster = DrillCluster(REPLACED)
    account = SimpleNamespace(endpoint=None, client=lambda _: drill_cluster)
    clock = SimpleNamespace(sleep=drill_cluster.sleep, time=drill_cluster.clock)
    monkeypatch.setattr("podwright.operations.arguments.account_of", lambda *_: account)
    for module in (command, drill_command):
        monkeypatch.setattr(
            module, "Observer", lambda client, cluster, node, kubectl: drill_cluster.observer(kubernetes=bool(kubectl))
        )
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(command, "way", lambda *_: drill_cluster.kubectl)
    monkeypatch.setattr(health_check, "time", clock)
    for name, replaced in (("sleep", drill_cluster.sleep), ("clock", drill_cluster.clock)):
        monkeypatch.setitem(cast(Any, follow.follow).__kwdefaults__, name, replaced)
    return drill_cluster


def run(*arguments: str) -> int:
    return main(["node", *arguments])


def test_a_replacement_names_what_is_lost_and_waits(
    drill_cluster: DrillCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("replace", "prod", f"hyperpod-{BROKEN}", "--yes", "--wait", "60m") == 0
    assert drill_cluster.calls == [("replace", [BROKEN])]
    output = capsys.readouterr()
    assert f"{BROKEN}: hyperpod-ns-research/hyperpodpytorchjob/llama runs on it" in output.err
    assert "everything on the disks of a replaced node is lost" in output.err
    assert f"software never updated: {BROKEN}" in output.err
    assert output.out == f"{BROKEN} is replaced; its group was whole again after 21.7 min\n"


def test_what_does_not_come_in_time_fails(drill_cluster: DrillCluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("replace", "prod", BROKEN, "--yes", "--wait", "10m", "--json") == 1
    assert json.loads(capsys.readouterr().out)["seconds"] == {BROKEN: None}


def test_what_hyperpod_refuses_is_explained(drill_cluster: DrillCluster, capsys: pytest.CaptureFixture[str]) -> None:
    drill_cluster.refused = [{"NodeId": BROKEN, "ErrorCode": "InvalidInstanceStatus", "Message": "not now"}]
    assert run("reboot", "prod", BROKEN, OTHER, "--yes") == 1
    output = capsys.readouterr()
    assert "h200 loses 2 of 2 nodes for a while" in output.err
    assert output.out.splitlines() == [
        f"{OTHER} is rebooted",
        f"{BROKEN}: InvalidInstanceStatus: not now (its status does not allow it now; wait until it is Running)",
    ]


def test_many_nodes_go_in_the_parts_that_the_api_takes(drill_cluster: DrillCluster) -> None:
    ids = [f"i-{number:017x}" for number in range(60)]
    drill_cluster.moments = [Moment(-1, dict.fromkeys(ids, "Running"), [])]
    assert run("reboot", "prod", *ids, "--yes") == 0
    assert [len(nodes) for _, nodes in drill_cluster.calls] == [25, 25, 10]


def test_nothing_is_done_without_a_yes(drill_cluster: DrillCluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("reboot", "prod", BROKEN) == 2
    assert run("reboot", "prod", "i-00000000000000009", "--yes") == 1
    assert drill_cluster.calls == []
    assert "no node of this cluster: i-00000000000000009" in capsys.readouterr().err


def test_slurms_controller_is_not_replaced(drill_cluster: DrillCluster, capsys: pytest.CaptureFixture[str]) -> None:
    Path("environments/prod.yaml").write_text(SLURM.replace("TYPE", "controller"))
    assert run("replace", "prod", BROKEN, "--yes") == 1
    assert "is Slurm's controller, which HyperPod does not replace" in capsys.readouterr().err
    assert run("reboot", "prod", BROKEN, "--yes") == 0


def test_a_drill_on_slurm_says_what_to_run_and_follows(
    drill_cluster: DrillCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("environments/prod.yaml").write_text(SLURM.replace("TYPE", "compute, partition: gpu"))
    assert main(["drill", "fault", "prod", "--node", BROKEN, "--fault", "slurm-replace", "--yes"]) == 0
    output = capsys.readouterr()
    assert 'sudo scontrol update node=ip-10-16-0-7 state=fail reason="Action:Replace"' in output.err
    assert "replaced the node" in output.out


IN_CHECK = {BROKEN: "DeepHealthCheckInProgress", OTHER: "DeepHealthCheckInProgress"}


def checked(drill_cluster: DrillCluster, *last: dict[str, str]) -> None:
    drill_cluster.moments = [
        Moment(-1, BOTH, WHOLE.nodes),
        Moment(20, IN_CHECK, []),
        *(Moment(600 + number, instances, []) for number, instances in enumerate(last)),
    ]


def test_a_health_check_of_a_group(drill_cluster: DrillCluster, capsys: pytest.CaptureFixture[str]) -> None:
    checked(drill_cluster, BOTH)
    assert run("health-check", "prod", "--group", "h200", "--yes", "--wait", "60m", "--json") == 0
    ((_, [asked]),) = drill_cluster.calls
    assert asked == {
        "InstanceGroupName": "h200",
        "InstanceIds": [BROKEN, OTHER],
        "DeepHealthChecks": ["InstanceStress", "InstanceConnectivity"],
    }
    actual = json.loads(capsys.readouterr().out)
    assert actual["status"] == {BROKEN: "passed", OTHER: "passed"}


@pytest.mark.parametrize(
    ("last", "status"),
    [
        ([{OTHER: "Running"}], {BROKEN: "gone: replaced", OTHER: "passed"}),
        ([IN_CHECK], {BROKEN: "DeepHealthCheckInProgress", OTHER: "DeepHealthCheckInProgress"}),
    ],
)
def test_a_node_that_does_not_pass(
    drill_cluster: DrillCluster, capsys: pytest.CaptureFixture[str], last: list[dict[str, str]], status: dict[str, Any]
) -> None:
    checked(drill_cluster, *last)
    assert run("health-check", "prod", BROKEN, OTHER, "--yes", "--wait", "60m", "--json") == 1
    assert json.loads(capsys.readouterr().out)["status"] == status


def test_a_check_that_was_never_seen_is_not_passed(
    drill_cluster: DrillCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    drill_cluster.moments = [WHOLE]
    assert run("health-check", "prod", BROKEN, "--check", "stress", "--yes", "--wait", "1m") == 1
    assert capsys.readouterr().out == f"{BROKEN}: Running; no check was seen\n"


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        (("--group", "h100"), "prod has no group h100"),
        ((), "name nodes, or --group G"),
        ((BROKEN,), "connectivity is checked between nodes, and needs two of a group"),
    ],
)
def test_what_cannot_be_checked(
    drill_cluster: DrillCluster, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], output: str
) -> None:
    assert run("health-check", "prod", *arguments, "--yes") == 2
    assert output in capsys.readouterr().err
    assert drill_cluster.calls == []
