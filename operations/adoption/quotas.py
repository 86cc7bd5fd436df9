"""Task governance of a running cluster in the words of an environment file."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from .mapped import Mapped
from .reading import RunningCluster

_SHARING: Final = {"LendAndBorrow": "lend_and_borrow", "Lend": "lend", "DontLend": "dont_lend"}
_PREEMPTION: Final = {"LowerPriority": "lower_priority", "Never": "never"}
_AMOUNTS: Final = {"Accelerators": "accelerators", "VCpu": "vcpu", "MemoryInGiB": "memory_gib"}


def governance(running: RunningCluster, result: Mapped) -> dict[str, Any]:
    """Priorities, sharing and the quotas of teams; empty where the cluster has neither."""
    if not running.quotas and running.scheduler is None:
        return {}
    settings: dict[str, Any] = {"engine": "hyperpod"}
    if running.scheduler is not None:
        settings |= _sharing(running, running.scheduler)
    teams = {quota["ComputeQuotaTarget"]["TeamName"]: _team(quota) for quota in running.quotas}
    settings["teams"] = dict(sorted(teams.items()))
    if len(teams) < len(running.quotas):
        result.note(("governance", "teams"), "A team with several quotas has only the last of them here")
    return settings


def _sharing(running: RunningCluster, scheduler: Mapping[str, Any]) -> dict[str, Any]:
    """What the scheduler configuration says; what is AWS's default stays unsaid."""
    config = scheduler["SchedulerConfig"]
    settings: dict[str, Any] = {}
    if classes := config.get("PriorityClasses"):
        settings["priorities"] = {each["Name"]: each["Weight"] for each in classes}
    for field, key in (("fair_share", "FairShare"), ("idle_resource_sharing", "IdleResourceSharing")):
        if config.get(key) == "Disabled":
            settings[field] = False
    named = {
        "name": scheduler["Name"] if scheduler["Name"] != running.cluster["ClusterName"] else None,
        "description": scheduler.get("Description"),
    }
    if any(named.values()):
        settings["task_governance"] = {field: value for field, value in named.items() if value}
    return settings


def _team(quota: Mapping[str, Any]) -> dict[str, Any]:
    """What a compute quota says of its team."""
    config, target = quota["ComputeQuotaConfig"], quota["ComputeQuotaTarget"]
    sharing = config.get("ResourceSharingConfig", {})
    settings: dict[str, Any] = {"quota": _amounts(config.get("ComputeQuotaResources", ()))}
    if "Strategy" in sharing:
        settings["share"] = _SHARING[sharing["Strategy"]]
    if "BorrowLimit" in sharing and sharing.get("Strategy") == "LendAndBorrow":
        settings["borrow_limit_percent"] = sharing["BorrowLimit"]
    if limits := sharing.get("AbsoluteBorrowLimits"):
        settings["borrow_limits"] = _amounts(limits)
    settings["weight"] = target.get("FairShareWeight", 0)
    if preempt := config.get("PreemptTeamTasks"):
        settings["preempt"] = _PREEMPTION[preempt]
    named = {
        "name": quota["Name"] if quota["Name"] != target["TeamName"] else None,
        "description": quota.get("Description"),
        "state": "disabled" if quota.get("ActivationState") == "Disabled" else None,
    }
    if any(named.values()):
        settings["compute_quota"] = {field: value for field, value in named.items() if value}
    return settings


def _amounts(entries: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Amounts by instance type: whole instances, or the sums of what its entries hold."""
    results: dict[str, Any] = {}
    for entry in entries:
        kind = entry["InstanceType"]
        if "Count" in entry:
            results[kind] = entry["Count"]
            continue
        amount = results.setdefault(kind, {})
        for key, field in _AMOUNTS.items():
            if key in entry:
                amount[field] = _number(amount.get(field, 0) + entry[key])
        if partition := entry.get("AcceleratorPartition"):
            amount.setdefault("mig", {})[partition["Type"]] = partition["Count"]
    return results


def _number(value: float) -> int | float:
    return int(value) if value == int(value) else value
