"""Keeps the clock right, by the Amazon Time Sync Service at its link-local address."""

from __future__ import annotations

from ..runner.applies import Only
from ..runner.node import Node
from ..runner.retry import wait_until
from ..runner.steps import Step
from ..runner.units import install, installed

SERVER = "169.254.169.123"
UNITS = {"amzn": "chronyd.service", "ubuntu": "chrony.service"}
LARGEST_ERROR_SECONDS = 0.1
PATIENCE_SECONDS = 90


def drop_in_unit(node: Node) -> dict[str, str]:
    """What lets chrony know the server after a restart, whatever its configuration says."""
    name = next((unit for system, unit in UNITS.items() if node.system.startswith(system)), UNITS["amzn"])
    return {f"{name}.d/50-podwright.conf": f"[Service]\nExecStartPost=-/usr/bin/chronyc {' '.join(_ADD)}\n"}


def is_synchronised(node: Node) -> bool:
    """Whether chrony knows the server, now and after a restart, and the clock is right."""
    return _knows(node) and installed(node, drop_in_unit(node)) and _is_right(node)


def synchronise(node: Node) -> None:
    """Tell chrony the server, unless the image did, and wait for the clock."""
    install(node, drop_in_unit(node))
    if not _knows(node):
        node.run("chronyc", *_ADD)
    wait_until(
        node,
        lambda: _is_right(node),
        seconds=PATIENCE_SECONDS,
        what=f"the clock is right to {LARGEST_ERROR_SECONDS} s",
        next_step="see `chronyc sources` and `chronyc tracking`",
    )


def has_chrony(node: Node) -> bool:
    """Whether the image keeps time with chrony; says so where it does not."""
    result = node.succeeds("chronyc", "--version")
    if not result:
        node.log.say("warning", note="the image has no chrony; whatever keeps its time is left as it is")
    return result


STEP = Step("clock", applies_to=Only(also=has_chrony), check=is_synchronised, apply=synchronise, attempts=4)

_ADD = ("add", "server", SERVER, "prefer", "iburst", "minpoll", "4", "maxpoll", "4")


def _knows(node: Node) -> bool:
    return SERVER in node.run("chronyc", "-n", "sources")


def _is_right(node: Node) -> bool:
    return node.succeeds("chronyc", "waitsync", "1", str(LARGEST_ERROR_SECONDS), "0", "1", timeout=10)
