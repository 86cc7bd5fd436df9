"""A Slurm cluster of real daemons (Debian's) in a machine as the sandbox makes it, set up by our own steps."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryDirectory
from typing import Any

from fake_node import publish
from podwright.sandbox.slurm import configuration
from podwright.sandbox.slurm.configuration import SlurmNode
from podwright.sandbox.slurm.machine import Machine
from waiting import CEILING_SECONDS, until

CONTROLLER = "10.16.5.9"
COMPUTE = tuple(f"10.16.5.{number}" for number in (11, 12, 13, 14))
NODES = tuple(map(configuration.host_name, COMPUTE))
"""As Slurm names them."""
GPUS = 8
"""Of each node."""
Layers = dict[str, tuple[str, ...]]


def nodes(layers: Layers | None = None) -> list[SlurmNode]:
    """The nodes of the cluster, the controller first, with their layers of the network."""
    switches = {
        address: {f"network-node-layer-{number}": switch for number, switch in enumerate(names, 1)}
        for address, names in (layers or {}).items()
    }
    compute = [
        SlurmNode(address, "h200", "ml.p5en.48xlarge", labels=switches.get(address), cpus=8, gpus=GPUS)
        for address in COMPUTE
    ]
    return [SlurmNode(CONTROLLER, "controller", "ml.m5.4xlarge", labels=switches.get(CONTROLLER)), *compute]


def resource_config(address_group: str, layers: Layers | None = None) -> dict[str, Any]:
    """HyperPod's list of this cluster. This one machine is a node of `address_group`."""
    return configuration.resource_config(nodes(layers), address_group)


def node_facts(slurm: dict[str, Any]) -> dict[str, Any]:
    """node.json in the parts that Slurm's steps read."""
    type_facts = {"accelerator_vendor": "none", "accelerator_count": 0, "nvme_gb": 0}
    return {
        "version": 1,
        "cluster": {"name": "test", "orchestrator": "slurm", "region": "us-west-2", "dns_suffix": "amazonaws.com"},
        "file_systems": {"lustre": {}, "home": None},
        "instance_types": {
            "ml.m5.4xlarge": type_facts,
            "ml.p5en.48xlarge": {**type_facts, "accelerator_vendor": "nvidia", "accelerator_count": GPUS},
        },
        "groups": {name: {"zones": ["usw2-az2"], "volumes_gib": []} for name in ("controller", "h200")},
        "slurm": slurm,
    }


@dataclass(frozen=True)
class SimulatedSlurmCluster:
    """The machine, from outside."""

    machine: Machine

    def shell(self, script: str, *, timeout: float = CEILING_SECONDS) -> CompletedProcess[str]:
        """Run bash lines in it, as root."""
        return self.machine.shell(script, timeout=timeout)

    def says(self, script: str, *, timeout: float = CEILING_SECONDS) -> str:
        """What bash lines print; they have to succeed."""
        return self.machine.says(script, timeout=timeout)

    def put(self, path: str, text: str, mode: int = 0o644) -> None:
        """Write a file of the machine."""
        self.machine.put(path, text, mode)

    def write_configuration(self) -> None:
        """Write slurm.conf as HyperPod's agent does, which knows nothing of ours."""
        compute = nodes()[1:]
        ports = configuration.ports_of(compute, {})
        text = configuration.slurm_conf("test", CONTROLLER, compute, ports, {"h200": ["h200"]})
        self.put("/opt/slurm/etc/slurm.conf", text)

    def publish(self, facts: dict[str, Any]) -> None:
        """Lay out what HyperPod would have copied from S3."""
        for path in self.machine.bundle.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        publish(self.machine.bundle, facts)

    def steps(self, group: str, layers: Layers | None = None, *, only: str = "") -> dict[str, Any]:
        """Run Slurm's steps as a node of that group; their outcomes by name."""
        path = "/opt/ml/config/resource_config.json" if group == "controller" else f"/run/{group}.json"
        self.put(path, json.dumps(resource_config(group, layers)) + "\n")
        environment = f"SAGEMAKER_RESOURCE_CONFIG_PATH={path}"
        run = self.shell(f"cd /bundle && {environment} /parts/run_steps {only}")
        summaries = [line for line in run.stdout.splitlines() if line.startswith("{")]
        assert summaries, run.stdout + run.stderr
        return json.loads(summaries[-1]) | {"log": run.stdout}

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for a state of the cluster."""

        def observed() -> str:
            state = self.shell("squeue; sinfo -R; tail -n 40 /var/log/slurm/slurmctld.log").stdout
            return f"{what}: not so\n{state}"

        until(condition, observed)


@contextmanager
def simulated_slurm_cluster() -> Iterator[SimulatedSlurmCluster]:
    """The machine with munge and HyperPod's slurm.conf, and nothing of ours yet."""
    with TemporaryDirectory(prefix="podwright-slurm-") as name:
        machine = Machine.start(Path(name), configuration.host_name(CONTROLLER), (CONTROLLER, *COMPUTE))
        try:
            simulated = SimulatedSlurmCluster(machine)
            simulated.write_configuration()
            simulated.put("/opt/slurm/etc/gres.conf", configuration.gres_conf(nodes()))
            simulated.says(f"printf '%s\\n' {' '.join(NODES)} >/run/slurm-nodes")
            yield simulated
        finally:
            machine.stop()
