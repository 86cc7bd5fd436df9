"""A node in a folder: a mount namespace of its own, a root below a temporary folder, and a stand-in for systemctl."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from podwright.config.catalog import catalog
from podwright.config.groups import InstanceGroup
from podwright.config.node_facts import ClusterFacts, FileSystems, node_facts

SCRIPTS = Path(__file__).parents[1] / "lifecycle_scripts"
FAKES = Path(__file__).parent / "node" / "fakes"
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

    def shell(self, script: str, *, timeout: int = 60) -> subprocess.CompletedProcess[str]:
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
            "PATH": f"{bin_folder}:/usr/sbin:/usr/bin:/sbin:/bin",
            "PODWRIGHT_ROOT": str(self.root),
            "PODWRIGHT_LOG_FLUSH_SECONDS": "0",
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
        """What CloudWatch would keep."""
        return (self.root / "var/log/provision/provisioning.log").read_text()

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

    def running(self, *services: str) -> None:
        """Let these services run."""
        for service in services:
            self.put(f"run/fake-systemd/{service}", "active")

    def calls(self) -> list[str]:
        """What systemctl was told to do, questions left out."""
        log = self.root / "run/fake-systemd.log"
        return log.read_text().splitlines() if log.exists() else []


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


def facts_of(group: dict[str, Any]) -> dict[str, Any]:
    """node.json of a cluster with one group `workers`, as the config room writes it."""
    facts = node_facts(
        cluster=ClusterFacts(name="test", orchestrator="eks", region="us-west-2", dns_suffix="amazonaws.com"),
        groups={"workers": InstanceGroup.model_validate({"count": 2, "zone": "usw2-az2", **group})},
        types=catalog(),
        file_systems=FileSystems(lustre={}, home=None),
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


def make_node(folder: Path, instance_type: str = "ml.p5en.48xlarge", **group: Any) -> FakeNode:
    """A node of that type, as HyperPod hands it to the scripts."""
    node = FakeNode(folder / "root", folder / "bundle")
    for path in ("opt/dlami/nvme", "opt/sagemaker"):
        (node.root / path).mkdir(parents=True)
    node.put("var/lib/containerd/io.containerd.content/blob", "an image that came with the node")
    node.put("var/lib/kubelet/config.json", "{}")
    node.put("opt/ml/config/resource_config.json", json.dumps(resource_config(instance_type)))
    publish(node.bundle, facts_of({"instance_type": instance_type, **group}))
    return node


def can_mount() -> bool:
    """Whether this machine lets us make a mount namespace."""
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*_namespace(), "true"], capture_output=True).returncode == 0
