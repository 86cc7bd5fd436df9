"""A node that comes up although something on it does not work, and a cluster's list that is read as it comes."""

import json
from pathlib import Path
from typing import Any

import pytest

from fake_node import FILE_SYSTEMS, FakeNode, make_node, resource_config

RESOURCE_CONFIG = "opt/ml/config/resource_config.json"
SLURM: dict[str, Any] = {"orchestrator": "slurm", "system": "ubuntu22.04", "file_systems": FILE_SYSTEMS}


def record(node: FakeNode) -> dict[str, Any]:
    return json.loads((node.root / "var/lib/podwright/setup.json").read_text())


def test_a_node_joins_degraded_by_the_steps_that_failed(folder: Path) -> None:
    node = make_node(folder, lifecycle="tolerant")
    node.behave("sshd -t|line 3: Bad configuration option", "sysctl *|cannot write", "modprobe gdrdrv|no such device")
    (node.root / "usr/lib/systemd/system/nvidia-fabricmanager.service").unlink()
    result = node.shell("on_create")
    assert result.returncode == 0, node.log
    made = record(node)
    assert made["verdict"] == "degraded"
    assert sorted(made["degraded"]) == ["efa-use", "fabric-manager", "gdrcopy", "limits", "ssh"]
    assert "Bad configuration option" in made["degraded"]["ssh"]
    assert node.summary["result"] == "degraded"
    assert "podwright: degraded step=ssh" in node.log


def test_missing_gpus_cost_a_tolerant_node(folder: Path) -> None:
    node = make_node(folder, lifecycle="tolerant")
    node.put("run/fake/gpus", "Disabled\n" * 7)
    assert node.shell(node.only("persistence")).returncode == 1
    assert record(node)["verdict"] == "failed"
    assert sorted(record(node)["failed"]) == ["gpus", "persistence"]


def test_lustre_goes_over_tcp_where_efa_does_not_serve_it(folder: Path) -> None:
    node = make_node(folder, "ml.p5.48xlarge", **SLURM, lifecycle="tolerant")
    node.running("slurmd")
    node.behave("systemctl restart podwright-lnet.service|the module does not load")
    result = node.shell(node.only("lustre"))
    assert result.returncode == 0, node.log
    assert sorted(record(node)["degraded"]) == ["lnet"]
    assert "podwright-lnet" not in (node.root / "etc/systemd/system/fsx.mount").read_text()
    assert not (node.root / "etc/systemd/system/podwright-lnet.service").exists()


def test_containers_run_from_the_root_volume_where_their_data_cannot_move(folder: Path) -> None:
    node = make_node(folder, lifecycle="tolerant")
    node.running("containerd", "kubelet")
    node.program("cp", 'echo "cp: no space" >&2; exit 1')
    result = node.shell(f"nvme; {node.only('storage')}")
    assert result.returncode == 0, node.log
    assert "storage" in record(node)["degraded"]
    # Both run again, and nothing keeps them from starting at the next boot.
    assert {(node.root / f"run/fake-systemd/{name}").read_text().strip() for name in ("containerd", "kubelet")} == {
        "active"
    }
    assert not (node.root / "etc/systemd/system/containerd.service.d/50-podwright-storage.conf").exists()


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"Name": "burst", "InstanceType": "ml.p5.48xlarge", "Instances": None}, id="no instances"),
        pytest.param({"Name": "burst", "Instances": [{"InstanceId": "i-2"}]}, id="no type"),
        pytest.param(
            {"Name": "burst", "InstanceRequirements": {"InstanceTypes": ["ml.p5.48xlarge"]}, "Instances": []},
            id="requirements",
        ),
        pytest.param(
            {"Name": "burst", "InstanceType": "ml.p99.48xlarge", "New": {"Key": 1}, "Instances": []}, id="new"
        ),
        pytest.param({"Instances": [1, None]}, id="no name"),
        pytest.param(1, id="a number"),
    ],
)
def test_what_is_said_of_another_group_costs_no_node(folder: Path, other: Any) -> None:
    node = make_node(folder, "ml.m5.4xlarge")
    config = resource_config("ml.m5.4xlarge")
    node.put(RESOURCE_CONFIG, json.dumps({**config, "InstanceGroups": [other, *config["InstanceGroups"]]}))
    result = node.shell(node.only("network"))
    assert result.returncode == 0, node.log
    assert node.summary["group"] == "workers"


def test_a_group_of_several_types_has_the_type_of_the_board(folder: Path) -> None:
    node = make_node(folder, "ml.m5.4xlarge")
    config = resource_config("ml.m5.4xlarge")
    del config["InstanceGroups"][0]["InstanceType"]
    node.put(RESOURCE_CONFIG, json.dumps(config))
    node.put("sys/devices/virtual/dmi/id/product_name", "m5.4xlarge\n")
    assert node.shell(node.only("network")).returncode == 0, node.log
    assert record(node)["instance_type"] == "ml.m5.4xlarge"
    (node.root / "sys/devices/virtual/dmi/id/product_name").unlink()
    assert node.shell(node.only("network")).returncode == 0, node.log
    assert "neither resource_config.json nor the board tells the type of group workers" in node.log
