"""What service quotas keep HyperPod from: more instances of a type, in one cluster, or in all of them.

Only quotas that somebody set count. The words are those with which SageMaker refuses instances of other kinds.
"""

from collections import Counter
from collections.abc import Iterable

from ...config.catalog.service_quotas import quotas
from ..protocol.service import refuse
from ..services.quotas import Quotas
from .cluster import Group


def check_quotas(values: Quotas, before: list[Group], after: list[Group], others: list[Group]) -> None:
    """Raise the API's error for a cluster that grows beyond a quota; `others` are the groups of the other clusters."""
    known, grown, elsewhere = quotas(), _counts(after), _counts(others)
    existing = _counts(before)
    for (key, instance_type), count in grown.items():
        name = known[key].named(instance_type)
        limit = values.limit("sagemaker", name)
        used = existing[key, instance_type] + (0 if key == "cluster" else elsewhere[key, instance_type])
        delta = count - existing[key, instance_type]
        if limit is not None and delta > 0 and used + delta > limit:
            raise refuse(
                "ResourceLimitExceeded",
                f"The account-level service limit '{name}' is {limit:.0f} Instances, with current utilization of "
                f"{used} Instances and a request delta of {delta} Instances. Please use AWS Service Quotas to request "
                "an increase for this quota.",
            )


def _counts(groups: Iterable[Group]) -> Counter[tuple[str, str]]:
    """Instances by the key of the quota that they count for, and their type where it is one of a type."""
    counts: Counter[tuple[str, str]] = Counter()
    for group in groups:
        spot = "Spot" in group.specification.get("CapacityRequirements", {})
        for key in (("spot_type" if spot else "type", group.instance_type), ("cluster", ""), ("clusters", "")):
            counts[key] += group.target
        if spot:
            counts["spot_clusters", ""] += group.target
    return counts
