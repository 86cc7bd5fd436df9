"""Waits until the node has a way out: its primary interface has an address and a default route."""

from __future__ import annotations

from ..runner.applies import Only
from ..runner.node import Node
from ..runner.retry import wait_until
from ..runner.steps import Step

PATIENCE_SECONDS = 60


def primary_interface(node: Node) -> str | None:
    """The interface of the default route with the lowest metric; None without a default route."""
    rows = [line.split() for line in (node.read("/proc/net/route") or "").splitlines()[1:]]
    defaults = [(int(row[6]), row[0]) for row in rows if row[1] == "00000000" and row[7] == "00000000"]
    return min(defaults)[1] if defaults else None


def is_up(node: Node) -> bool:
    """Whether there is a default route over an interface that is up."""
    interface = primary_interface(node)
    return interface is not None and (node.read(f"/sys/class/net/{interface}/operstate") or "").strip() == "up"


def wait(node: Node) -> None:
    """Ask again until it is."""
    wait_until(
        node,
        lambda: is_up(node),
        seconds=PATIENCE_SECONDS,
        what="a default route over an interface that is up",
        next_step="look at the subnet's route table and DHCP options, and at `journalctl -u systemd-networkd`",
    )


STEP = Step("network", applies_to=Only(), check=is_up, apply=wait)
