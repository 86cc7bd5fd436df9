"""A node that is killed anywhere during its set-up and started again ends as if it had not been."""

import json
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fake_node import make_node

DYING = Path(__file__).parent / "dying.py"
# What is left behind: the mounts, the data below them, the units, the state, and which services run.
STATE = """
    state() {
      cd "$PODWRIGHT_ROOT"
      for service in containerd kubelet; do
        [[ var/lib/$service -ef opt/dlami/nvme/podwright/$service ]] && echo "$service is mounted"
      done
      find etc var/lib opt run/fake-systemd -printf '%y %p %l\n' | sort
      find etc var/lib run/fake-systemd -type f -print0 | sort -z | xargs -0 sha256sum
    }
"""


def left_behind(script: str, dies_before: int | None = None) -> tuple[str, str]:
    """What a first run that dies prints, and the state after `script`, on a new node where both services run."""
    with tempfile.TemporaryDirectory(prefix="podwright-node-") as name:
        node = make_node(Path(name))
        node.running("containerd", "kubelet")
        first = f"python3 {DYING} {dies_before} {node.bundle} {node.root} | tail -1; echo ${{PIPESTATUS[0]}}"
        result = node.shell(f"{STATE} nvme; {':' if dies_before is None else first}; echo ---; {script}; state")
        assert result.returncode == 0, result.stderr + node.log
        printed, _, state = result.stdout.partition("---\n")
        return printed, state.replace(str(node.root), "")


def test_killed_before_any_change(folder: Path) -> None:
    _, wanted = left_behind("on_create")
    assert "kubelet is mounted" in wanted
    count, code = left_behind(":", dies_before=0)[0].split()
    assert code == "0"
    # Two copies, the state again and again, five units, a dozen commands: fewer would mean that nothing is counted.
    assert int(count) > 30

    def killed(number: int) -> None:
        printed, state = left_behind("on_create", number)
        assert printed.endswith("137\n"), f"did not die before change {number}"
        assert state == wanted, f"killed before change {number}"

    with ThreadPoolExecutor() as pool:
        list(pool.map(killed, range(1, int(count) + 1)))


@pytest.mark.parametrize("service", ["containerd", "kubelet"])
def test_killed_in_the_middle_of_a_copy(folder: Path, service: str) -> None:
    _, wanted = left_behind("on_create")
    real = shutil.which("cp")
    with tempfile.TemporaryDirectory(prefix="podwright-node-") as name:
        node = make_node(Path(name))
        node.running("containerd", "kubelet")
        # It leaves half a copy, and takes the process that called it along.
        half = 'mkdir -p "${@: -1}/half"; kill -9 $PPID'
        node.put("fakes/cp", f'#!/bin/bash\n[[ "$*" == *{service} ]] || exec {real} "$@"\n{half}\n')
        (node.root / "fakes/cp").chmod(0o755)
        result = node.shell(f"{STATE} nvme; on_create && exit 3; rm $PODWRIGHT_ROOT/fakes/cp; on_create; state")
        assert result.returncode == 0, result.stderr + node.log
        assert result.stdout.replace(str(node.root), "") == wanted
        assert "failed with status 137" in node.log


def test_the_state_says_where_the_data_went(folder: Path) -> None:
    node = make_node(folder)
    node.shell("nvme; on_create")
    state = json.loads((node.root / "var/lib/podwright/storage.json").read_text())
    assert state == {"disk": "/opt/dlami/nvme", "moved": ["containerd", "kubelet"], "restart": []}
