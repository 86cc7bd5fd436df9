"""A node in a folder: a mount namespace of its own, a root below a temporary folder, and stand-ins for its programs."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from podwright.config.catalog.instance_type import InstanceType
from podwright.config.catalog.instance_types import catalog
from podwright.config.settings.groups import InstanceGroup
from podwright.planning.node.facts import ClusterFacts, FileSystems, LustreMount, OpenZfsMount, node_facts
from podwright.planning.node.slurm_facts import SlurmFacts
from waiting import CEILING_SECONDS

SCRIPTS = Path(__file__).parents[2] / "lifecycle_scripts"
FAKES = Path(__file__).parent / "fakes"
ONLY = Path(__file__).parent / "only.py"
PROGRAMS = Path(__file__).parent / "programs"
ZONE = "usw2-az2"
SYSTEMS = {
    "amzn2023": 'ID="amzn"\nVERSION_ID="2023"\n',
    "ubuntu22.04": 'ID=ubuntu\nVERSION_ID="22.04"\n',
    "ubuntu24.04": 'ID=ubuntu\nVERSION_ID="24.04"\n',
}
FILE_SYSTEMS = FileSystems(
    lustre={
        "lustre": LustreMount(dns_name="fs-1.fsx", mount_name="abcdefgh", path="/fsx", zone=ZONE, efa=True),
        "scratch": LustreMount(dns_name="fs-2.fsx", mount_name="ijklmnop", path="/scratch-1", zone=ZONE, efa=False),
    },
    home=OpenZfsMount(dns_name="fs-3.fsx", path="/home", zone=ZONE),
)
ADDRESS = "10.16.5.9"
SERVICE = "s3.us-west-2.amazonaws.com"


def _namespace() -> list[str]:
    return ["unshare", "--mount", *([] if os.getuid() == 0 else ["--user", "--map-root-user"])]


@dataclass
class FakeNode:
    """A node whose root is `root`. Its mounts live as long as one call of `shell`."""

    root: Path
    bundle: Path
    python: str = sys.executable
    hosts: str = f"127.0.0.1 localhost {SERVICE}\n"
    environment: dict[str, str] = field(default_factory=dict)

    def behave(self, *lines: str) -> None:
        """Let stand-ins be slow, fail or hang: `PATTERN|ACTION`, see fakes/behaviour.sh."""
        self.put("run/fake/behaviour", "".join(f"{line}\n" for line in lines))

    def shell(self, script: str, *, timeout: float = CEILING_SECONDS) -> subprocess.CompletedProcess[str]:
        """Run bash lines in a new mount namespace; `nvme` and `ebs` there mount the two disks."""
        bin_folder = self.root / "fakes"
        bin_folder.mkdir(exist_ok=True)
        for fake in FAKES.iterdir():
            shutil.copy(fake, bin_folder)
        (bin_folder / "python3").unlink(missing_ok=True)
        (bin_folder / "python3").symlink_to(shutil.which(self.python) or self.python)
        hosts = self.root / "hosts"
        hosts.write_text(self.hosts)
        prelude = f"""
            set -eu
            mount --bind {hosts} /etc/hosts
            nvme() {{ mount -t tmpfs nvme {self.root}/opt/dlami/nvme; }}
            ebs() {{ mount -t tmpfs ebs {self.root}/opt/sagemaker; }}
            on_create() {{ bash {self.bundle}/on_create.sh; }}
        """
        environment = {
            "PATH": f"{self.root}/own:{bin_folder}:/usr/sbin:/usr/bin:/sbin:/bin",
            "PODWRIGHT_ROOT": str(self.root),
            "PODWRIGHT_LOG_FLUSH_SECONDS": "0",
            "PODWRIGHT_PATIENCE": "0.1",
            "FAKE_ADDRESS": ADDRESS,
            **self.environment,
        }
        return subprocess.run(
            [*_namespace(), "bash", "-c", prelude + script],
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    @property
    def log(self) -> str:
        """What CloudWatch would keep, or of `only` what it printed."""
        retained = self.root / "var/log/provision/provisioning.log"
        return (retained if retained.exists() else self.root / "only.log").read_text()

    @property
    def events(self) -> list[dict[str, Any]]:
        """The structured log."""
        lines = (self.root / "var/log/provision/podwright.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    @property
    def summary(self) -> dict[str, Any]:
        """The last summary."""
        return [event for event in self.events if event["event"] == "summary"][-1]

    def put(self, path: str, text: str) -> None:
        """Write a file of the node."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def program(self, name: str, lines: str) -> None:
        """Let a command be these bash lines."""
        self.put(f"own/{name}", f"#!/usr/bin/env bash\nset -euo pipefail\n{lines}\n")
        (self.root / "own" / name).chmod(0o755)

    def programs(self) -> list[str]:
        """What stand-ins were called with."""
        return (self.root / "run/fake/calls").read_text().splitlines()

    def only(self, *steps: str, serial: bool = False) -> str:
        """A bash line that runs only these steps and those that they need; one after another when asked for."""
        options = "--serial " if serial else ""
        return f"python3 -B {ONLY} {options}{self.bundle} {self.root} {' '.join(steps)} >>{self.root}/only.log 2>&1"

    def running(self, *services: str) -> None:
        """Let these services run."""
        for service in services:
            self.put(f"run/fake-systemd/{service}", "active")

    def calls(self, *about: str) -> list[str]:
        """What systemctl was told to do, questions left out; with `about`, only what names one of these."""
        log = self.root / "run/fake-systemd.log"
        lines = log.read_text().splitlines() if log.exists() else []
        return [line for line in lines if not about or any(word in line for word in about)]


def publish(bundle: Path, facts: dict[str, Any]) -> None:
    """Lay out what the publication puts below a prefix."""
    shutil.copytree(SCRIPTS, bundle, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    (bundle / "node.json").write_text(json.dumps(facts))
    sums = {
        str(file.relative_to(bundle)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in bundle.rglob("*")
        if file.is_file() and file.name != "manifest.json"
    }
    (bundle / "manifest.json").write_text(json.dumps({"version": 1, "digest": "0" * 64, "files": sums}))


def facts_of(
    group: dict[str, Any],
    orchestrator: str = "eks",
    file_systems: FileSystems | None = None,
    role: str = "compute",
    lifecycle: str = "strict",
) -> dict[str, Any]:
    """node.json of a cluster with one group `workers`, as the config room writes it. With Slurm it has that role.

    Strict unless said otherwise: a test of a step sees at the exit code that the step failed.
    """
    slurm = None
    if orchestrator == "slurm":
        slurm = SlurmFacts(
            configuration="api",
            strategy="managed",
            partitions={"dev": ("workers",)} if role == "compute" else {},
            controller_group="workers" if role == "controller" else "head",
            login_groups=("workers",) if role == "login" else (),
            accounting=None,
            shared_directory=None,
            failover_topic=None,
            groups=(),
            users=(),
            teams=(),
            priorities={},
            fair_share=False,
            budget_period=None,
        )
    facts = node_facts(
        cluster=ClusterFacts.model_validate(
            {
                "name": "test",
                "orchestrator": orchestrator,
                "region": "us-west-2",
                "dns_suffix": "amazonaws.com",
                "lifecycle": lifecycle,
                "setup_uri": "",
            }
        ),
        groups={"workers": InstanceGroup.model_validate({"count": 2, "zone": ZONE, **group})},
        types=catalog(),
        file_systems=file_systems or FileSystems(lustre={}, home=None),
        slurm=slurm,
    )
    return facts.model_dump(mode="json")


def resource_config(instance_type: str, address: str = ADDRESS, group: str = "workers") -> dict[str, Any]:
    """HyperPod's own description of the cluster, in the parts that are read."""
    instance = {"InstanceName": "workers-1", "InstanceId": "i-0123456789abcdef0", "CustomerIpAddress": address}
    return {
        "ClusterConfig": {"ClusterName": "test", "ClusterArn": "arn:aws:sagemaker:us-west-2:111122223333:cluster/abc"},
        "ClusterType": "Kubernetes",
        "InstanceGroups": [{"Name": group, "InstanceType": instance_type, "Instances": [instance]}],
    }


def make_node(
    folder: Path,
    instance_type: str = "ml.p5en.48xlarge",
    *,
    orchestrator: str = "eks",
    system: str = "amzn2023",
    file_systems: FileSystems | None = None,
    role: str = "compute",
    lifecycle: str = "strict",
    **group: Any,
) -> FakeNode:
    """A node of that type, as HyperPod hands it to the scripts. `group` has further settings of its instance group."""
    node = FakeNode(folder / "root", folder / "bundle")
    for path in (
        "opt/dlami/nvme",
        "opt/sagemaker",
        "etc/skel",
        "home",
        "usr/lib/systemd/system",
        "etc/systemd/system",
        "etc/logrotate.d",
    ):
        (node.root / path).mkdir(parents=True)
    node.put("var/lib/containerd/io.containerd.content/blob", "an image that came with the node")
    if orchestrator == "eks":
        node.put("var/lib/kubelet/config.json", "{}")
    node.put("etc/os-release", SYSTEMS[system])
    node.put("etc/passwd", "root:x:0:0:root:/root:/bin/bash\nubuntu:x:1000:1000:Ubuntu:/home/ubuntu:/bin/bash\n")
    node.put("etc/ssh/sshd_config", "Include /etc/ssh/sshd_config.d/*.conf\n")
    node.put("run/fake/chrony", "^* 169.254.169.123\n" if system == "amzn2023" else "^* 185.125.190.56\n")
    node.put("opt/ml/config/resource_config.json", json.dumps(resource_config(instance_type)))
    _hardware(node, catalog().get(instance_type), orchestrator)
    publish(
        node.bundle, facts_of({"instance_type": instance_type, **group}, orchestrator, file_systems, role, lifecycle)
    )
    return node


def _hardware(node: FakeNode, row: InstanceType, orchestrator: str) -> None:
    """What kernel and image show on such an instance."""
    node.put("proc/net/route", "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU\n")
    with (node.root / "proc/net/route").open("a") as routes:
        routes.write("ens5 00000000 0100100A 0003 0 0 512 00000000 0\nens6 00000000 0100100A 0003 0 0 600 00000000 0\n")
    node.put("sys/class/net/ens5/operstate", "up\n")
    for service in ("containerd", "kubelet") if orchestrator == "eks" else ("containerd", "docker", "slurmd"):
        node.put(f"usr/lib/systemd/system/{service}.service", "")
    for index in range(row.efa_interfaces):
        driver = node.root / f"sys/class/infiniband/rdmap{index:03}s0/device/driver"
        driver.parent.mkdir(parents=True)
        driver.symlink_to("../../../../bus/pci/drivers/efa")
    (node.root / "sys/bus/pci/drivers/efa").mkdir(parents=True)
    if row.efa_interfaces:
        node.put("sys/module/efa/version", "3.0.0g\n")
    if orchestrator == "slurm" and row.efa_interfaces:
        _program(node, "opt/amazon/efa/bin/fi_info")
    if row.nvme_gb:
        node.put("usr/lib/systemd/system/dlami-nvme.service", "")
        for index in (1, 2):
            node.put(f"sys/block/nvme{index}n1/device/model", "Amazon EC2 NVMe Instance Storage\n")
    node.put("run/fake/modules", "efa\ngdrdrv\nkefalnd\nlustre\nneuron\n")
    if row.accelerator_vendor == "nvidia":
        node.put("run/fake/gpus", "Disabled\n" * row.accelerator_count)
    if row.nvswitch:
        node.put("usr/lib/systemd/system/nvidia-fabricmanager.service", "")
    if row.imex:
        node.put("usr/lib/systemd/system/nvidia-imex.service", "")
        node.put("proc/devices", "Character devices:\n234 nvidia-caps-imex-channels\n")
    if row.accelerator_vendor == "neuron":
        for index in range(row.accelerator_count):
            node.put(f"dev/neuron{index}", "")
        _program(node, "opt/aws/neuron/bin/neuron-ls")


def _program(node: FakeNode, path: str) -> None:
    """A stand-in for a program that is called by its path."""
    (node.root / path).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(PROGRAMS / path.rpartition("/")[2], node.root / path)


def can_mount() -> bool:
    """Whether this machine lets us make a mount namespace."""
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*_namespace(), "true"], capture_output=True).returncode == 0
