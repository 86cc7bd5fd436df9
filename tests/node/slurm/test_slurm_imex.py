"""The prolog that tells NVIDIA's IMEX which nodes a job has."""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from podwright.lifecycle_scripts.podwright_node.slurm import imex as slurm_imex
from slurm_place import Place

SCRIPT = Path(__file__).parents[3] / "lifecycle_scripts" / "slurm" / "imex_prolog.sh"
SCONTROL = """\
case "$*" in
  "show hostnames "*) echo "$3" | tr , '\\n' ;;
  *"show node ip-10-16-5-12") echo "NodeName=ip-10-16-5-12 NodeAddr=ip-10-16-5-12 State=IDLE" ;;
  *"show node lost") echo "NodeName=lost NodeAddr= State=IDLE" ;;
  *"show node "*) name="${@: -1}"; name="${name#ip-}"; echo "NodeName=x NodeAddr=${name//-/.} NodeHostName=x" ;;
esac
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    place = Place(tmp_path)
    monkeypatch.setenv("PATH", f"{place.bin}:{os.environ['PATH']}")
    place.command("scontrol", SCONTROL)
    place.command("squeue", "[[ $* == *%A* ]] && echo 7; true")
    place.command("getent", "echo '10.16.5.12 STREAM ip-10-16-5-12'; echo '10.16.5.12 DGRAM'")
    place.command("nvidia-imex-ctl", "echo READY")
    place.command("sleep", "true")
    with place.log:
        yield place


def prolog(place: Place, nodes: str | None, patience: int = 3) -> tuple[int, str]:
    """Exit code of the prolog, and what it said."""
    values = {
        "NODES_CONFIG": f"'{place.root}/etc/nvidia-imex/nodes_config.cfg'",
        "PATIENCE_SECONDS": str(patience),
        "SCONTROL": "scontrol",
        "SQUEUE": "squeue",
    }
    place.put("/etc/podwright-imex.conf", "".join(f"{name}={value}\n" for name, value in values.items()))
    place.put("/etc/prolog.d/imex.sh", SCRIPT.read_text())
    environment = os.environ | {"SLURMD_NODENAME": "ip-10-16-5-11", "SLURM_JOB_ID": "7"}
    environment |= {"SLURM_JOB_NODELIST": nodes} if nodes else {}
    result = subprocess.run(
        ["bash", place.root / "etc/prolog.d/imex.sh"], env=environment, capture_output=True, text=True
    )
    return result.returncode, result.stderr


def nodes_of_imex(place: Place) -> list[str]:
    file = place.root / "etc/nvidia-imex/nodes_config.cfg"
    return file.read_text().splitlines() if file.exists() else []


def restarts(place: Place) -> int:
    return place.asked.count("systemctl restart nvidia-imex.service")


def test_every_node_gets_the_same_list(place: Place) -> None:
    """IMEX refuses to connect nodes whose lists differ, in their order too."""
    assert prolog(place, "ip-10-16-5-110,ip-10-16-5-12,ip-10-16-5-11") == (0, "")
    assert nodes_of_imex(place) == ["10.16.5.11", "10.16.5.12", "10.16.5.110"]
    assert restarts(place) == 1


def test_slurm_is_asked_where_the_environment_lacks_the_nodes(place: Place) -> None:
    place.command("squeue", "[[ $* == *%N* ]] && echo ip-10-16-5-11,ip-10-16-5-13; true")
    assert prolog(place, None) == (0, "")
    assert nodes_of_imex(place) == ["10.16.5.11", "10.16.5.13"]


def test_a_job_on_the_same_nodes_restarts_nothing(place: Place) -> None:
    assert prolog(place, "ip-10-16-5-11") == prolog(place, "ip-10-16-5-11") == (0, "")
    assert restarts(place) == 1


def test_a_service_that_is_not_ready_is_restarted_even_with_the_same_nodes(place: Place) -> None:
    prolog(place, "ip-10-16-5-11")
    place.command("nvidia-imex-ctl", f"grep -c restart {place.bin}/asked | grep -qx 1 && echo INVALID || echo READY")
    assert prolog(place, "ip-10-16-5-11") == (0, "")
    assert restarts(place) == 2


def test_another_job_keeps_its_nodes(place: Place) -> None:
    prolog(place, "ip-10-16-5-11,ip-10-16-5-13")
    place.command("squeue", "[[ $* == *%A* ]] && printf '6\\n7\\n'; true")
    code, said = prolog(place, "ip-10-16-5-11")
    assert (code, restarts(place)) == (0, 1)
    assert "another job runs here" in said
    assert nodes_of_imex(place) == ["10.16.5.11", "10.16.5.13"]


@pytest.mark.parametrize(
    ("command", "script", "nodes", "reason"),
    [
        ("systemctl", "[[ $1 != restart ]]", "ip-10-16-5-11", "nvidia-imex.service does not restart"),
        ("nvidia-imex-ctl", "echo INITIALIZING", "ip-10-16-5-11", "IMEX is not ready after 3 s with 1 nodes"),
        ("nvidia-imex-ctl", "exit 1", "ip-10-16-5-11", "IMEX is not ready after 3 s with 1 nodes"),
        ("getent", "exit 2", "ip-10-16-5-12", "no address of ip-10-16-5-12"),
    ],
)
def test_what_goes_wrong_drains_the_node(place: Place, command: str, script: str, nodes: str, reason: str) -> None:
    place.command(command, script)
    code, said = prolog(place, nodes)
    assert code == 1
    assert reason in said
    assert any("State=DRAIN" in line and reason in line for line in place.asked)


def test_only_nodes_whose_nvlink_leaves_the_instance_have_it(place: Place) -> None:
    node = place.node("h200")
    assert not slurm_imex.STEP.applies_to(node)
    node.type_facts["imex"] = True
    assert slurm_imex.STEP.applies_to(node)


def test_the_step_puts_it_there_once(place: Place) -> None:
    node = replace(place.node("h200"), bundle=SCRIPT.parents[1])
    slurm_imex.install(node)
    assert slurm_imex.is_installed(node)
    assert node.read(slurm_imex.PROLOG) == SCRIPT.read_text()
    node.path(slurm_imex.PROLOG).chmod(0o644)
    assert not slurm_imex.is_installed(node)
