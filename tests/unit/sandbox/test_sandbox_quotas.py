"""Which quotas of an account count which instances of HyperPod in the sandbox."""

from typing import Any

import pytest
from moto.core.exceptions import ServiceException

from podwright.sandbox.hyperpod.cluster import Group
from podwright.sandbox.hyperpod.quotas import check_quotas
from podwright.sandbox.services.quotas import Quotas

TYPE = "ml.p5.48xlarge for cluster usage"
SPOT = "ml.p5.48xlarge for cluster spot instance usage"
ONE = "Maximum number instances allowed per SageMaker HyperPod cluster"
ALL = "Total number of instances allowed across SageMaker HyperPod clusters"


def group(count: int, spot: bool = False, kind: str = "ml.p5.48xlarge") -> Group:
    more: dict[str, Any] = {"CapacityRequirements": {"Spot": {}}} if spot else {}
    return Group({"InstanceGroupName": "g", "InstanceType": kind, "InstanceCount": count, **more})


@pytest.mark.parametrize(
    ("name", "before", "after", "others", "refused"),
    [
        (TYPE, [], [group(3), group(1)], [], True),
        (TYPE, [], [group(3)], [], False),
        (TYPE, [], [group(2)], [group(2)], True),
        (TYPE, [], [group(2)], [group(2, kind="ml.p5e.48xlarge"), group(2, spot=True)], False),
        (TYPE, [group(2)], [group(3)], [], False),
        (TYPE, [group(5)], [group(4)], [], False),
        (TYPE, [], [group(9, spot=True)], [], False),
        (SPOT, [], [group(4, spot=True)], [], True),
        (SPOT, [], [group(4)], [], False),
        (ONE, [], [group(2), group(2, kind="ml.m5.xlarge")], [], True),
        (ONE, [], [group(2)], [group(2)], False),
        (ALL, [], [group(2)], [group(2)], True),
    ],
)
def test_a_quota_of_three(
    name: str, before: list[Group], after: list[Group], others: list[Group], refused: bool
) -> None:
    quotas = Quotas()
    check_quotas(quotas, before, after, others)
    quotas.values = {"sagemaker": {name: 3.0}}
    if not refused:
        check_quotas(quotas, before, after, others)
        return
    with pytest.raises(ServiceException, match=f"service limit '{name}' is 3 Instances"):
        check_quotas(quotas, before, after, others)
