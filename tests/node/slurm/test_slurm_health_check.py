"""What Slurm runs before and after each job, as a script of its own."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from podwright.lifecycle_scripts.podwright_node.slurm import health as slurm_health
from slurm_node import SlurmNode

SCRIPT = Path(__file__).parents[3] / "lifecycle_scripts" / "slurm" / "health_check.sh"


@pytest.fixture
def slurm_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmNode]:
    location = SlurmNode(tmp_path)
    monkeypatch.setenv("PATH", f"{location.bin}:{os.environ['PATH']}")
    with location.log:
        yield location


def check(location: SlurmNode, **expected: str) -> tuple[int, str]:
    """Exit code of the health check, and the reason that Slurm got."""
    values = {
        "GPUS": "8",
        "NEURON": "0",
        "NEURON_DEVICES": f"'{location.root}/dev/neuron[0-9]*'",
        "EFA_DEVICES": "(rdmap1 rdmap2)",
        "EFA_FOLDER": f"{location.root}/efa",
        "MOUNTS": "(/proc)",
        "SPACE_FOLDER": "/",
        "SPACE_MIB": "1",
        "SCONTROL": "scontrol",
        **expected,
    }
    location.put("/etc/podwright-health.conf", "".join(f"{name}={value}\n" for name, value in values.items()))
    location.put("/etc/prolog.d/check.sh", SCRIPT.read_text())
    environment = os.environ | {"SLURMD_NODENAME": "ip-10-16-5-11"}
    script = location.root / "etc/prolog.d/check.sh"
    result = subprocess.run(["bash", script], env=environment, capture_output=True, text=True)
    reasons = [line.partition("Reason=")[2] for line in location.asked if "State=DRAIN" in line]
    return result.returncode, reasons[-1] if reasons else result.stderr


@pytest.mark.parametrize(
    ("expected", "reason"),
    [
        ({}, ""),
        ({"GPUS": "9"}, "podwright: 8 of 9 GPUs"),
        ({"NEURON": "1"}, "podwright: 0 of 1 Neuron devices"),
        ({"EFA_DEVICES": "(rdmap1 rdmap3)"}, "podwright: EFA device rdmap3 is gone"),
        ({"MOUNTS": "(/proc /nowhere)"}, "podwright: /nowhere is not mounted or hangs"),
        ({"SPACE_MIB": "999999999"}, "999999999 needed"),
    ],
)
def test_the_health_check_drains_with_its_reason(slurm_node: SlurmNode, expected: dict[str, str], reason: str) -> None:
    slurm_node.command("nvidia-smi", 'for gpu in 0 1 2 3 4 5 6 7; do echo "GPU $gpu: NVIDIA H200"; done')
    for device in ("rdmap1", "rdmap2"):
        slurm_node.put(f"/efa/{device}", "")
    code, messages = check(slurm_node, **expected)
    assert (code, messages.endswith(reason)) == (1 if reason else 0, True), messages
    assert messages or not reason


def test_a_driver_that_fails_is_quoted(slurm_node: SlurmNode) -> None:
    slurm_node.command("nvidia-smi", "echo 'Unable to determine the device handle'; exit 15")
    assert check(slurm_node, EFA_DEVICES="()") == (
        1,
        "podwright: nvidia-smi says: Unable to determine the device handle",
    )


def test_the_health_check_knows_what_this_node_has(slurm_node: SlurmNode) -> None:
    expected = slurm_health.expected(slurm_node.node("h200"))
    assert "GPUS=8\n" in expected
    assert "MOUNTS=()\n" in expected
