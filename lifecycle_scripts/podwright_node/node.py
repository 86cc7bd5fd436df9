"""This node: its file system, its facts, its group, and how steps act on it."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .log import Log

FACTS_VERSION = 1


class Failure(Exception):
    """Something that keeps the node from being set up: what was seen, and what to do next."""

    def __init__(self, saw: str, next_step: str) -> None:
        super().__init__(f"{saw}; {next_step}")


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

    @classmethod
    def here(cls, root: Path, bundle: Path, log: Log) -> Node:
        """The node that this runs on.

        Raises:
            Failure: node.json is of another version, or HyperPod's resource_config.json cannot be read.
        """
        facts = _json(bundle / "node.json", "deploy the cluster's stack again")
        if facts.get("version") != FACTS_VERSION:
            raise Failure(
                f"node.json has version {facts.get('version')}, these scripts read {FACTS_VERSION}",
                "deploy the cluster's stack again: it publishes both together",
            )
        group, instance_type = _membership(root)
        if group is None:
            log.say("warning", note="resource_config.json names neither an address of this node nor its instance id")
        elif group not in facts["groups"]:
            raise Failure(
                f"resource_config.json says group {group}; node.json knows {', '.join(sorted(facts['groups']))}",
                "deploy the cluster's stack again",
            )
        return cls(root, facts, group, instance_type, log)

    def path(self, absolute: str) -> Path:
        """A path of this node below its root."""
        return self.root / absolute.lstrip("/")

    def run(self, *command: str) -> str:
        """Run a command and return what it printed.

        Raises:
            Failure: the command is missing or fails.
        """
        return _run(*command)

    def write(self, absolute: str, text: str) -> None:
        """Put a file in place in one move: whoever reads it sees the old text or the new."""
        path = self.path(absolute)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.new")
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)


def _run(*command: str) -> str:
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout
    except FileNotFoundError as error:
        raise Failure(f"{command[0]} is not on this image", "use a HyperPod image, or one built on it") from error
    except subprocess.CalledProcessError as error:
        said = (error.stderr or error.stdout).strip()
        raise Failure(f"`{' '.join(command)}` ended with {error.returncode}: {said}", "see the journal") from error


def _json(path: Path, next_step: str) -> dict[str, Any]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Failure(f"cannot read {path}: {error}", next_step) from error


def _membership(root: Path) -> tuple[str | None, str | None]:
    """Group and instance type of this node, by its instance id, else by its addresses."""
    default = root / "opt/ml/config/resource_config.json"
    path = Path(os.environ.get("SAGEMAKER_RESOURCE_CONFIG_PATH", default))
    config = _json(path, "HyperPod writes it before it runs these scripts; report this node to AWS support")
    instances = [(group, instance) for group in config["InstanceGroups"] for instance in group["Instances"]]
    for key, names in (("InstanceId", _instance_ids), ("CustomerIpAddress", _addresses)):
        own = names(root)
        for group, instance in instances:
            if instance.get(key) in own:
                return group["Name"], group["InstanceType"]
    return None, None


def _instance_ids(root: Path) -> list[str]:
    # Nitro shows the instance id as the asset tag of the board; no call to the metadata service is needed.
    tag = root / "sys/devices/virtual/dmi/id/board_asset_tag"
    return tag.read_text(encoding="ascii").split() if tag.is_file() else []


def _addresses(_: Path) -> list[str]:
    return _run("hostname", "-I").split()
