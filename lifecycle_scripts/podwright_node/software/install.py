"""What the installing steps share: whether one is needed, and how it ends in the same state wherever it is killed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Callable

from ..runner.failure import Failure
from ..runner.node import Node
from .versions import PREFIX, found, older, own, same


def installs(component: str) -> Callable[[Node], bool]:
    """Whether the environment has this node's group install a component, for `Step.applies_to`."""

    def asked(node: Node) -> bool:
        return component in node.group_facts.get("software", {}).get("components", {})

    return asked


def wanted(node: Node, component: str) -> str:
    """The version that is asked for."""
    return node.group_facts["software"]["components"][component]["version"]


def satisfied(node: Node, component: str) -> bool:
    """Whether the node has what is asked for, and no installation was cut off."""
    if node.remembered(f"software-{component}").get("unfinished"):
        return False
    has, asks = found(node).get(component, ""), wanted(node, component)
    # pin means this version and no other; otherwise an image that is newer is as good.
    if node.facts["software"]["install"] == "pin":
        return same(has, asks)
    return bool(has) and not older(has, asks)


@contextmanager
def installation(node: Node, component: str) -> Iterator[None]:
    """Remembers that an installation has begun until it is through; a killed one is done again from its beginning."""
    node.remember(f"software-{component}", unfinished=True)
    yield
    node.remember(f"software-{component}", unfinished=False)


@contextmanager
def prefix(node: Node, component: str) -> Iterator[Path]:
    """An empty folder of its own for a version; programs find it once the `with` block ends well.

    Whatever an earlier version left stays in place until then.
    """
    name = f"{component}-{wanted(node, component)}"
    folder = node.path(f"{PREFIX}/software/{name}")
    if own(node, component) != wanted(node, component) or node.remembered(f"software-{component}").get("unfinished"):
        # What is there may be half of an installation that was killed.
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    yield folder
    link, new = node.path(f"{PREFIX}/{component}"), node.path(f"{PREFIX}/.{component}.new")
    new.unlink(missing_ok=True)
    # A link is replaced in one step, so a program always finds the former version or the new one, and never none.
    new.symlink_to(f"software/{name}")
    new.replace(link)
    if (folder / "lib").is_dir():
        # Before all others, so that it wins over what the image has of the same library.
        node.write(f"/etc/ld.so.conf.d/000-podwright-{component}.conf", f"{PREFIX}/{component}/lib\n")
        node.run("ldconfig")


def require_tools(node: Node, component: str, *tools: str) -> None:
    """Raises Failure when the image lacks a program that is needed to build a component."""
    lacking = [tool for tool in tools if shutil.which(tool) is None and not node.path(tool).exists()]
    if lacking:
        raise Failure(
            f"building {component} needs {', '.join(lacking)}, which this image lacks",
            f"use an image that has it, or leave {component} out of cluster.node_software.versions",
        )
