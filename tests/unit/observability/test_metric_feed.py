"""The metrics that the sandbox makes up for its clusters."""

import re
from types import SimpleNamespace
from typing import Any

from podwright.sandbox.protocol.clock import now
from podwright.sandbox.telemetry.feed import page


def hyperpod(count: int) -> Any:
    """A region with one cluster of that many nodes, which sends to the workspace `ws-1`."""
    node = {
        "instance_type": "ml.p5.48xlarge",
        "group": "h100",
        "zone_id": "usw2-az2",
        "status": lambda timestamp: "Running",
    }
    nodes = [
        SimpleNamespace(instance_id=f"i-{n:017x}", logical_id=str(n), address=f"10.0.0.{n}", **node)
        for n in range(count)
    ]
    cluster = SimpleNamespace(
        name="training", arn="arn", region="us-west-2", nodes=nodes, created=now(), request={}, extensions={}
    )
    cluster.extensions["observability"] = {"ConfigurationValues": {"workspace": "ws-1"}}
    return SimpleNamespace(
        faults={"exporters": []},
        clusters={("us-west-2", "training"): cluster},
        all=lambda region: [cluster],
        eks=SimpleNamespace(by_arn=lambda arn: None),
        schedulers=SimpleNamespace(all=lambda kind, region: []),
        clients=SimpleNamespace(account="111122223333"),
    )


def test_every_node_sends_and_a_large_cluster_shows_fewer_devices_of_each() -> None:
    text = page(hyperpod(22), "ws-1")
    senders = set(re.findall(r'^node_uname_info\{[^}]*\binstance="([^"]+)"', text, re.MULTILINE))
    assert len(senders) == 22
    devices = re.findall(r'^DCGM_FI_DEV_GPU_UTIL\{[^}]*\bgpu="(\d)"', text, re.MULTILINE)
    assert sorted(devices) == ["0"] * 22 + ["1"] * 16
    assert page(hyperpod(22), "ws-2").splitlines() == ["# EOF"]
