"""Installs packages of the operating system that the environment names, such as a Lustre client for one kernel."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from ..runner.node import Node
from ..runner.steps import Step
from .archives import architecture, fetched_one

INSTALL_SECONDS = 900


def matching(node: Node) -> list[dict[str, Any]]:
    """The packages for this node's system, architecture and kernel."""
    kernel = node.run("uname", "-r").strip()
    return [
        package
        for package in node.facts["software"]["packages"]
        if node.system in package["systems"]
        and package["architecture"] == architecture()
        and package["kernel"] in (None, kernel)
    ]


def installed(node: Node) -> bool:
    """Whether exactly these packages were installed before, by their digests."""
    return node.remembered("software-packages").get("installed", []) == _digests(matching(node))


def install(node: Node) -> None:
    """All of them at once, so that they may need one another; modules are found from then on."""
    packages = matching(node)
    with ExitStack() as stack:
        files = [
            str(stack.enter_context(fetched_one(node, f"package-{package['name']}", package["archives"])))
            for package in packages
        ]
        if node.system.startswith("ubuntu"):
            node.run("dpkg", "--configure", "-a", timeout=300)
            node.run("dpkg", "--install", *files, timeout=INSTALL_SECONDS)
        else:
            # A version that the image has newer, or has already, must not stop the others.
            node.run("rpm", "--upgrade", "--oldpackage", "--replacepkgs", *files, timeout=INSTALL_SECONDS)
    # Packages may bring kernel modules, which modprobe finds only by depmod's list.
    node.run("depmod", "-a")
    node.log.say("packages", step=STEP.name, installed=[package["name"] for package in packages])
    node.remember("software-packages", installed=_digests(packages))


STEP = Step(
    "packages-software",
    applies_to=lambda node: bool(node.facts.get("software", {}).get("packages")),
    check=installed,
    apply=install,
    needs=("efa-software",),
    seconds=2400,
)


def _digests(packages: list[dict[str, Any]]) -> list[str]:
    return sorted(archive["sha256"] for package in packages for archive in package["archives"])
