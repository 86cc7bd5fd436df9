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


def problems(node: Node) -> list[str]:
    """What is wrong with the Neuron devices of this node."""
    desired = node.type_facts["accelerator_count"]
    shown = len(list(node.path("/dev").glob("neuron[0-9]*")))
    results = []
    if shown != desired:
        results.append(f"{node.instance_type} has {desired} Neuron devices and the driver shows {shown}")
    tool = node.path(f"{TOOLS}/neuron-ls")
    if tool.exists():
        listed = len(json.loads(node.run(str(tool), "--json-output", timeout=60)))
        if listed != desired:
            results.append(f"neuron-ls lists {listed} of {desired} devices")
    elif node.orchestrator == "slurm":
        results.append(f"{TOOLS}/neuron-ls is not on this image, and jobs need Neuron's tools")
    return results


def is_ready(node: Node) -> bool:
    """Whether all devices are there, and driver and tools will be found after a reboot."""
    return node.read(AT_BOOT) == "neuron\n" and node.read(PROFILE) == _profile() and not problems(node)


def prepare(node: Node) -> None:
    """Load the driver, put the tools on everybody's path, and wait for the devices."""
    node.run("modprobe", "neuron")
    node.write(AT_BOOT, "neuron\n")
    node.write(PROFILE, _profile())

    def read() -> None:
        result = problems(node)
        if result:
            raise Failure("; ".join(result), "see `dmesg | grep -i neuron`; let HyperPod replace the node")

    retry(node, read, seconds=PATIENCE_SECONDS, what="Neuron devices")


STEP = Step("neuron", applies_to=Only(accelerator="neuron"), check=is_ready, apply=prepare)


def _profile() -> str:
    return f'export PATH="${{PATH}}:{TOOLS}"\n'
