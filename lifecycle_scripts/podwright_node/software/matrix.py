"""Checks that the versions of EFA, NCCL and what belongs to them work together, and keeps them in a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..runner.applies import Only
from ..runner.failure import Failure
from ..runner.node import Node
from ..runner.steps import Step
from . import versions as software_versions
from .versions import older


def mismatches(facts: Mapping[str, Any], versions: Mapping[str, str]) -> list[tuple[str, str]]:
    """Level and text of what does not go together, by the rows of node.json. What is absent is not judged."""
    names = facts["names"]
    problems: list[tuple[str, str]] = []
    for row in facts["needs"]:
        component, needs, has = row["component"], row["needs"], versions.get(row["needs"])
        # A rule begins with the release that needs it; earlier ones work with less.
        if component not in versions or has is None or older(versions[component], row["since"]):
            continue
        if older(has, row["at_least"]):
            asks = f"{names.get(component, component)} {versions[component]}".rstrip()
            desired = f"{names.get(needs, needs)} {row['at_least']}"
            problems.append((row["level"], f"{asks} needs {desired} or newer, found {has}: {row['why']}"))
    return problems


def missing(node: Node, versions: Mapping[str, str]) -> list[tuple[str, str]]:
    """Level and text of what is absent, or older than the environment asks for."""
    facts = node.facts["software"]
    problems: list[tuple[str, str]] = []
    for component, desired in facts["versions"].items():
        if not _concerns(node, component):
            continue
        has = versions.get(component)
        if has is None or older(has, desired):
            name = facts["names"].get(component, component)
            problems.append(("error", f"the environment asks for {name} {desired}, found {has or 'none'}"))
    if (
        node.orchestrator == "slurm"
        and "nccl" in versions
        and "aws_ofi_nccl" not in versions
        and _concerns(node, "efa")
    ):
        problems.append(("warning", "NCCL has no plug-in for EFA on the host: jobs outside of containers go over TCP"))
    return problems


def sound(node: Node) -> bool:
    """Whether this node was judged as it is now."""
    return node.remembered("software").get("found") == software_versions.found(node)


def judge(node: Node) -> None:
    """Compare, write the versions down, and fail where something cannot work."""
    versions = software_versions.found(node)
    # The instance family counts as a component of its own, for which some rows ask for a minimum.
    problems = [*mismatches(node.facts["software"], {**versions, node.family: ""}), *missing(node, versions)]
    for level, text in problems:
        node.log.say("warning", step=STEP.name, level=level, note=text)
    errors = [text for level, text in problems if level == "error"]
    if errors and node.facts["software"]["mismatch"] == "fail":
        raise Failure(
            "; ".join(errors),
            "choose versions that fit under cluster.node_software, or another image; mismatch: warn lets nodes pass",
        )
    node.log.say("software", step=STEP.name, **versions)
    node.remember("software", found=versions, problems=problems)


def concerned(node: Node) -> bool:
    """Nodes with EFA or NVIDIA GPUs."""
    return node.type_facts.get("efa_interfaces", 0) > 0 or node.type_facts.get("accelerator_vendor") == "nvidia"


STEP = Step(
    "software-versions",
    applies_to=Only(also=concerned),
    check=sound,
    apply=judge,
    needs=("efa-software", "nccl-software", "gdrcopy-software", "plugin-software", "nccl-tests-software", "gpus"),
)


def _concerns(node: Node, component: str) -> bool:
    """Whether a component belongs on this host at all."""
    kernel_only = node.group_facts["software"]["kernel_only"]
    efa, nvidia = node.type_facts["efa_interfaces"] > 0, node.type_facts["accelerator_vendor"] == "nvidia"
    if component in ("efa_installer", "efa"):
        return efa
    # Pods that bring their own libraries leave of all this only the kernel modules on the host.
    return nvidia and (efa if component == "gdrcopy" else not kernel_only)
