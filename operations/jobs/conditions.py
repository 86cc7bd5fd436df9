"""What Kueue says of a Workload, in fewer words: why it waits, and who took its quota."""

import re
from collections.abc import Mapping
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


def short_reason(workload: Mapping[str, Any]) -> str:
    """Why a Workload has no quota, in a sentence; Kueue's own where it is another one than of quotas."""
    if not workload["spec"].get("active", True):
        return condition(workload.get("status"), "Evicted").get("message") or "switched off"
    entry = condition(workload.get("status"), "QuotaReserved")
    message = entry.get("message") or "Kueue has not said anything yet"
    lacks = list({match[0]: match for match in _MORE.finditer(message)}.values())
    # Processors and memory go with accelerators, so that these say it all.
    lacks = [match for match in lacks if is_accelerator(match["resource"])] or lacks
    parts = [f"lacks {_amount(match)} of {match['flavor']}" for match in lacks]
    parts += [f"{match['resource']} of {match['flavor']}: {match['why']}" for match in _NEVER.finditer(message)]
    parts += [f"topology {match['topology']} {match['why']}" for match in _FITS.finditer(message)]
    text = "; ".join(parts) or message
    return text if len(text) <= _MOST else f"{text[: _MOST - 1]}…"


def _amount(match: re.Match[str]) -> str:
    resource = match["resource"]
    return in_words(resource, amount_of(resource, match["amount"]))
