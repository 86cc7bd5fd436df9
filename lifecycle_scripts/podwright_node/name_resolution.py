"""Waits until names of AWS services resolve: a new node's resolver answers some seconds after the node is up."""

from __future__ import annotations

import socket
import time

from .node import Failure, Node
from .steps import Step

PATIENCE_SECONDS = 120
LONGEST_PAUSE_SECONDS = 8


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
    deadline = time.monotonic() + PATIENCE_SECONDS
    pause = 0.5
    while not resolves(node):
        if time.monotonic() + pause > deadline:
            raise Failure(
                f"{service_name(node)} does not resolve after {PATIENCE_SECONDS} s",
                "turn DNS support of the VPC on, and see that its DHCP options name a resolver that knows AWS services",
            )
        node.log.say("waiting", step=STEP.name, name=service_name(node), seconds=pause)
        time.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE_SECONDS)


STEP = Step("name-resolution", applies_to=lambda node: True, check=resolves, apply=wait)
