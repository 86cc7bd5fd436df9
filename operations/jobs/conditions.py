"""What Kueue says of a Workload, in fewer words: why it waits, and who took its quota."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from ...planning.quota.amounts import amount_of, in_words, is_accelerator

_MORE: Final = re.compile(
    r"insufficient unused quota for (?P<resource>\S+) in flavor (?P<flavor>\S+), (?P<amount>\S+) more needed"
)
_NEVER: Final = re.compile(
    r"insufficient quota for (?P<resource>\S+) in flavor (?P<flavor>\S+), (?P<why>[^,;]*(?:\([^)]*\))?)"
)
_FITS: Final = re.compile(r'topology "(?P<topology>[^"]+)" (?P<why>[^.;]+)')
_UID: Final = re.compile(r"\(UID: (?P<workload>[\w-]+), JobUID: (?P<job>[\w-]+)\)")
_BY: Final = re.compile(r"preemptor path: (?P<path>\S+?);")
# Reasons of the condition Preempted. Source: Kueue 0.19, apis/kueue/v1beta2, 2026-11.
_REASONS: Final = {
    "InClusterQueue": "a higher priority in the same queue",
    "InCohortReclamation": "that team took back what it is guaranteed",
    "InCohortFairSharing": "that team uses less of its share",
    "InCohortReclaimWhileBorrowing": "a higher priority, which borrows too",
}
_MOST: Final = 160
_VERDICT: Final = "QuotaReserved"
_PREEMPTING: Final = "Pending the preemption"
_SIZE: Final = ("name", "count", "minCount", "topologyRequest")
# What pods need beside their containers, as Kueue compares it: pkg/util/pod, SpecShape.
_SHAPE: Final = (
    "nodeSelector",
    "affinity",
    "tolerations",
    "runtimeClassName",
    "priority",
    "topologySpreadConstraints",
    "overhead",
    "resourceClaims",
    "resources",
)


class Preemption(NamedTuple):
    """Who took the quota of a Workload."""

    time: str
    reason: str
    """Kueue's word for it."""
    job_uid: str
    """Of the job that has the quota now; empty where Kueue does not say."""
    queue: str
    """The ClusterQueue of that job; empty where Kueue does not say."""

    @property
    def in_words(self) -> str:
        """The reason for people."""
        return _REASONS.get(self.reason, self.reason)


def condition(status: Mapping[str, Any] | None, kind: str) -> Mapping[str, Any]:
    """A condition of an object's status; empty where it has none of that type."""
    conditions = (status or {}).get("conditions") or ()
    return next((entry for entry in conditions if entry.get("type") == kind), {})


def preemption(workload: Mapping[str, Any]) -> Preemption | None:
    """Who took the quota of a Workload that waits for it again; None where nobody did."""
    entry = condition(workload.get("status"), "Preempted")
    if entry.get("status") != "True":
        return None
    message = entry.get("message", "")
    job, by = _UID.search(message), _BY.search(message)
    queue = by["path"].rpartition("/")[2] if by else ""
    return Preemption(entry.get("lastTransitionTime", ""), entry.get("reason", ""), job["job"] if job else "", queue)


class Shortage(NamedTuple):
    """Resources of a flavor that a Workload lacks."""

    resource: str
    flavor: str
    amount: int
    """In the units of quotas."""


def short_reason(workload: Mapping[str, Any], asks: Mapping[str, int], free: Mapping[str, Mapping[str, int]]) -> str:
    """The reason why a Workload has no quota, in a sentence; Kueue's own where it is not about quota or topology.

    Args:
        workload: The Workload.
        asks: The resources that it requests, in the units of quotas.
        free: The resources that are free on nodes, by flavor. Kueue counts quota, which may be more than there is.
    """
    if not workload["spec"].get("active", True):
        return condition(workload.get("status"), "Evicted").get("message") or "switched off"
    message = condition(workload.get("status"), _VERDICT).get("message") or "Kueue has not said anything yet"
    lacks = [_on_nodes(each, asks, free) for each in _shortages(message)]
    # Processors and memory go with accelerators, so that these say it all.
    lacks = [each for each in lacks if is_accelerator(each.resource)] or lacks
    parts = [f"lacks {in_words(each.resource, each.amount)} of {each.flavor}" for each in lacks]
    parts += [f"{match['resource']} of {match['flavor']}: {match['why']}" for match in _NEVER.finditer(message)]
    parts += [f"topology {match['topology']} {match['why']}" for match in _FITS.finditer(message)]
    text = "; ".join(parts) or message
    return text if len(text) <= _MOST else f"{text[: _MOST - 1]}…"


def refuses(workload: Mapping[str, Any]) -> bool:
    """True if Kueue has looked for quota and nodes for a Workload, and has preempted nothing to get them."""
    entry = condition(workload.get("status"), _VERDICT)
    return _finds_nothing_free(entry) and _PREEMPTING not in entry.get("message", "")


def _shortages(message: str) -> list[Shortage]:
    """The shortages of quota that Kueue states, each once."""
    matches = {match[0]: match for match in _MORE.finditer(message)}.values()
    return [
        Shortage(match["resource"], match["flavor"], amount_of(match["resource"], match["amount"])) for match in matches
    ]


def _on_nodes(shortage: Shortage, asks: Mapping[str, int], free: Mapping[str, Mapping[str, int]]) -> Shortage:
    """A shortage by nodes where it is larger than the one by quota."""
    nodes = free.get(shortage.flavor)
    if nodes is None:
        return shortage
    missing = asks.get(shortage.resource, 0) - nodes.get(shortage.resource, 0)
    return shortage._replace(amount=max(shortage.amount, missing))


def with_verdicts(items: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Objects, among which a Workload that Kueue says nothing of has its verdict on an equal one of the same queue.

    Once one finds no room, Kueue passes equal ones by: they wait as it does, and no condition says so (feature gate
    SchedulingEquivalenceHashing). Source: Kueue 0.19.2, pkg/cache/queue/cluster_queue.go, 2026-11.
    """
    items = list(items)
    waiting = [item for item in items if item["kind"] == "Workload" and "admission" not in item.get("status", {})]
    verdicts = {
        _asks(item): entry for item in waiting if _finds_nothing_free(entry := condition(item.get("status"), _VERDICT))
    }
    passed_by = {
        item["metadata"]["uid"]: entry
        for item in waiting
        if not condition(item.get("status"), _VERDICT) and (entry := verdicts.get(_asks(item)))
    }
    return [_with_condition(item, passed_by.get(item["metadata"].get("uid"))) for item in items]


def _finds_nothing_free(verdict: Mapping[str, Any]) -> bool:
    return any(pattern.search(verdict.get("message", "")) for pattern in (_MORE, _NEVER, _FITS))


def _with_condition(item: dict[str, Any], entry: Mapping[str, Any] | None) -> dict[str, Any]:
    if entry is None:
        return item
    status = item.get("status", {})
    return item | {"status": status | {"conditions": [*status.get("conditions", ()), entry]}}


def _asks(workload: Mapping[str, Any]) -> str:
    """What Kueue compares of Workloads: where and with what priority each waits, and what its pods need."""
    spec = workload["spec"]
    queue = (workload["metadata"]["namespace"], spec.get("queueName"), spec.get("priority"))
    return json.dumps([*queue, *map(_shape, spec["podSets"])], sort_keys=True)


def _shape(part: Mapping[str, Any]) -> list[Any]:
    spec = part["template"]["spec"]
    containers = [_needs(one) for one in spec.get("containers", ())]
    first = [_needs(one) for one in spec.get("initContainers", ())]
    return [*map(part.get, _SIZE), *map(spec.get, _SHAPE), containers, first]


def _needs(container: Mapping[str, Any]) -> list[Any]:
    return [container.get("resources", {}).get("requests"), container.get("ports")]
