"""The policy in the words of SageMaker: a ComputeQuota for each team, and the cluster's one scheduler configuration.

Everything that the service would fill in is sent, so that what it answers is what the template says. What a number of
instances holds stays a number of instances, because the service takes no network interfaces any other way.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ...config.catalog.mig import MIG_RESOURCE
from ...config.settings.governance.task_governance import ComputeQuota
from ...config.settings.governance.teams import Amount, Governance, Team
from .amounts import CPU, GPU, MEMORY, NEURON
from .policy import QuotaPolicy
from .stock import Flavor

_STRATEGIES: Final = {"lend_and_borrow": "LendAndBorrow", "lend": "Lend", "dont_lend": "DontLend"}
_PREEMPTION: Final = {"lower_priority": "LowerPriority", "never": "Never"}


def scheduler_config(governance: Governance, policy: QuotaPolicy) -> dict[str, Any]:
    """`SchedulerConfig` of AWS::SageMaker::ClusterSchedulerConfig, every default written out."""
    classes = [{"Name": name, "Weight": weight} for name, weight in policy.priorities.items()]
    return {
        "FairShare": _enabled(governance.fair_share),
        "IdleResourceSharing": _enabled(governance.idle_resource_sharing),
        **({"PriorityClasses": classes} if classes else {}),
    }


def compute_quotas(governance: Governance, policy: QuotaPolicy) -> dict[str, dict[str, Any]]:
    # Sorted: the service answers in an order of its own, and templates must not differ by the order of a file.
    """The properties of AWS::SageMaker::ComputeQuota by team, sorted, but for the cluster and tags.

    `policy` is the one for engine hyperpod, whose flavors are instance types. A type of which a team is guaranteed
    nothing is named with nothing, so that it may borrow there.
    """
    return {
        name: {
            **_record(name, governance.teams[name].compute_quota or ComputeQuota()),
            "ComputeQuotaConfig": _config(governance.teams[name], name, policy),
            # The service's default of 0 would lose every comparison.
            "ComputeQuotaTarget": {"TeamName": name, "FairShareWeight": governance.teams[name].weight},
        }
        for name in policy.teams
    }


def _record(team: str, quota: ComputeQuota) -> dict[str, str]:
    """What a quota is called and is for, and its state where the file says one."""
    texts = {"Name": quota.name or team, "Description": quota.description}
    texts["ActivationState"] = quota.state and quota.state.capitalize()
    return {field: text for field, text in texts.items() if text}


def _config(team: Team, name: str, policy: QuotaPolicy) -> dict[str, Any]:
    """The ComputeQuotaConfig of a team: resources, and limits of borrowing in the form that its strategy takes."""
    resources, limits = list[dict[str, Any]](), list[dict[str, Any]]()
    for flavor, shares in policy.teams[name].shares.items():
        result = policy.flavors[flavor]
        resources += _entries(result, team.quota, {resource: share.nominal for resource, share in shares.items()})
        if team.share == "lend_and_borrow" and _about(result, team.borrow_limits):
            most = {resource: share.borrowable or 0 for resource, share in shares.items()}
            limits += _entries(result, team.borrow_limits, most)
        elif shares and all(share.borrowable is None for share in shares.values()):
            # A percentage of nothing would be nothing.
            # As an absolute limit all instances of the type, which limits nothing.
            limits.append({"InstanceType": flavor, "Count": result.instances})
    sharing: dict[str, Any] = {"Strategy": _STRATEGIES[team.share]}
    if team.share == "lend_and_borrow":
        sharing["BorrowLimit"] = team.borrow_limit_percent
    if limits:
        sharing["AbsoluteBorrowLimits"] = limits
    return {
        "ComputeQuotaResources": resources,
        "ResourceSharingConfig": sharing,
        "PreemptTeamTasks": _PREEMPTION[team.preempt],
    }


def _about(flavor: Flavor, amounts: Mapping[str, Amount]) -> list[Amount]:
    """Those of the file's amounts that are about a type: under its own name or that of a group of it."""
    return [amount for key, amount in amounts.items() if key == flavor.name or key in flavor.groups]


def _entries(flavor: Flavor, amounts: Mapping[str, Amount], sums: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    """What the file's `amounts` say of one type: whole instances as such, else the `sums` that they come to."""
    instances = [amount.instances for amount in _about(flavor, amounts)]
    if None not in instances:
        yield {"InstanceType": flavor.name, "Count": sum(filter(None, instances))}
        return
    accelerators = sums.get(GPU, 0) + sums.get(NEURON, 0)
    parts: list[tuple[int, dict[str, Any]]] = [
        (count, {"AcceleratorPartition": {"Type": resource.partition("/")[2], "Count": count}})
        for resource, count in sorted(sums.items())
        if resource.startswith(MIG_RESOURCE) and count
    ]
    if accelerators or not parts:
        # An entry without accelerators still has to carry the vCPUs and the memory.
        parts.insert(0, (accelerators or 1, {"Accelerators": accelerators} if {GPU, NEURON} & sums.keys() else {}))
    whole, before = sum(weight for weight, _ in parts), 0
    for weight, fields in parts:
        # vCPU and memory are one sum for the type, and each entry without its own would get some by ratio.
        after = before + weight
        cpu, memory = (
            sums.get(name, 0) * after // whole - sums.get(name, 0) * before // whole for name in (CPU, MEMORY)
        )
        yield {"InstanceType": flavor.name, **fields, "VCpu": _number(cpu, 1000), "MemoryInGiB": _number(memory, 1024)}
        before = after


def _number(amount: int, unit: int) -> int | float:
    # A whole number without a decimal point, as the service returns it; else each comparison finds a difference.
    return amount // unit if amount % unit == 0 else amount / unit


def _enabled(on: bool) -> str:
    return "Enabled" if on else "Disabled"
