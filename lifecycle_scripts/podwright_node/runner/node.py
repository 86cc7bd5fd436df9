"""This node: its file system, its facts, its place in the cluster, and how steps act on it."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from . import deadline
from .commands import run as run_command
from .failure import Failure
from .log import Log
from .membership import Membership, read_json

FACTS_VERSION = 1


@dataclass(frozen=True)
class Node:
    """What a step knows and may touch."""

    root: Path
    """Root of the file system; another than / in tests."""
    facts: dict[str, Any]
    """node.json."""
    group: str | None
    """Its instance group; None when HyperPod's own list does not name this node yet."""
    instance_type: str | None
    """Its type, from the same list."""
    log: Log
    instance_id: str | None = None
    """Its instance id; None when neither the board nor HyperPod's list tells."""
    address: str | None = None
    """Its IPv4 address in the environment's VPC, from HyperPod's list."""
    bundle: Path = Path("/nonexistent")
    """The folder that HyperPod copied here: node.json, scripts, and what was published with them."""

    @classmethod
    def here(cls, root: Path, bundle: Path, log: Log) -> Node:
        """The node that this runs on.

        Raises:
            Failure: node.json is of another version, HyperPod's resource_config.json cannot be read, or it names a
                group or an instance type that node.json does not know.
        """
        again = "deploy the cluster's stack again: it publishes scripts and node.json together"
        facts = read_json(bundle / "node.json", again)
        if facts.get("version") != FACTS_VERSION:
            raise Failure(f"node.json has version {facts.get('version')}, these scripts read {FACTS_VERSION}", again)
        for name in ("cluster", "file_systems", "groups", "instance_types"):
            if not isinstance(facts.get(name), dict) or (name == "cluster" and "orchestrator" not in facts[name]):
                raise Failure(f"node.json has no {name} of the form that these scripts read", again)
        own = Membership.of_this_node(root)
        if own.group is None:
            log.say("warning", note="resource_config.json names neither an address of this node nor its instance id")
        elif own.group not in facts["groups"]:
            raise Failure(
                f"resource_config.json says group {own.group}; node.json knows {', '.join(sorted(facts['groups']))}",
                again,
            )
        elif own.instance_type is None:
            log.say("warning", note=f"neither resource_config.json nor the board tells the type of group {own.group}")
        elif own.instance_type not in facts["instance_types"]:
            raise Failure(
                f"resource_config.json says type {own.instance_type}; node.json knows "
                f"{', '.join(sorted(facts['instance_types']))}",
                "name the type in the group of the environment and deploy the cluster's stack again",
            )
        return cls(root, facts, own.group, own.instance_type, log, own.instance_id, own.address, bundle)

    @property
    def orchestrator(self) -> str:
        """`eks` or `slurm`."""
        return self.facts["cluster"]["orchestrator"]

    @property
    def is_strict(self) -> bool:
        """Whether every failed step costs the node: `cluster.lifecycle: strict` in the environment's file."""
        return self.facts.get("cluster", {}).get("lifecycle") == "strict"

    @property
    def role(self) -> str:
        """`worker` with EKS; with Slurm `controller`, `login` or `compute`, by the node's group."""
        if self.orchestrator == "eks":
            return "worker"
        slurm = self.facts["slurm"]
        if self.group == slurm["controller_group"]:
            return "controller"
        return "login" if self.group in slurm["login_groups"] else "compute"

    @property
    def family(self) -> str:
        """Such as `p5en` for ml.p5en.48xlarge; empty when the type is not known."""
        return self.instance_type.split(".")[1] if self.instance_type else ""

    @property
    def type_facts(self) -> dict[str, Any]:
        """What node.json says about this node's instance type; empty when the type is not known."""
        return self.facts["instance_types"][self.instance_type] if self.instance_type else {}

    @property
    def group_facts(self) -> dict[str, Any]:
        """What node.json says about this node's group; empty when the group is not known."""
        return self.facts["groups"][self.group] if self.group else {}

    @property
    def zone(self) -> str | None:
        """Zone id, where the group has only one. Groups with EFA always do."""
        zones = self.group_facts.get("zones", [])
        return zones[0] if len(zones) == 1 else None

    @cached_property
    def system(self) -> str:
        """Operating system, ID and VERSION_ID of os-release: `amzn2023`, `ubuntu22.04`, `ubuntu24.04`."""
        text = self.read("/etc/os-release") or self.read("/usr/lib/os-release") or ""
        words = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
        return "".join(words.get(name, "").strip("\"'") for name in ("ID", "VERSION_ID"))

    def path(self, absolute: str) -> Path:
        """A path of this node below its root."""
        return self.root / absolute.lstrip("/")

    def run(self, *command: str, timeout: float = 120, stdin: str | None = None) -> str:
        """Run a command and return what it printed. It never outlives its step.

        Raises:
            Failure: the command is missing, fails, or takes longer than `timeout` seconds.
        """
        return run_command(command, timeout=timeout, stdin=stdin)

    def succeeds(self, *command: str, timeout: float = 30) -> bool:
        """Whether a command ends with 0, in time; also False where the image lacks it."""
        try:
            self.run(*command, timeout=timeout)
        except Failure:
            return False
        return True

    def shipped(self, path: str) -> str:
        """The text of a script that was published with ours. Raises Failure when it is missing."""
        file = self.bundle / path
        if not file.is_file():
            raise Failure(f"{file} is missing", "deploy the cluster's stack again")
        return file.read_text(encoding="utf-8")

    def read(self, absolute: str) -> str | None:
        """The text of a file; None when there is none."""
        path = self.path(absolute)
        return path.read_text(encoding="utf-8") if path.is_file() else None

    def write(self, absolute: str, text: str, mode: int = 0o644) -> None:
        """Put a file in place in one move: whoever reads it sees the old text or the new."""
        deadline.remaining()
        path = self.path(absolute)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.new")
        try:
            with temporary.open("w", encoding="utf-8") as file:
                file.write(text)
                os.fchmod(file.fileno(), mode)
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            # A full disk must not keep half a file.
            temporary.unlink(missing_ok=True)
            raise
        temporary.replace(path)

    def remove(self, absolute: str) -> None:
        """Take a file away, if it is there."""
        deadline.remaining()
        path = self.path(absolute)
        if path.is_symlink() or path.exists():
            path.unlink()

    def provisioning_parameters(self) -> dict[str, Any]:
        """HyperPod's provisioning_parameters.json, which only Slurm clusters have.

        Raises:
            Failure: it is missing or malformed.
        """
        path = self.path("/opt/ml/config/provisioning_parameters.json")
        return read_json(path, "publish provisioning_parameters.json beside the scripts: deploy the cluster's stack")

    def remember(self, name: str, **facts: Any) -> None:
        """Add to what a step knows about this node from an earlier run. It is gone when the root volume is new."""
        self.write(f"/var/lib/podwright/{name}.json", json.dumps({**self.remembered(name), **facts}) + "\n")

    def remembered(self, name: str) -> dict[str, Any]:
        """What `remember` kept under that name."""
        return json.loads(self.read(f"/var/lib/podwright/{name}.json") or "{}")
