"""A controller of Slurm that is killed again and again while it is set up ends as one that was not.

HyperPod's image has started slurmctld here before our steps run, without accounting, as it may with its API-driven
configuration.
"""

import json
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from needs import needs
from podwright.sandbox.slurm.machine import missing
from simulated_slurm import SimulatedSlurmCluster, node_facts, resource_config, simulated_slurm_cluster

pytestmark = needs(missing() is None, str(missing()))

SLURM = {
    "configuration": "api",
    "strategy": "merge",
    "controller_group": "controller",
    "login_groups": [],
    "partitions": {"h200": ["h200"]},
    "accounting": None,
    "shared_directory": None,
    "failover_topic": "arn:aws:sns:us-west-2:111122223333:failover",
    "groups": [{"name": "ml", "gid": 3000}],
    "users": [{"name": "ada", "uid": 2001, "gid": 2001, "groups": ["ml"], "ssh_keys": ["ssh-ed25519 A ada"]}],
    "teams": [
        {
            "name": "research",
            "quota": {"gres/gpu": 16},
            "borrow": {"gres/gpu": 8},
            "weight": 50,
            "preempt": "lower_priority",
            "budget_minutes": None,
            "users": ["ada"],
        }
    ],
    "priorities": {"training": 70},
    "fair_share": True,
    "budget_period": None,
}
LAYERS = {"10.16.5.11": ("top", "leaf1"), "10.16.5.12": ("top", "leaf2")}


@contextmanager
def started_by_the_image() -> Iterator[SimulatedSlurmCluster]:
    with simulated_slurm_cluster() as simulated:
        simulated.publish(node_facts(SLURM))
        simulated.put("/opt/ml/config/resource_config.json", json.dumps(resource_config("controller", LAYERS)) + "\n")
        simulated.says("systemctl start slurmctld")
        simulated.until(
            lambda: simulated.shell("scontrol show config").returncode == 0, "the image's slurmctld answers"
        )
        yield simulated


def left_behind(simulated: SimulatedSlurmCluster) -> str:
    """Files with their owners and modes, accounts, and what slurmctld runs by."""
    folders = "/opt/slurm/etc /opt/podwright /etc/ssh /etc/systemd/system /home /etc/mysql /var/lib/podwright"
    return simulated.says(
        f"""
        find {folders} -printf '%y %m %u:%g %p %l\\n' | sort
        find {folders} -type f ! -name slurmdbd.conf ! -name setup.json -print0 | sort -z | xargs -0 sha256sum
        sed '/^StoragePass=[0-9a-f]*$/s/=.*/=/' /opt/slurm/etc/slurmdbd.conf
        getent passwd ada; getent group ada ml
        sacctmgr -nP show assoc format=Account,User,GrpTRES,Share,QOS,DefaultQOS
        sacctmgr -nP show qos format=Name,Priority,GrpTRES,MaxTRES,Preempt,Flags,PreemptMode | sort
        scontrol show config | grep -E '^(Accounting|Job|Preempt|Priority|Prolog|Scheduler|Topology)' | sort
        scontrol show topology
        """
    )


def test_killed_again_and_again() -> None:
    with started_by_the_image() as simulated:
        outcomes = simulated.steps("controller", LAYERS)
        assert "failed" not in outcomes.values(), outcomes["log"]
        expected = left_behind(simulated)
        assert re.search(r"AccountingStorageType +=.*slurmdbd", expected)
        assert "research|ada|" in expected
        assert "SwitchName=top" in expected
    with started_by_the_image() as simulated:
        simulated.put("/run/run_killed.py", (Path(__file__).parent / "run_killed.py").read_text())
        # Each run makes one change more than the one before: the whole set-up has some hundred and fifty.
        for number in range(1, 40):
            run = simulated.shell(f"cd /bundle && python3 /run/run_killed.py {number} /parts/run_steps")
            if run.returncode == 0:
                break
            assert run.returncode == -signal.SIGKILL, run.stdout + run.stderr
        else:
            pytest.fail("it never gets through")
        assert number > 8, "it was hardly ever killed"
        assert "failed" not in json.loads(run.stdout.splitlines()[-1]).values(), run.stdout
        assert left_behind(simulated) == expected
