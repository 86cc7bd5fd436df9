"""A Slurm cluster of real daemons (Debian's) in a throw-away layer over this machine, set up by our own steps."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fake_node import publish

PARTS = Path(__file__).parent
PROGRAMS = ("slurmctld", "slurmd", "slurmdbd", "sacctmgr", "mariadbd", "munged", "unshare", "nsenter", "ip")
CONTROLLER = "10.16.5.9"
COMPUTE = tuple(f"10.16.5.{number}" for number in (11, 12, 13, 14))
NODES = tuple(f"ip-{address.replace('.', '-')}" for address in COMPUTE)
"""As Slurm names them."""
GPUS = 8
"""Of each node."""


def missing() -> str | None:
    """What keeps such a cluster from being made here."""
    if os.geteuid() != 0:
        return "root, for a file system and a network of its own"
    absent = [program for program in PROGRAMS if shutil.which(program) is None]
    return f"{', '.join(absent)}, which .ci/run installs from Debian" if absent else None


def resource_config(address_group: str, layers: dict[str, tuple[str, ...]] | None = None) -> dict[str, Any]:
    """HyperPod's list of this cluster. This one machine is a node of `address_group`."""

    def entry(group: str, address: str) -> dict[str, Any]:
        labels = {f"network-node-layer-{n}": switch for n, switch in enumerate((layers or {}).get(address, ()), 1)}
        return {
            "InstanceName": group,
            "InstanceId": f"i-{address}",
            "CustomerIpAddress": address,
            "InstanceLabel": labels or None,
        }

    compute = [entry("h200", address) for address in COMPUTE]
    controller = [entry("controller", CONTROLLER)]
    if address_group == "h200":
        # The machine has all addresses of the cluster; the first that the list names is the one that counts.
        controller = [{**controller[0], "InstanceId": "i-elsewhere"}]
    groups = [("h200", "ml.p5en.48xlarge", compute), ("controller", "ml.m5.4xlarge", controller)]
    ordered = groups if address_group == "h200" else reversed(groups)
    return {
        "ClusterType": "Slurm",
        "InstanceGroups": [{"Name": name, "InstanceType": kind, "Instances": nodes} for name, kind, nodes in ordered],
    }


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


@dataclass
class SimulatedSlurmCluster:
    """The machine, from outside."""

    folder: Path
    bundle: Path
    pid: int

    def shell(self, script: str, *, timeout: float = 60) -> subprocess.CompletedProcess[str]:
        """Run bash lines in it, as root."""
        enter = ("nsenter", f"--target={self.pid}", "--mount", "--pid", "--net", "--uts", "--root", "--wdns=/")
        environment = {"PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8"}
        return subprocess.run(
            [*enter, "bash", "-euo", "pipefail", "-c", script],
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    def says(self, script: str, *, timeout: float = 60) -> str:
        """What bash lines print; they have to succeed."""
        result = self.shell(script, timeout=timeout)
        assert result.returncode == 0, f"{script}\n{result.stdout}{result.stderr}"
        return result.stdout

    def put(self, path: str, text: str, mode: int = 0o644) -> None:
        """Write a file of the machine."""
        self.says(f"mkdir -p $(dirname {path}); cat >{path} <<'END_OF_FILE'\n{text}END_OF_FILE\nchmod {mode:o} {path}")

    def publish(self, facts: dict[str, Any]) -> None:
        """Lay out what HyperPod would have copied from S3."""
        for path in self.bundle.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        publish(self.bundle, facts)

    def steps(self, group: str, layers: dict[str, tuple[str, ...]] | None = None, *, only: str = "") -> dict[str, Any]:
        """Run Slurm's steps as a node of that group; their outcomes by name."""
        path = "/opt/ml/config/resource_config.json" if group == "controller" else f"/run/{group}.json"
        self.put(path, json.dumps(resource_config(group, layers)) + "\n")
        environment = f"SAGEMAKER_RESOURCE_CONFIG_PATH={path}"
        run = self.shell(f"cd /bundle && {environment} python3 -B /parts/run_steps.py {only}", timeout=120)
        summaries = [line for line in run.stdout.splitlines() if line.startswith("{")]
        assert summaries, run.stdout + run.stderr
        return json.loads(summaries[-1]) | {"log": run.stdout}

    def until(self, condition: Callable[[], bool], what: str, seconds: float = 180) -> None:
        """Wait for it."""
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                observed = self.shell("squeue; sinfo -R; tail -n 40 /var/log/slurm/slurmctld.log").stdout
                raise AssertionError(f"{what}: not so after {seconds} s\n{observed}")
            time.sleep(0.1)


@contextmanager
def simulated_slurm_cluster() -> Iterator[SimulatedSlurmCluster]:
    """The machine with munge and HyperPod's slurm.conf, and nothing of ours yet."""
    with TemporaryDirectory(prefix="podwright-slurm-") as name:
        folder, bundle = Path(name) / "machine", Path(name) / "bundle"
        folder.mkdir()
        bundle.mkdir()
        namespaces = (
            "unshare",
            "--mount",
            "--pid",
            "--net",
            "--uts",
            "--fork",
            "--kill-child",
            "--propagation=private",
        )
        process = subprocess.Popen(
            [*namespaces, "bash", str(PARTS / "enter.sh"), str(folder), str(bundle), str(PARTS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "ready\n"
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            simulated = SimulatedSlurmCluster(folder, bundle, int(children[0]))
            simulated.says(
                """
                install -m 755 /parts/systemctl /usr/local/bin/systemctl
                mkdir -p /opt/slurm/etc /opt/slurm/bin /run/munge /run/mysqld /opt/gpus
                for number in 0 1 2 3 4 5 6 7; do mknod /opt/gpus/gpu$number c 1 3; done
                cp /parts/slurm.conf /opt/slurm/etc/
                echo 'Name=gpu File=/opt/gpus/gpu[0-7]' >/opt/slurm/etc/gres.conf
                echo '# Empty on a new cluster.' >/opt/slurm/etc/accounting.conf
                rm -rf /etc/slurm && ln -s /opt/slurm/etc /etc/slurm
                for tool in scontrol sacctmgr squeue sinfo; do ln -s /usr/bin/$tool /opt/slurm/bin/; done
                chown munge: /run/munge && chown mysql: /run/mysqld
                setpriv --reuid munge --regid munge --init-groups munged
                """
            )
            yield simulated
        finally:
            process.stdin.close()
            process.wait(120)
            process.stdout.close()
