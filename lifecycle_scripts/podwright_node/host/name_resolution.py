"""Waits until names of AWS services resolve: a new node's resolver answers some seconds after the node is up."""

from __future__ import annotations

import socket

from ..runner.applies import Only
from ..runner.node import Node
from ..runner.retry import wait_until
from ..runner.steps import Step

PATIENCE_SECONDS = 120


def service_name(node: Node) -> str:
    """The name that is asked for: S3 of the region, which resolves in every VPC, closed ones included."""
    cluster = node.facts["cluster"]
    return f"s3.{cluster['region']}.{cluster['dns_suffix']}"


def resolves(node: Node) -> bool:
    """Whether the name resolves now."""
    try:
        socket.getaddrinfo(service_name(node), 443)
    except socket.gaierror:
        return False
    return True


def wait(node: Node) -> None:
    """Ask again, with pauses that grow, until the name resolves."""
    wait_until(
        node,
        lambda: resolves(node),
        seconds=PATIENCE_SECONDS,
        what=f"{service_name(node)} resolves",
        next_step="turn DNS support of the VPC on, and let its DHCP options name a resolver that knows AWS services",
    )


STEP = Step("name-resolution", applies_to=Only(), check=resolves, apply=wait, needs=("network",))
