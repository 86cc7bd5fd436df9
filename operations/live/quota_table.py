"""The teams' quotas in what is deployed, as SageMaker has them."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from ...config.catalog.instance_types import environment_types
from ...config.settings.environment import Environment
from ...planning.quota.guarantees import beyond
from ...planning.quota.overrides import with_overrides
from ...planning.quota.policy import environment_policy
from ..aws.account import Account
from ..aws.calls import get, pages
from ..aws.unseen import Unseen, attempt

Report = dict[str, Any]
_SHARING: Final = {"LendAndBorrow": "lends, borrows up to", "Lend": "lends", "DontLend": "keeps its own"}
_COUNTED: Final = {"Count": "instances", "Accelerators": "accelerators", "VCpu": "vCPU", "MemoryInGiB": "GiB"}


def quota_rows(environment: Environment, account: Account, cluster_arn: str) -> list[Report]:
    """The quotas of a cluster in the order of the teams' names; none with another engine than task governance."""
    if environment.governance.engine != "hyperpod":
        return []
    key = "ComputeQuotaSummaries"
    result = attempt(lambda: pages(account, "sagemaker", "list_compute_quotas", key, ClusterArn=cluster_arn))
    if isinstance(result, Unseen):
        # Whoever may look at clusters may not always look at quotas.
        return [{"team": "", "status": "", "resources": [], "message": result.code or result.why}]
    return sorted((_row(item, account) for item in result), key=lambda row: row["team"])


def _row(quota: Report, account: Account) -> Report:
    """A team's quota as plain data; why it failed is asked for only where it did, as each takes a call."""
    config, target = quota.get("ComputeQuotaConfig", {}), quota["ComputeQuotaTarget"]
    sharing, failed = config.get("ResourceSharingConfig", {}), quota["Status"].endswith("Failed")
    id = quota["ComputeQuotaId"]
    result = get(account, "sagemaker", "describe_compute_quota", ComputeQuotaId=id) if failed else {}
    return {
        "team": target["TeamName"],
        "weight": target.get("FairShareWeight", 0),
        "share": sharing.get("Strategy", ""),
        "borrow_limit_percent": sharing.get("BorrowLimit"),
        "borrow_limits": sharing.get("AbsoluteBorrowLimits", []),
        "resources": config.get("ComputeQuotaResources", []),
        "status": quota["Status"],
        "message": result.get("FailureReason", ""),
    }


def quotas_beyond(environment: Environment, running: Mapping[str, int]) -> list[Report]:
    """What quotas in force guarantee beyond the nodes that take work now, by flavor.

    Args:
        environment: What is deployed.
        running: Nodes that take work, by group.
    """
    if environment.governance.engine is None or not environment.governance.teams:
        return []
    current = with_overrides(environment, datetime.now(UTC))
    policy = environment_policy(current, environment_types(environment.instance_types))
    return [each._asdict() for each in beyond(policy, running)]


def quota_cells(row: Report) -> list[str]:
    """A row for people: team, what it is guaranteed, how it shares, and its weight."""
    share = _SHARING.get(row.get("share", ""), "")
    if row.get("share") == "LendAndBorrow":
        # A limit in numbers takes the percentage's place for its type.
        share = "\n".join([f"{share} {row['borrow_limit_percent']} %", *map(_amount, row["borrow_limits"])])
    return [row["team"], "\n".join(map(_amount, row["resources"])), share, str(row.get("weight", ""))]


def _amount(entry: Report) -> str:
    counts = {word: entry[name] for name, word in _COUNTED.items() if name in entry}
    parts = [f"{count:.9g} {word.removesuffix('s') if count == 1 else word}" for word, count in counts.items()]
    if partition := entry.get("AcceleratorPartition"):
        parts.insert(0, f"{partition['Count']} × {partition['Type']}")
    return f"{entry['InstanceType']}: {', '.join(parts)}"
