"""systemd units that the steps leave behind, so that a reboot, which runs no lifecycle script, ends as the boot did."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from .node import Node

FOLDER = "/etc/systemd/system"
_LOCK = threading.RLock()
"""Two steps may have drop-ins of one unit, which is stale to one while the other has written and not yet reloaded."""


def mount_unit(path: str) -> str:
    """Name of the unit that mounts `path`; systemd derives it from the path (systemd.unit(5), "String escaping")."""
    escaped = re.sub(r"[^A-Za-z0-9:_./]", lambda match: f"\\x{ord(match[0]):02x}", path.strip("/"))
    return escaped.replace("/", "-") + ".mount"


def installed(node: Node, units: Mapping[str, str], enabled: Sequence[str] = ()) -> bool:
    """Whether these units are there word for word, systemd has read them, and some of them start at boot."""
    with _LOCK:
        return (
            all(node.read(f"{FOLDER}/{name}") == text for name, text in units.items())
            and all(_wants(node, name, units[name]).is_symlink() for name in enabled)
            and not _is_stale(node, sorted({_owner(name) for name in units}))
        )


def install(node: Node, units: Mapping[str, str], enabled: Sequence[str] = ()) -> None:
    """Write these units, let systemd read them, and have some of them start at boot."""
    with _LOCK:
        for name, text in units.items():
            node.write(f"{FOLDER}/{name}", text)
        node.run("systemctl", "daemon-reload")
    if enabled:
        node.run("systemctl", "enable", *enabled)


def uninstall(node: Node, units: Mapping[str, str], enabled: Sequence[str] = ()) -> None:
    """Take these units away again."""
    if enabled and installed(node, units, enabled):
        node.run("systemctl", "disable", *enabled)
    with _LOCK:
        for name in units:
            node.remove(f"{FOLDER}/{name}")
        node.run("systemctl", "daemon-reload")


def is_loaded(node: Node, unit: str) -> bool:
    """Whether systemd knows a unit of that name."""
    return node.run("systemctl", "show", "--property=LoadState", "--value", unit).strip() == "loaded"


def is_active(node: Node, unit: str) -> bool:
    """Whether a unit runs, or is on its way there.

    A kubelet that waits for its configuration restarts again and again: systemd calls that activating.
    """
    state = node.run("systemctl", "show", "--property=ActiveState", "--value", unit).strip()
    return state not in ("inactive", "failed", "deactivating")


def _owner(name: str) -> str:
    """The unit that a file belongs to: itself, or the one that it is a drop-in of."""
    folder, _, file = name.partition("/")
    return folder[: -len(".d")] if file else folder


def _is_stale(node: Node, units: Sequence[str]) -> bool:
    """Whether systemd knows an older text of one of them."""
    return "yes" in node.run("systemctl", "show", "--property=NeedDaemonReload", "--value", *units)


def _wants(node: Node, name: str, text: str) -> Path:
    target = re.search(r"^WantedBy=(\S+)$", text, re.MULTILINE)
    if target is None:
        raise ValueError(f"{name} has no WantedBy")
    return node.path(f"{FOLDER}/{target[1]}.wants/{name}")
