"""What Slurm runs before and after each job, as a script of its own."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from podwright.lifecycle_scripts.podwright_node.slurm import health as slurm_health
from slurm_place import Place

SCRIPT = Path(__file__).parents[3] / "lifecycle_scripts" / "slurm" / "health_check.sh"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    place = Place(tmp_path)
    monkeypatch.setenv("PATH", f"{place.bin}:{os.environ['PATH']}")
    with place.log:
        yield place


def check(place: Place, **expected: str) -> tuple[int, str]:
    """Exit code of the health check, and the reason that Slurm got."""
    values = {
        "GPUS": "8",
        "NEURON": "0",
        "NEURON_DEVICES": f"'{place.root}/dev/neuron[0-9]*'",
        "EFA_DEVICES": "(rdmap1 rdmap2)",
        "EFA_FOLDER": f"{place.root}/efa",
        "MOUNTS": "(/proc)",
        "SPACE_FOLDER": "/",
        "SPACE_MIB": "1",
        "SCONTROL": "scontrol",
        **expected,
    }
    place.put("/etc/podwright-health.conf", "".join(f"{name}={value}\n" for name, value in values.items()))
    place.put("/etc/prolog.d/check.sh", SCRIPT.read_text())
    environment = os.environ | {"SLURMD_NODENAME": "ip-10-16-5-11"}
    script = place.root / "etc/prolog.d/check.sh"
    result = subprocess.run(["bash", script], env=environment, capture_output=True, text=True)
    reasons = [line.partition("Reason=")[2] for line in place.asked if "State=DRAIN" in line]
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
def test_the_health_check_drains_with_its_reason(place: Place, expected: dict[str, str], reason: str) -> None:
    place.command("nvidia-smi", 'for gpu in 0 1 2 3 4 5 6 7; do echo "GPU $gpu: NVIDIA H200"; done')
    for device in ("rdmap1", "rdmap2"):
        place.put(f"/efa/{device}", "")
    code, told = check(place, **expected)
    assert (code, told.endswith(reason)) == (1 if reason else 0, True), told
    assert told or not reason


def test_a_driver_that_fails_is_quoted(place: Place) -> None:
    place.command("nvidia-smi", "echo 'Unable to determine the device handle'; exit 15")
    assert check(place, EFA_DEVICES="()") == (1, "podwright: nvidia-smi says: Unable to determine the device handle")


def test_the_health_check_knows_what_this_node_has(place: Place) -> None:
    expected = slurm_health.expected(place.node("h200"))
    assert "GPUS=8\n" in expected
    assert "MOUNTS=()\n" in expected
