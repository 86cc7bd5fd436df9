"""A node of a Slurm cluster in a folder, without any Slurm."""

import json
from pathlib import Path
from typing import Any

from podwright.lifecycle_scripts.podwright_node.runner.log import Log
from podwright.lifecycle_scripts.podwright_node.runner.node import Node
from simulated_slurm import node_facts, resource_config

SLURM: dict[str, Any] = {
    "configuration": "provisioning_parameters",
    "strategy": "merge",
    "controller_group": "controller",
    "login_groups": [],
    "partitions": {"h200": ["h200"]},
    "accounting": None,
    "shared_directory": None,
    "failover_topic": None,
    "groups": [],
    "users": [],
    "teams": [],
    "priorities": {},
    "fair_share": True,
    "budget_period": None,
}
CONF = """\
ClusterName=test
SlurmctldHost=ip-10-16-5-9(10.16.5.9)  # the controller
SlurmUser=slurm
SchedulerParameters=bf_window=60
NodeName=ip-10-16-5-11 NodeAddr=10.16.5.11
NodeName=ip-10-16-5-12 NodeAddr=10.16.5.12
NodeName=ip-10-16-5-13 NodeAddr=10.16.5.13
NodeName=ip-10-16-5-14 NodeAddr=10.16.5.14
PartitionName=h200 Nodes=ALL
include accounting.conf
"""


class SlurmNode:
    """A node in a folder, with commands that only say what they were asked."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        self.log = Log(folder / "log.jsonl")
        self._said = folder / "log.jsonl"
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.put("/opt/slurm/etc/slurm.conf", CONF)
        self.put("/opt/slurm/etc/accounting.conf", "")
        self.command("scontrol", 'echo "slurm 22.05.8"')
        self.command("systemctl", "echo inactive")

    def put(self, path: str, text: str) -> None:
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def command(self, name: str, script: str) -> None:
        (self.bin / name).write_text(f'#!/bin/bash\necho "{name} $*" >>{self.bin}/asked\n{script}\n')
        (self.bin / name).chmod(0o755)

    @property
    def asked(self) -> list[str]:
        file = self.bin / "asked"
        return file.read_text().splitlines() if file.exists() else []

    @property
    def said(self) -> str:
        return self._said.read_text()

    def node(self, group: str = "controller", **slurm: Any) -> Node:
        facts = node_facts({**SLURM, **slurm})
        kind = {"controller": "ml.m5.4xlarge", "h200": "ml.p5en.48xlarge"}[group]
        return Node(self.root, facts, group, kind, self.log, "i-1", "10.16.5.9")

    def layers(self, **above: tuple[str, ...]) -> None:
        layers = {f"10.16.5.{name[1:]}": switches for name, switches in above.items()}
        self.put("/opt/ml/config/resource_config.json", json.dumps(resource_config("controller", layers)))
