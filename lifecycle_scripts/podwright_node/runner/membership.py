"""Where HyperPod has put this node: its own list of the cluster, resource_config.json."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from .commands import run
from .failure import Failure

WROTE_IT = (
    "HyperPod writes it before it runs these scripts; let it replace the node, and report one that stays so to AWS"
)


@dataclass(frozen=True)
class Membership:
    """Group, type, id and address of this node. None for what the list does not tell."""

    group: str | None
    instance_type: str | None
    instance_id: str | None
    address: str | None

    @classmethod
    def of_this_node(cls, root: Path) -> Membership:
        """Found by the instance id, else by the addresses of this node.

        A group whose type the list does not tell, as one with several types may, has the type of the board.

        Raises:
            Failure: the list cannot be read, or it is not of the form that HyperPod documents.
        """
        ids = _instance_ids(root)
        instances = listed(root)
        for key, own in (("InstanceId", ids), ("CustomerIpAddress", run(("hostname", "-I")).split())):
            for listed_node in instances:
                entry = listed_node.entry
                if entry.get(key) in own:
                    instance_id = entry.get("InstanceId") or (ids[0] if ids else None)
                    instance_type = listed_node.instance_type or _board_type(root)
                    return cls(listed_node.group, instance_type, instance_id, entry.get("CustomerIpAddress"))
        return cls(None, None, ids[0] if ids else None, None)


class ListedNode(NamedTuple):
    """A node as HyperPod's list has it."""

    group: str
    instance_type: str | None
    entry: dict[str, Any]


def listed(root: Path) -> list[ListedNode]:
    """Every node of the cluster. HyperPod does not keep a worker's list up to date.

    What is said of other groups is no reason to lose this node: a group that has no nodes yet, no type of its own or
    keys that nobody here knows is taken as it is, and what has not the form of a group or a node is left out.

    Raises:
        Failure: the file cannot be read, or it holds no list of groups.
    """
    default = root / "opt/ml/config/resource_config.json"
    path = Path(os.environ.get("SAGEMAKER_RESOURCE_CONFIG_PATH", default))
    config = read_json(path, WROTE_IT)
    groups = config.get("InstanceGroups")
    if not isinstance(groups, list):
        raise Failure(f"{path} has not the form of a cluster's description: no list InstanceGroups", WROTE_IT)
    named = [group for group in groups if isinstance(group, dict) and isinstance(group.get("Name"), str)]
    return [
        ListedNode(group["Name"], group.get("InstanceType"), entry) for group in named for entry in _instances(group)
    ]


def _instances(group: dict[str, Any]) -> list[dict[str, Any]]:
    """The nodes of a group; none where it has none yet, which the list may write as null."""
    instances = group.get("Instances")
    return [entry for entry in instances if isinstance(entry, dict)] if isinstance(instances, list) else []


def read_json(path: Path, next_step: str) -> dict[str, Any]:
    """The JSON object in a file.

    Raises:
        Failure: the file is missing, unreadable or holds something else.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Failure(f"cannot read {path}: {error}", next_step) from error
    if not isinstance(value, dict):
        raise Failure(f"{path} holds a {type(value).__name__}, not an object", next_step)
    return value


def _instance_ids(root: Path) -> list[str]:
    # Nitro shows the instance id as the asset tag of the board; no call to the metadata service is needed.
    tag = root / "sys/devices/virtual/dmi/id/board_asset_tag"
    return tag.read_text(encoding="ascii").split() if tag.is_file() else []


def _board_type(root: Path) -> str | None:
    """The instance type that Nitro shows as the name of the board's product, as aws-ofi-nccl finds it too."""
    file = root / "sys/devices/virtual/dmi/id/product_name"
    name = file.read_text(encoding="ascii").strip() if file.is_file() else ""
    return f"ml.{name}" if re.fullmatch(r"[a-z0-9-]+\.[a-z0-9-]+", name) else None
