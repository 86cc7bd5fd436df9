"""The teams' quotas in the report of what is deployed."""

from typing import Any, cast

import pytest
from botocore.exceptions import ClientError

from podwright.config.settings.environment import Environment
from podwright.operations.aws.account import Account
from podwright.operations.live.quota_table import quota_cells, quota_rows

ARN = "arn:aws:sagemaker:us-west-2:111122223333:cluster/abcdefghijkl"


def environment(engine: str) -> Environment:
    return Environment.model_validate(
        {
            "name": "prod",
            "account": "111122223333",
            "region": "us-west-2",
            "network": {"zones": ["usw2-az1", "usw2-az2"]},
            "instance_groups": {"system": {"instance_type": "ml.m5.4xlarge", "count": 2}},
            "governance": {"engine": engine, "teams": {"llm": {}}},
        }
    )


def quota(team: str, status: str, sharing: dict[str, Any], *resources: dict[str, Any]) -> dict[str, Any]:
    return {
        "ComputeQuotaId": f"id-of-{team}",
        "Status": status,
        "ComputeQuotaConfig": {"ComputeQuotaResources": list(resources), "ResourceSharingConfig": sharing},
        "ComputeQuotaTarget": {"TeamName": team, "FairShareWeight": 60},
    }


class Client:
    """SageMaker with two pages of quotas, or one that refuses."""

    refuses = False
    quotas = (
        quota("vision", "Created", {"Strategy": "DontLend"}, {"InstanceType": "ml.p5.48xlarge", "Count": 1}),
        quota(
            "llm",
            "CreateFailed",
            {
                "Strategy": "LendAndBorrow",
                "BorrowLimit": 100,
                "AbsoluteBorrowLimits": [{"InstanceType": "ml.p5.48xlarge", "Count": 4}],
            },
            {"InstanceType": "ml.g5.12xlarge", "Accelerators": 2, "VCpu": 24.5, "MemoryInGiB": 96.0},
            {"InstanceType": "ml.p5.48xlarge", "AcceleratorPartition": {"Type": "mig-1g.10gb", "Count": 7}},
        ),
    )

    def client(self, service: str) -> "Client":
        assert service == "sagemaker"
        return self

    def get_paginator(self, operation: str) -> "Client":
        assert operation == "list_compute_quotas"
        return self

    def paginate(self, ClusterArn: str) -> list[dict[str, Any]]:
        assert ClusterArn == ARN
        if self.refuses:
            raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "ListComputeQuotas")
        return [{"ComputeQuotaSummaries": [item]} for item in self.quotas]

    def describe_compute_quota(self, ComputeQuotaId: str) -> dict[str, Any]:
        assert ComputeQuotaId == "id-of-llm"
        return {"FailureReason": "no such type"}


def test_teams_in_order_with_what_went_wrong() -> None:
    rows = quota_rows(environment("hyperpod"), cast(Account, Client()), ARN)
    assert [(row["team"], row["status"], row["message"]) for row in rows] == [
        ("llm", "CreateFailed", "no such type"),
        ("vision", "Created", ""),
    ]
    assert [quota_cells(row) for row in rows] == [
        [
            "llm",
            "ml.g5.12xlarge: 2 accelerators, 24.5 vCPU, 96 GiB\nml.p5.48xlarge: 7 × mig-1g.10gb",
            "lends, borrows up to 100 %\nml.p5.48xlarge: 4 instances",
            "60",
        ],
        ["vision", "ml.p5.48xlarge: 1 instance", "keeps its own", "60"],
    ]


def test_large_amounts_are_written_out() -> None:
    row = {
        "team": "llm",
        "resources": [{"InstanceType": "ml.m5.24xlarge", "VCpu": 1_920_000, "MemoryInGiB": 7_680_000.5}],
    }
    assert quota_cells(row)[1] == "ml.m5.24xlarge: 1920000 vCPU, 7680000.5 GiB"


def test_whoever_may_not_look_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Client, "refuses", True)
    (row,) = quota_rows(environment("hyperpod"), cast(Account, Client()), ARN)
    assert row["message"] == "AccessDeniedException"
    assert quota_cells(row) == ["", "", "", ""]


def test_other_engines_have_no_quotas_in_sagemaker() -> None:
    assert quota_rows(environment("kueue"), cast(Account, Client()), ARN) == []
