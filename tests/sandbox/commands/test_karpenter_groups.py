"""An environment whose groups Karpenter scales, deployed: what the cluster holds, and what the commands say of it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cloudformation_cdk import podwright
from podwright.config.loading.load import load_environment
from podwright.operations.aws import sandbox_server as server
from podwright.operations.aws.account import account_of
from podwright.operations.kubernetes.kubectl import required_way

TAINTS = "taints: [{key: example.com/burst, effect: NoSchedule}]"
FILE = f"""\
account: "123456789012"
region: us-west-2
protection: destroy
network: {{zones: [usw2-az1, usw2-az2]}}
cluster: {{autoscaling: {{karpenter: {{groups: [burst, cheap], limits: {{accelerators: 16, vcpu: 384}}}}}}}}
instance_groups:
  system: {{instance_type: ml.m5.4xlarge, count: 2}}
  burst: {{instance_type: ml.g5.12xlarge, count: 0, zone: usw2-az2, {TAINTS}}}
  cheap: {{instance_type: ml.g5.12xlarge, count: 0, zone: usw2-az2, capacity: spot, {TAINTS}}}
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The environment, deployed."""
    folder = tmp_path_factory.mktemp("karpenter") / "cluster"
    podwright(folder.parent, "init", str(folder))
    (folder / "environments/sandbox.yaml").write_text(FILE)
    server.start(folder, port=0, time_scale=0.25)
    podwright(folder, "deploy", "sandbox")
    yield folder
    server.stop(folder)


def answer(project: Path, command: str) -> Any:
    return podwright(project, command, "sandbox", "--json").document


def spec(project: Path, kind: str) -> Any:
    """What the cluster holds of an object of ours."""
    environment = load_environment(project / "environments/sandbox.yaml").environment
    way = required_way(project, environment, account_of(environment, project, False))
    return way.one(kind, "podwright")["spec"]


def test_the_cluster_holds_what_karpenter_is_told(project: Path) -> None:
    assert spec(project, "hyperpodnodeclass") == {"instanceGroups": ["burst", "cheap"]}
    pool = spec(project, "nodepool")
    assert pool["limits"] == {"cpu": "384", "nvidia.com/gpu": "16"}
    assert pool["template"]["spec"]["taints"] == [{"key": "example.com/burst", "effect": "NoSchedule"}]


def test_status_says_who_scales_and_that_nobody_does_here(project: Path) -> None:
    rows = {group["name"]: (group["current"], group["target"]) for group in answer(project, "status")["groups"]}
    assert rows == {"system": (2, 2), "burst": (0, 0), "cheap": (0, 0)}
    text = podwright(project, "status", "sandbox").output
    assert "Karpenter scales burst and cheap while pods wait, up to 16 accelerators and 384 vCPUs together." in text
    assert "Simulated:" in text
    assert "Karpenter is HyperPod's own and does not run here" in text


def test_scale_leaves_the_number_of_nodes_to_karpenter(project: Path) -> None:
    refused = podwright(project, "scale", "sandbox", "burst", "2", code=None)
    assert refused.code != 0
    assert "environments/sandbox.yaml:5: Karpenter sets the number of nodes of burst" in refused.errors
    assert (project / "environments/sandbox.yaml").read_text() == FILE


def test_cost_says_what_may_come_beside_the_sums(project: Path) -> None:
    report = answer(project, "cost")
    assert {item["group"] for item in report["items"]} == {None, "system"}
    (kind,) = report["scaled"]
    # Of four GPUs and 48 vCPUs each.
    assert [kind["instance_type"], kind["groups"], kind["nodes"]] == ["ml.g5.12xlarge", ["burst", "cheap"], 4]
    assert kind["hourly"] == 4 * kind["price"]["usd"]


def test_diff_names_the_object_that_a_new_limit_changes(project: Path) -> None:
    file = project / "environments/sandbox.yaml"
    assert "no changes" in podwright(project, "diff", "sandbox").output
    file.write_text(FILE.replace("accelerators: 16", "accelerators: 32"))
    try:
        text = podwright(project, "diff", "sandbox").output
    finally:
        file.write_text(FILE)
    assert "NodePool.podwright" in text
    assert "NodePool[podwright].spec.limits.nvidia.com/gpu: 16 → 32  [in place]" in text
    assert "HyperpodNodeClass.podwright" not in text
    assert "none restarts or goes" in text
