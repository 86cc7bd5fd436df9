"""The prolog that tells NVIDIA's IMEX which nodes a job has."""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from podwright.lifecycle_scripts.podwright_node.slurm import imex as slurm_imex
from slurm_node import SlurmNode

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
def slurm_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmNode]:
    location = SlurmNode(tmp_path)
    monkeypatch.setenv("PATH", f"{location.bin}:{os.environ['PATH']}")
    location.command("scontrol", SCONTROL)
    location.command("squeue", "[[ $* == *%A* ]] && echo 7; true")
    location.command("getent", "echo '10.16.5.12 STREAM ip-10-16-5-12'; echo '10.16.5.12 DGRAM'")
    location.command("nvidia-imex-ctl", "echo READY")
    location.command("sleep", "true")
    with location.log:
        yield location


def prolog(location: SlurmNode, nodes: str | None, patience: int = 3) -> tuple[int, str]:
    """Exit code of the prolog, and what it said."""
    values = {
        "NODES_CONFIG": f"'{location.root}/etc/nvidia-imex/nodes_config.cfg'",
        "PATIENCE_SECONDS": str(patience),
        "SCONTROL": "scontrol",
        "SQUEUE": "squeue",
    }
    location.put("/etc/podwright-imex.conf", "".join(f"{name}={value}\n" for name, value in values.items()))
    location.put("/etc/prolog.d/imex.sh", SCRIPT.read_text())
    environment = os.environ | {"SLURMD_NODENAME": "ip-10-16-5-11", "SLURM_JOB_ID": "7"}
    environment |= {"SLURM_JOB_NODELIST": nodes} if nodes else {}
    result = subprocess.run(
        ["bash", location.root / "etc/prolog.d/imex.sh"], env=environment, capture_output=True, text=True
    )
    return result.returncode, result.stderr


def nodes_of_imex(location: SlurmNode) -> list[str]:
    file = location.root / "etc/nvidia-imex/nodes_config.cfg"
    return file.read_text().splitlines() if file.exists() else []


def restarts(location: SlurmNode) -> int:
    return location.asked.count("systemctl restart nvidia-imex.service")


def test_every_node_gets_the_same_list(slurm_node: SlurmNode) -> None:
    """IMEX refuses to connect nodes whose lists differ, in their order too."""
    assert prolog(slurm_node, "ip-10-16-5-110,ip-10-16-5-12,ip-10-16-5-11") == (0, "")
    assert nodes_of_imex(slurm_node) == ["10.16.5.11", "10.16.5.12", "10.16.5.110"]
    assert restarts(slurm_node) == 1


def test_slurm_is_asked_where_the_environment_lacks_the_nodes(slurm_node: SlurmNode) -> None:
    slurm_node.command("squeue", "[[ $* == *%N* ]] && echo ip-10-16-5-11,ip-10-16-5-13; true")
    assert prolog(slurm_node, None) == (0, "")
    assert nodes_of_imex(slurm_node) == ["10.16.5.11", "10.16.5.13"]


def test_a_job_on_the_same_nodes_restarts_nothing(slurm_node: SlurmNode) -> None:
    assert prolog(slurm_node, "ip-10-16-5-11") == prolog(slurm_node, "ip-10-16-5-11") == (0, "")
    assert restarts(slurm_node) == 1


def test_a_service_that_is_not_ready_is_restarted_even_with_the_same_nodes(slurm_node: SlurmNode) -> None:
    prolog(slurm_node, "ip-10-16-5-11")
    slurm_node.command(
        "nvidia-imex-ctl", f"grep -c restart {slurm_node.bin}/asked | grep -qx 1 && echo INVALID || echo READY"
    )
    assert prolog(slurm_node, "ip-10-16-5-11") == (0, "")
    assert restarts(slurm_node) == 2


def test_another_job_keeps_its_nodes(slurm_node: SlurmNode) -> None:
    prolog(slurm_node, "ip-10-16-5-11,ip-10-16-5-13")
    slurm_node.command("squeue", "[[ $* == *%A* ]] && printf '6\\n7\\n'; true")
    code, output = prolog(slurm_node, "ip-10-16-5-11")
    assert (code, restarts(slurm_node)) == (0, 1)
    assert "another job runs here" in output
    assert nodes_of_imex(slurm_node) == ["10.16.5.11", "10.16.5.13"]


@pytest.mark.parametrize(
    ("command", "script", "nodes", "reason"),
    [
        ("systemctl", "[[ $1 != restart ]]", "ip-10-16-5-11", "nvidia-imex.service does not restart"),
        ("nvidia-imex-ctl", "echo INITIALIZING", "ip-10-16-5-11", "IMEX is not ready after 3 s with 1 nodes"),
        ("nvidia-imex-ctl", "exit 1", "ip-10-16-5-11", "IMEX is not ready after 3 s with 1 nodes"),
        ("getent", "exit 2", "ip-10-16-5-12", "no address of ip-10-16-5-12"),
    ],
)
def test_what_goes_wrong_drains_the_node(
    slurm_node: SlurmNode, command: str, script: str, nodes: str, reason: str
) -> None:
    slurm_node.command(command, script)
    code, output = prolog(slurm_node, nodes)
    assert code == 1
    assert reason in output
    assert any("State=DRAIN" in line and reason in line for line in slurm_node.asked)


def test_only_nodes_whose_nvlink_leaves_the_instance_have_it(slurm_node: SlurmNode) -> None:
    node = slurm_node.node("h200")
    assert not slurm_imex.STEP.applies_to(node)
    node.type_facts["imex"] = True
    assert slurm_imex.STEP.applies_to(node)


def test_the_step_puts_it_there_once(slurm_node: SlurmNode) -> None:
    node = replace(slurm_node.node("h200"), bundle=SCRIPT.parents[1])
    slurm_imex.install(node)
    assert slurm_imex.is_installed(node)
    assert node.read(slurm_imex.PROLOG) == SCRIPT.read_text()
    node.path(slurm_imex.PROLOG).chmod(0o644)
    assert not slurm_imex.is_installed(node)
