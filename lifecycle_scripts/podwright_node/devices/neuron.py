"""Trainium and Inferentia: driver, devices and tools."""

from __future__ import annotations

import json

from ..runner.applies import Only
from ..runner.failure import Failure
from ..runner.node import Node
from ..runner.retry import retry
from ..runner.steps import Step

TOOLS = "/opt/aws/neuron/bin"
PROFILE = "/etc/profile.d/podwright-neuron.sh"
AT_BOOT = "/etc/modules-load.d/podwright-neuron.conf"
PATIENCE_SECONDS = 60


def _shown(node: Node) -> int:
    return len(list(node.path("/dev").glob("neuron[0-9]*")))


def hindrances(node: Node) -> list[str]:
    """What keeps Neuron's tools from serving jobs on this node."""
    desired = node.type_facts["accelerator_count"]
    results = []
    tool = node.path(f"{TOOLS}/neuron-ls")
    if tool.exists():
        listed = len(json.loads(node.run(str(tool), "--json-output", timeout=60)))
        if listed != desired:
            results.append(f"neuron-ls lists {listed} of {desired} devices")
    elif node.orchestrator == "slurm":
        results.append(f"{TOOLS}/neuron-ls is not on this image, and jobs need Neuron's tools")
    return results


def is_ready(node: Node) -> bool:
    """Whether all devices are there, and the driver will be loaded after a reboot."""
    return node.read(AT_BOOT) == "neuron\n" and _shown(node) == node.type_facts["accelerator_count"]


def prepare(node: Node) -> None:
    """Load the driver, now and at every boot, and wait for the devices."""
    node.run("modprobe", "neuron")
    node.write(AT_BOOT, "neuron\n")

    def read() -> None:
        desired, shown = node.type_facts["accelerator_count"], _shown(node)
        if shown != desired:
            raise Failure(
                f"{node.instance_type} has {desired} Neuron devices and the driver shows {shown}",
                "see `dmesg | grep -i neuron`; let HyperPod replace the node",
            )

    retry(node, read, seconds=PATIENCE_SECONDS, what="Neuron devices")


def has_tools(node: Node) -> bool:
    """Whether jobs find Neuron's tools, and these see all devices."""
    return node.read(PROFILE) == _profile() and not hindrances(node)


def offer_tools(node: Node) -> None:
    """Put the tools on everybody's path, and wait until they see the devices."""
    node.write(PROFILE, _profile())

    def read() -> None:
        result = hindrances(node)
        if result:
            raise Failure("; ".join(result), "use an image with Neuron's tools; see `dmesg | grep -i neuron`")

    retry(node, read, seconds=PATIENCE_SECONDS, what="Neuron's tools")


_NEURON = Only(accelerator="neuron")
STEP = Step("neuron", applies_to=_NEURON, check=is_ready, apply=prepare, severity="fatal", rests_on="accelerator_count")
TOOLS_STEP = Step("neuron-tools", applies_to=_NEURON, check=has_tools, apply=offer_tools, needs=("neuron",))


def _profile() -> str:
    return f'export PATH="${{PATH}}:{TOOLS}"\n'
