"""What a node does with bad input: a named step that fails, the reason in the last lines, nothing half done."""

import json
from pathlib import Path
from typing import Any

import pytest

from fake_node import FILE_SYSTEMS, FakeNode, make_node, publish, resource_config

RESOURCE_CONFIG = "opt/ml/config/resource_config.json"
SLURM: dict[str, Any] = {"orchestrator": "slurm", "system": "ubuntu22.04", "file_systems": FILE_SYSTEMS}


def failed(node: FakeNode, script: str = "", *, step: str, says: str) -> None:
    """The node does not come up, and the log ends with the step and what it saw."""
    result = node.shell(f"{script}\non_create")
    assert result.returncode == 1, node.log
    end = node.log.splitlines()[-4:]
    assert any(f"podwright: error step={step} error=" in line and says in line for line in end), node.log
    assert "failed with status 1; waiting 0 s" in end[-1]
    assert "Traceback" not in node.log
    # Standard error has it too: with a full disk it is all there is.
    assert says in result.stderr


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param(None, "No such file or directory", id="missing"),
        pytest.param("", "Expecting value", id="empty"),
        pytest.param('{"InstanceGroups": [', "Expecting value", id="cut off"),
        pytest.param("[]", "holds a list, not an object", id="a list"),
        pytest.param("{}", "has not the form of a cluster's description: no list InstanceGroups", id="no groups"),
        pytest.param('{"InstanceGroups": null}', "has not the form", id="groups that are nothing"),
    ],
)
def test_resource_config(folder: Path, text: str | None, says: str) -> None:
    node = make_node(folder)
    (node.root / RESOURCE_CONFIG).unlink() if text is None else node.put(RESOURCE_CONFIG, text)
    failed(node, step="start", says=says)
    assert node.calls() == []


def test_a_type_that_the_facts_do_not_know(folder: Path) -> None:
    node = make_node(folder)
    node.put(RESOURCE_CONFIG, json.dumps(resource_config("ml.p9.48xlarge")))
    failed(node, step="start", says="says type ml.p9.48xlarge; node.json knows ml.p5en.48xlarge")
    assert node.calls() == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        pytest.param({"version": 2}, "node.json has version 2, these scripts read 1", id="another version"),
        pytest.param({"groups": None}, "node.json", id="no groups"),
        pytest.param({"cluster": {}}, "node.json", id="half a cluster"),
    ],
)
def test_node_json(folder: Path, change: dict[str, Any], says: str) -> None:
    node = make_node(folder)
    facts = json.loads((node.bundle / "node.json").read_text())
    publish(node.bundle, {**facts, **change})
    failed(node, step="start", says=says)
    assert node.calls() == []


@pytest.mark.parametrize("text", [None, '{"version": 1,'], ids=["missing", "cut off"])
def test_node_json_that_did_not_arrive_whole(folder: Path, text: str | None) -> None:
    node = make_node(folder)
    (node.bundle / "node.json").unlink() if text is None else (node.bundle / "node.json").write_text(text)
    failed(node, step="start", says="node.json in")


def test_devices_that_are_missing(folder: Path) -> None:
    node = make_node(folder)
    (node.root / "sys/class/infiniband/rdmap003s0").rename(node.root / "gone")
    node.put("run/fake/gpus", "Disabled\n" * 7)
    failed(node, step="efa", says="has 16 EFA devices and the kernel shows 15")
    assert "error step=gpus" in node.log
    assert "has 8 GPUs and nvidia-smi shows 7; `dmesg | grep -e NVRM -e Xid` tells why" in node.log
    # What needs them has not begun; what does not has continued.
    outcomes = {name: step["outcome"] for name, step in node.summary["steps"].items()}
    assert outcomes["persistence"] == outcomes["fabric-manager"] == "held"
    assert outcomes["storage"] == outcomes["clock"] == "changed"


def test_a_device_that_comes_late_is_waited_for(folder: Path) -> None:
    node = make_node(folder)
    device = node.root / "sys/class/infiniband/rdmap003s0"
    device.rename(node.root / "late")
    result = node.shell(f"(sleep 1.5; mv {node.root}/late {device}) & on_create; wait")
    assert result.returncode == 0, node.log


def test_local_disks_that_are_missing(folder: Path) -> None:
    node = make_node(folder)
    (node.root / "usr/lib/systemd/system/dlami-nvme.service").unlink()
    for index in (1, 2):
        (node.root / f"sys/block/nvme{index}n1/device/model").write_text("Amazon Elastic Block Store\n")
    failed(node, step="local-nvme", says="and the kernel shows no Amazon EC2 NVMe Instance Storage")
    assert node.summary["steps"]["storage"]["outcome"] == "held"
    assert node.calls("var-lib") == []


def test_neuron_devices_that_are_missing(folder: Path) -> None:
    node = make_node(folder, "ml.trn1.32xlarge")
    (node.root / "dev/neuron7").unlink()
    failed(node, step="neuron", says="has 16 Neuron devices and the driver shows 15")


def test_a_mount_that_hangs(folder: Path) -> None:
    node = make_node(folder, "ml.m5.4xlarge", **SLURM, mount_home=True)
    node.behave("systemctl start fsx.mount|hang")
    node.environment["PODWRIGHT_PATIENCE"] = "0.05"
    script = node.only("lustre")
    result = node.shell(script)
    assert result.returncode == 1
    end = node.log.splitlines()[-1]
    assert "error step=lustre" in end
    assert "`systemctl start fsx.mount` did not end in 3 s" in end
    assert "see `journalctl -u fsx.mount`" in end
    assert not (node.root / "etc/systemd/system/fsx.mount").exists()
    assert list(node.root.glob("etc/systemd/system/*.wants/fsx.mount")) == []
    # It was tried again before that.
    assert node.programs().count("systemctl start fsx.mount") > 1


def test_a_mount_that_never_takes_writes_is_not_left_behind(folder: Path) -> None:
    node = make_node(folder, "ml.m5.4xlarge", **SLURM, mount_home=True)
    node.put("run/fake/read-only-mounts", "1000")
    # So slow that the end of the time falls into an attempt, which says less than the attempt before it.
    node.behave("systemctl start fsx.mount|10")
    node.environment["PODWRIGHT_PATIENCE"] = "0.3"
    result = node.shell(f"{node.only('lustre')} || findmnt --list --noheadings --output TARGET")
    assert "Read-only file system" in node.log.splitlines()[-1]
    assert f"{node.root}/fsx" not in result.stdout
    assert not (node.root / "etc/systemd/system/fsx.mount").exists()


def test_a_driver_that_hangs(folder: Path) -> None:
    node = make_node(folder)
    node.behave("nvidia-smi --query*|hang")
    failed(node, step="gpus", says="did not end in 6 s")


@pytest.mark.parametrize("bytes_left", [0, 100_000], ids=["full", "all but full"])
def test_a_full_root_volume(folder: Path, bytes_left: int) -> None:
    """The root volume is a small tmpfs; what is left is enough for the log at most."""
    node = make_node(folder, "ml.m5.4xlarge")
    volume = f"""
        mkdir $PODWRIGHT_ROOT.small
        mount -t tmpfs -o size=4m volume $PODWRIGHT_ROOT.small
        cp -a $PODWRIGHT_ROOT/. $PODWRIGHT_ROOT.small
        mount --move $PODWRIGHT_ROOT.small $PODWRIGHT_ROOT
        mkdir -p $PODWRIGHT_ROOT/var/log/provision $PODWRIGHT_ROOT/run/fake
        head -c {bytes_left + 1} /dev/zero >$PODWRIGHT_ROOT/left
        cat /dev/zero >$PODWRIGHT_ROOT/filler 2>/dev/null || true
        rm $PODWRIGHT_ROOT/left
        code=0
        on_create || code=$?
        rm $PODWRIGHT_ROOT/filler
        find $PODWRIGHT_ROOT/etc -name '.*.new'
        exit $code
    """
    result = node.shell(volume)
    assert result.returncode == 1, result.stderr
    assert "No space left on device" in result.stderr
    assert "podwright: error step=" in result.stderr
    assert "failed with status 1" in result.stderr
    assert result.stdout == ""


def test_a_wedged_run_is_not_joined_by_another(folder: Path) -> None:
    node = make_node(folder, "ml.m5.4xlarge")
    result = node.shell(
        "mkdir -p $PODWRIGHT_ROOT/run; exec 9>$PODWRIGHT_ROOT/run/podwright.lock; flock 9; (sleep 10; flock -u 9) & "
        "on_create 9>&-; wait"
    )
    assert result.returncode == 0, node.log
    assert node.summary["seconds"] < 5
