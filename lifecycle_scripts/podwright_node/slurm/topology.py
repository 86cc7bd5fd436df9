"""Which nodes are near one another: Slurm's topology file from the network layers that HyperPod labels nodes with.

Since April 2026 HyperPod keeps this file itself where it can (AWS announcement "automatic Slurm topology", 2026-04-23),
and what it wrote is left alone. An empty file beside a slurm.conf that asks for a topology has been seen on images with
Slurm 25.11; slurmctld does not survive that (aws-samples/sample-physical-ai-scaffolding-kit, pull requests 14 and 23,
2026).
"""

from __future__ import annotations

import json
import re
from typing import Any

from ..runner.applies import Only
from ..runner.membership import listed
from ..runner.node import Node
from ..runner.steps import Step
from . import control

MARK = "# Written by podwright from the network layers of resource_config.json."
CONF = f"{control.ETC}/topology.conf"
YAML = f"{control.ETC}/topology.yaml"
YAML_SINCE = (25, 5)
ROOT = "cluster"
UNKNOWN = "elsewhere"


def layers(entry: dict[str, Any]) -> list[str]:
    """Ids of the network nodes above an instance, the farthest first; empty when HyperPod gives none."""
    labels = entry.get("InstanceLabel") or {}
    # The number at the end counts from the top of the network.
    matches = {int(key[-1]): str(value) for key, value in labels.items() if re.search(r"network-node-layer-\d$", key)}
    return [matches[number] for number in sorted(matches)]


def switches(node: Node) -> dict[str, tuple[list[str], list[str]]]:
    """Switches below and nodes at each switch, by its name, the root first; empty when nothing is known.

    Every node stands somewhere: Slurm starts no job on one that no switch reaches.
    """
    names = control.nodes(node)
    by_address = {address: name for name, address in names.items()}
    above: dict[str, list[str]] = {}
    for listed_node in listed(node.root):
        address = listed_node.entry.get("CustomerIpAddress") or ""
        # HyperPod names nodes after their address, also where NodeAddr is a host name.
        name = by_address.get(address) or f"ip-{address.replace('.', '-')}"
        if name in names:
            above[name] = layers(listed_node.entry)
    # Where slurm.conf asks for a topology, an empty file ends slurmctld, so even nothing known is written.
    if not any(above.values()) and not _asked_for(node):
        return {}
    tree: dict[str, tuple[set[str], set[str]]] = {ROOT: (set(), set())}
    for name in names:
        parent = ROOT
        # What has no layers stands together at one switch: Slurm starts no job on a node outside the tree.
        for switch in above.get(name) or [UNKNOWN]:
            tree.setdefault(switch, (set(), set()))
            tree[parent][0].add(switch)
            parent = switch
        tree[parent][1].add(name)
    return {switch: (sorted(below), sorted(at)) for switch, (below, at) in tree.items()}


def _asked_for(node: Node) -> bool:
    """Whether slurm.conf itself wants a topology."""
    plugin = control.settings(node).get("topologyplugin", "")
    return plugin.lower() == "topology/tree" or bool(_partition_topologies(node))


def _partition_topologies(node: Node) -> list[str]:
    partitions = (line for line in control.lines(node) if line.lower().startswith("partitionname"))
    return sorted({name for line in partitions for name in re.findall(r"\bTopology=(\S+)", line, re.IGNORECASE)})


def conf_text(tree: dict[str, tuple[list[str], list[str]]]) -> str:
    """topology.conf (5): Slurm's form before 25.05."""
    rows = [MARK]
    for switch, (below, at) in tree.items():
        parts = [f"SwitchName={switch}"]
        parts += [f"Switches={','.join(below)}"] * bool(below) + [f"Nodes={','.join(at)}"] * bool(at)
        rows.append(" ".join(parts))
    return "\n".join(rows) + "\n"


def yaml_text(tree: dict[str, tuple[list[str], list[str]]], names: list[str]) -> str:
    """topology.yaml (5): Slurm's form since 25.05, with a tree for each name that a partition asks for.

    JSON is YAML too; one more comment on top says whose it is.
    """
    entries = [
        {
            "switch": switch,
            **({"children": ",".join(below)} if below else {}),
            **({"nodes": ",".join(at)} if at else {}),
        }
        for switch, (below, at) in tree.items()
    ]
    topologies = [
        {"topology": name, "cluster_default": number == 0, "tree": {"switches": entries}}
        for number, name in enumerate(names or ["podwright"])
    ]
    return f"{MARK}\n{json.dumps(topologies, indent=1)}\n"


def file(node: Node) -> tuple[str, str] | None:
    """Path and text of the file that should be there; None where there is nothing to say, or HyperPod said it."""
    new = control.version(node) >= YAML_SINCE
    path = YAML if new else CONF
    present = node.read(path) or ""
    # A file that says something and is not ours is HyperPod's, or that of a person.
    if not present.startswith(MARK) and re.search(r"[a-z]", re.sub(r"#.*", "", present)):
        return None
    tree = switches(node)
    if not tree:
        return None
    return path, yaml_text(tree, _partition_topologies(node)) if new else conf_text(tree)


def plugin(node: Node) -> dict[str, str]:
    """The setting that makes Slurm read topology.conf; topology.yaml needs none."""
    desired = file(node)
    return {"TopologyPlugin": "topology/tree"} if desired and desired[0] == CONF else {}


def is_written(node: Node) -> bool:
    """Whether the file says what is known."""
    desired = file(node)
    return desired is None or node.read(desired[0]) == desired[1]


def write(node: Node) -> None:
    """Write it; the step after this one lets Slurm read it."""
    desired = file(node)
    if desired:
        node.write(*desired)


STEP = Step(
    "slurm-topology",
    applies_to=Only(orchestrator="slurm", roles=("controller",)),
    check=is_written,
    apply=write,
    needs=("slurm-conf",),
)
