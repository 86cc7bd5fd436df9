"""The teams' quotas in what is deployed, as SageMaker has them."""

from typing import Any, Final

from ...config.settings.environment import Environment

Report = dict[str, Any]
_SHARING: Final = {"LendAndBorrow": "lends, borrows up to", "Lend": "lends", "DontLend": "keeps its own"}
_COUNTED: Final = {"Count": "instances", "Accelerators": "accelerators", "VCpu": "vCPU", "MemoryInGiB": "GiB"}


def quota_rows(environment: Environment, client: Any, cluster_arn: str) -> list[Report]:
    """The quotas of a cluster in the order of the teams' names; none with another engine than task governance."""
    if environment.governance.engine != "hyperpod":
        return []
    from botocore.exceptions import ClientError

    try:
        pages = client.get_paginator("list_compute_quotas").paginate(ClusterArn=cluster_arn)
        found = [item for page in pages for item in page["ComputeQuotaSummaries"]]
    except ClientError as error:
        # Whoever may look at clusters may not always look at quotas.
        return [{"team": "", "status": "", "resources": [], "message": error.response["Error"]["Code"]}]
    return sorted((_row(item, client) for item in found), key=lambda row: row["team"])


def _row(quota: Report, client: Any) -> Report:
    config, target = quota.get("ComputeQuotaConfig", {}), quota["ComputeQuotaTarget"]
    sharing, failed = config.get("ResourceSharingConfig", {}), quota["Status"].endswith("Failed")
    found = client.describe_compute_quota(ComputeQuotaId=quota["ComputeQuotaId"]) if failed else {}
    return {
        "team": target["TeamName"],
        "weight": target.get("FairShareWeight", 0),
        "share": sharing.get("Strategy", ""),
        "borrow_limit_percent": sharing.get("BorrowLimit"),
        "borrow_limits": sharing.get("AbsoluteBorrowLimits", []),
        "resources": config.get("ComputeQuotaResources", []),
        "status": quota["Status"],
        "message": found.get("FailureReason", ""),
    }


def quota_cells(row: Report) -> list[str]:
    """A row for people: team, what it is guaranteed, how it shares, and its weight."""
    share = _SHARING.get(row.get("share", ""), "")
    if row.get("share") == "LendAndBorrow":
        # A limit in numbers takes the percentage's place for its type.
        share = "\n".join([f"{share} {row['borrow_limit_percent']} %", *map(_amount, row["borrow_limits"])])
    return [row["team"], "\n".join(map(_amount, row["resources"])), share, str(row.get("weight", ""))]


def _amount(entry: Report) -> str:
    counts = {word: entry[name] for name, word in _COUNTED.items() if name in entry}
    parts = [f"{count:g} {word.removesuffix('s') if count == 1 else word}" for word, count in counts.items()]
    if partition := entry.get("AcceleratorPartition"):
        parts.insert(0, f"{partition['Count']} × {partition['Type']}")
    return f"{entry['InstanceType']}: {', '.join(parts)}"
