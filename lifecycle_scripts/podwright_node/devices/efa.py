"""Checks EFA: that a node has all its devices, and that its software can use them."""

from __future__ import annotations

import re
from typing import Callable

from ..runner.applies import Only
from ..runner.failure import Failure
from ..runner.node import Node
from ..runner.retry import retry
from ..runner.steps import Step
from ..runner.units import is_loaded

FI_INFO = "/opt/amazon/efa/bin/fi_info"
MEMLOCK_BYTES = 16 * 2**30
"""What the EFA installer's own check asks for: enough for the bounce buffers of 128 cores."""
SERVICES = {"eks": "containerd", "slurm": "slurmd"}
"""What starts the processes that use EFA; they inherit its limits."""
PATIENCE_SECONDS = 60


def efa_devices(node: Node) -> list[str]:
    """All EFA devices that the kernel shows, by name."""
    result = node.path("/sys/class/infiniband").glob("*/device/driver")
    return sorted(driver.parent.parent.name for driver in result if driver.resolve().name == "efa")


def missing(node: Node) -> list[str]:
    """What keeps the node from having all its EFA devices."""
    desired, shown = node.type_facts["efa_interfaces"], efa_devices(node)
    results: list[str] = []
    if not node.path("/sys/module/efa").is_dir():
        results.append("the kernel module efa is not loaded")
    if len(shown) < desired:
        results.append(f"{node.instance_type} has {desired} EFA devices and the kernel shows {len(shown)}: {shown}")
    return results


def hindrances(node: Node) -> list[str]:
    """What keeps software on this node from using the EFA devices that it has."""
    shown = efa_devices(node)
    results: list[str] = []
    # On EKS pods bring their own user space, and the image may have none.
    if node.path(FI_INFO).exists() or node.orchestrator == "slurm":
        domains = _domains(node)
        if len(domains) != len(shown):
            results.append(f"`fi_info -p efa` shows {len(domains)} devices, the kernel {len(shown)}")
    service = SERVICES[node.orchestrator]
    if is_loaded(node, service):
        limit = node.run("systemctl", "show", "--property=LimitMEMLOCK", "--value", service).strip()
        if limit != "infinity" and int(limit) < MEMLOCK_BYTES:
            results.append(f"{service} may lock {limit} bytes of memory, less than {MEMLOCK_BYTES}")
    return results


def wait(node: Node) -> None:
    """Devices come one after another while a node boots: look again for a while."""
    _wait(node, missing, "let HyperPod replace a node whose devices are missing; see `dmesg`")


def wait_until_usable(node: Node) -> None:
    """The software may be late as well."""
    _wait(node, hindrances, "see that the image's EFA software is whole; jobs may go over TCP until then")


_WITH_EFA = Only(also=lambda node: node.type_facts.get("efa_interfaces", 0) > 0)
STEP = Step(
    "efa",
    applies_to=_WITH_EFA,
    check=lambda node: not missing(node),
    apply=wait,
    needs=("limits", "packages-software"),
    severity="fatal",
    rests_on="efa_interfaces",
)
USE = Step(
    "efa-use", applies_to=_WITH_EFA, check=lambda node: not hindrances(node), apply=wait_until_usable, needs=("efa",)
)


def _wait(node: Node, problems: Callable[[Node], list[str]], next_step: str) -> None:
    def read() -> None:
        result = problems(node)
        if result:
            raise Failure("; ".join(result), next_step)

    retry(node, read, seconds=PATIENCE_SECONDS, what="EFA")


def _domains(node: Node) -> set[str]:
    text = node.run(str(node.path(FI_INFO)), "-p", "efa", timeout=30)
    # One device is a domain for each kind of endpoint: rdmap79s0-rdm and rdmap79s0-dgrm.
    return {re.sub(r"-(rdm|dgrm)$", "", name) for name in re.findall(r"^\s*domain:\s*(\S+)", text, re.MULTILINE)}
