"""Applies service quotas to HyperPod: instances of a type, in one cluster, and in all clusters.

Only changed quotas apply. The messages are those of SageMaker for instances of other services.
"""

from collections import Counter
from collections.abc import Iterable

from ...config.catalog.service_quotas import quotas
from ..protocol.service import refuse
from ..services.quotas import Quotas
from .cluster import Group


def check_quotas(values: Quotas, before: list[Group], after: list[Group], others: list[Group]) -> None:
    """Raise the API's error if a cluster exceeds a quota. `others` are the groups of all other clusters."""
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
    """Return the number of instances by quota, and by type for quotas of one type."""
    counts: Counter[tuple[str, str]] = Counter()
    for group in groups:
        spot = "Spot" in group.specification.get("CapacityRequirements", {})
        for key in (("spot_type" if spot else "type", group.instance_type), ("cluster", ""), ("clusters", "")):
            counts[key] += group.target
        if spot:
            counts["spot_clusters", ""] += group.target
    return counts
