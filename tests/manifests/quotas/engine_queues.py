"""Queues of KAI and YuniKorn as their schedulers read them, for comparing engines.

They read nothing but manifests, so they know what these say and not what they were rendered from.
Sources: KAI Scheduler, checks of a queue's limit (all queues above it count); yunikorn-core 1.9, check of a
configuration, restated.
"""

import base64
import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

Amounts = dict[str, Fraction]
_UNITS = {
    "": 1,
    "m": Fraction(1, 1000),
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
}
_NAME = re.compile(r"[a-zA-Z0-9_:#/@-]{1,64}")


@dataclass
class Queue:
    """A queue with what it guarantees and what it lets in; a resource that `limit` lacks has no limit."""

    name: str
    parent: "Queue | None"
    guaranteed: Amounts
    limit: Amounts
    weight: Fraction | None = None
    spec: dict[str, Any] = field(default_factory=dict)

    @property
    def above(self) -> Iterator["Queue"]:
        """The queue and all above it."""
        queue: Queue | None = self
        while queue:
            yield queue
            queue = queue.parent

    def most(self, resource: str) -> Fraction | None:
        """What it can hold while everybody else holds nothing; None without a limit."""
        limits = [queue.limit[resource] for queue in self.above if resource in queue.limit]
        return min(limits, default=None)


def kai_queues(manifests: list[dict[str, Any]]) -> dict[str, Queue]:
    """KAI's queues by name, in vCPUs, bytes and GPUs. Fails where a parent comes after its child."""
    units = {"cpu": ("cpu", Fraction(1, 1000)), "memory": ("memory", Fraction(10**6)), "gpu": ("nvidia.com/gpu", 1)}
    queues: dict[str, Queue] = {}
    for item in manifests:
        if item["kind"] != "Queue":
            continue
        spec, guaranteed, limit = item["spec"], {}, {}
        for name, (resource, unit) in units.items():
            amounts = spec["resources"][name]
            guaranteed[resource] = Fraction(str(amounts["quota"])) * unit
            if amounts["limit"] != -1:
                limit[resource] = Fraction(str(amounts["limit"])) * unit
        parent = queues[spec["parentQueue"]] if "parentQueue" in spec else None
        weight = Fraction(spec["resources"]["gpu"]["overQuotaWeight"])
        queues[item["metadata"]["name"]] = Queue(item["metadata"]["name"], parent, guaranteed, limit, weight, spec)
    return queues


def yunikorn_text(manifests: list[dict[str, Any]]) -> dict[str, Any]:
    """What the ConfigMap says, packed or not."""
    (item,) = (item for item in manifests if item["kind"] == "ConfigMap")
    packed = item.get("binaryData", {}).get("queues.yaml.gz")
    return json.loads(gzip.decompress(base64.b64decode(packed)) if packed else item["data"]["queues.yaml"])


def yunikorn_queues(manifests: list[dict[str, Any]]) -> dict[str, Queue]:
    """YuniKorn's queues by path, in vCPUs, bytes and pieces. Fails where YuniKorn refuses the configuration."""
    (partition,) = yunikorn_text(manifests)["partitions"]
    (root,) = partition["queues"]
    assert "resources" not in root, "the root queue has the size of the cluster"
    queues: dict[str, Queue] = {}
    _add(root, None, queues)
    return queues


def _add(spec: dict[str, Any], parent: Queue | None, queues: dict[str, Queue]) -> Amounts:
    """Adds a queue and those below; returns what is guaranteed below its parent through it."""
    assert _NAME.fullmatch(spec["name"]), spec["name"]
    resources = spec.get("resources", {})
    guaranteed, limit = (
        {"cpu" if name == "vcore" else name: _amount(text) for name, text in resources.get(actual, {}).items()}
        for actual in ("guaranteed", "max")
    )
    # All zeros are read as no limit at all.
    assert not limit or any(limit.values()), f"{spec['name']} would have no limit"
    queue = Queue(f"{parent.name}.{spec['name']}" if parent else spec["name"], parent, guaranteed, limit, None, spec)
    queues[queue.name] = queue
    for name, most in limit.items():
        assert guaranteed.get(name, 0) <= most, f"{queue.name} guarantees more {name} than it may hold"
        assert parent is None or all(most <= above.limit.get(name, most) for above in parent.above), queue.name
    names = [child["name"].lower() for child in spec.get("queues", [])]
    assert len(names) == len(set(names)), names
    below: Amounts = {}
    for child in spec.get("queues", []):
        for name, amount in _add(child, queue, queues).items():
            below[name] = below.get(name, Fraction(0)) + amount
    for name, amount in below.items():
        assert amount <= min(guaranteed.get(name, amount), limit.get(name, amount)), f"{queue.name} {name}"
    return guaranteed or below


def _amount(text: str) -> Fraction:
    match = re.fullmatch(r"([0-9]+)([a-zA-Z]*)", text)
    assert match, text
    return Fraction(match[1]) * _UNITS[match[2]]
