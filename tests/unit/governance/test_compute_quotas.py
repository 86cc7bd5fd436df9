"""The quota policy in SageMaker's words: what the service would fill in is sent, and nothing is lost or doubled."""

import json
import random
from collections import Counter
from typing import Any

import pytest

from podwright.config.catalog.instance_types import catalog
from podwright.config.catalog.limits import limits
from podwright.config.settings.governance.teams import Governance
from podwright.config.settings.groups import InstanceGroup
from podwright.planning.quota.compute_quotas import compute_quotas, scheduler_config
from podwright.planning.quota.policy import QuotaPolicy, quota_policy
from podwright.planning.quota.task_governance_objects import quota_objects
from podwright.sandbox.cloudformation.validation import validate_properties

TYPES = {"h200": "ml.p5en.48xlarge", "a10": "ml.g5.12xlarge", "trn": "ml.trn1.32xlarge", "cpu": "ml.m5.4xlarge"}
GROUPS = {name: InstanceGroup(instance_type=type_name, count=8, zone="usw2-az2") for name, type_name in TYPES.items()}
CLUSTER = "arn:aws:sagemaker:us-west-2:111122223333:cluster/abcdefghijkl"
FIELDS = {"VCpu": ("cpu", 1000), "MemoryInGiB": ("memory", 1024)}


def given(**settings: Any) -> tuple[Governance, QuotaPolicy]:
    governance = Governance.model_validate({"engine": "hyperpod", **settings})
    return governance, quota_policy(governance, GROUPS, catalog())


def quota(**team: Any) -> dict[str, Any]:
    return compute_quotas(*given(teams={"llm": team}))["llm"]


def entries(**team: Any) -> list[dict[str, Any]]:
    return quota(**team)["ComputeQuotaConfig"]["ComputeQuotaResources"]


def test_whole_instances_stay_a_number_of_instances() -> None:
    assert entries(quota={"h200": 2, "ml.g5.12xlarge": 1}) == [
        {"InstanceType": "ml.g5.12xlarge", "Count": 1},
        {"InstanceType": "ml.p5en.48xlarge", "Count": 2},
    ]
    assert entries(quota={"h200": 2, "ml.p5en.48xlarge": 1}) == [{"InstanceType": "ml.p5en.48xlarge", "Count": 3}]


def test_two_hundred_teams_fit_into_one_template() -> None:
    """All quotas are in one template, and no other engine has a larger one. A synthesis had 3.2 kB for such a team."""
    types = [
        f"ml.{name}xlarge" for name in ("p5.48", "p5e.48", "p5en.48", "p4d.24", "p4de.24", "g5.48", "g6.48", "g6e.48")
    ]
    groups = {
        f"group-{n}": InstanceGroup(instance_type=name, count=100, zone="usw2-az2") for n, name in enumerate(types)
    }
    amounts = {name: {"accelerators": 4} for name in groups}
    teams = {f"team-{number:03}": {"quota": amounts, "borrow_limits": amounts} for number in range(200)}
    governance = Governance.model_validate({"engine": "hyperpod", "teams": teams})
    quotas = compute_quotas(governance, quota_policy(governance, groups, catalog()))
    around = 1000  # logical id, name, cluster, order and metadata of each
    size = sum(len(json.dumps(each, indent=1)) + around for each in quotas.values())
    assert size < limits().cloudformation.template_bytes
    assert len(quotas) < limits().cloudformation.resources


def test_what_the_service_would_fill_in_is_sent() -> None:
    assert entries(quota={"h200": {"accelerators": 12}}) == [
        {"InstanceType": "ml.p5en.48xlarge", "Accelerators": 12, "VCpu": 288, "MemoryInGiB": 3072}
    ]
    assert entries(quota={"a10": {"vcpu": 36}}) == [
        {"InstanceType": "ml.g5.12xlarge", "Accelerators": 0, "VCpu": 36, "MemoryInGiB": 144}
    ]
    assert entries(quota={"cpu": {"memory_gib": 16.5}}) == [
        {"InstanceType": "ml.m5.4xlarge", "VCpu": 4.125, "MemoryInGiB": 16.5}
    ]
    assert entries(quota={"trn": {"accelerators": 4}})[0]["Accelerators"] == 4


def test_partitions_share_what_is_one_sum() -> None:
    actual = entries(quota={"h200": {"mig": {"mig-1g.18gb": 5, "mig-3g.71gb": 2}, "vcpu": 21, "memory_gib": 70}})
    assert [item["AcceleratorPartition"] for item in actual] == [
        {"Type": "mig-1g.18gb", "Count": 5},
        {"Type": "mig-3g.71gb", "Count": 2},
    ]
    assert [(item["VCpu"], item["MemoryInGiB"]) for item in actual] == [(15, 50), (6, 20)]


def test_a_team_without_a_quota_is_named_where_it_may_borrow() -> None:
    assert entries() == [{"InstanceType": name, "Count": 0} for name in sorted(TYPES.values())]
    sharing = quota(quota={"h200": 0, "a10": 1})["ComputeQuotaConfig"]["ResourceSharingConfig"]
    assert sharing["AbsoluteBorrowLimits"] == [{"InstanceType": "ml.p5en.48xlarge", "Count": 8}]


@pytest.mark.parametrize(
    ("team", "sharing"),
    [
        ({}, {"Strategy": "LendAndBorrow", "BorrowLimit": 50}),
        ({"borrow_limit_percent": 500}, {"Strategy": "LendAndBorrow", "BorrowLimit": 500}),
        ({"share": "lend"}, {"Strategy": "Lend"}),
        ({"share": "dont_lend"}, {"Strategy": "DontLend"}),
        (
            {"borrow_limits": {"h200": {"accelerators": 4}, "a10": 1}},
            {
                "Strategy": "LendAndBorrow",
                "BorrowLimit": 50,
                "AbsoluteBorrowLimits": [
                    {"InstanceType": "ml.g5.12xlarge", "Count": 1},
                    {"InstanceType": "ml.p5en.48xlarge", "Accelerators": 4, "VCpu": 96, "MemoryInGiB": 1024},
                ],
            },
        ),
    ],
)
def test_how_a_team_shares(team: dict[str, Any], sharing: dict[str, Any]) -> None:
    assert quota(quota={"h200": 1}, **team)["ComputeQuotaConfig"]["ResourceSharingConfig"] == sharing


def test_no_default_is_left_to_the_service() -> None:
    actual = quota(quota={"h200": 1})
    assert actual["ComputeQuotaConfig"]["PreemptTeamTasks"] == "LowerPriority"
    assert actual["ComputeQuotaTarget"] == {"TeamName": "llm", "FairShareWeight": 10}
    assert quota(quota={"h200": 1}, preempt="never")["ComputeQuotaConfig"]["PreemptTeamTasks"] == "Never"
    assert scheduler_config(*given()) == {"FairShare": "Enabled", "IdleResourceSharing": "Enabled"}
    assert scheduler_config(
        *given(priorities={"low": 1, "high": 99}, fair_share=False, idle_resource_sharing=False)
    ) == {
        "FairShare": "Disabled",
        "IdleResourceSharing": "Disabled",
        "PriorityClasses": [{"Name": "high", "Weight": 99}, {"Name": "low", "Weight": 1}],
    }


def any_amount(chance: random.Random, group: str) -> Any:
    choices: list[Any] = [chance.randint(0, 8), {"vcpu": chance.randint(0, 2000) / 10}, {"memory_gib": 1.5}]
    if group != "cpu":
        choices += [{"accelerators": chance.randint(0, 64)}, {"accelerators": 3, "vcpu": chance.randint(0, 99)}]
    if group == "h200":
        choices += [{"mig": {"mig-1g.18gb": chance.randint(1, 56), "mig-2g.35gb": chance.randint(0, 9)}}]
    return chance.choice(choices)


@pytest.mark.parametrize("seed", range(12))
def test_quotas_hold_exactly_what_the_policy_guarantees(seed: int) -> None:
    chance = random.Random(seed)
    keys = [*TYPES, *TYPES.values()]
    teams = {
        f"team-{number}": {
            "quota": {key: any_amount(chance, _group(key)) for key in chance.sample(keys, chance.randint(0, 4))},
            "share": chance.choice(["lend", "dont_lend", "lend_and_borrow"]),
            "weight": chance.randint(1, 100),
        }
        for number in range(chance.randint(1, 6))
    }
    governance, policy = given(teams=teams)
    for name, actual in compute_quotas(governance, policy).items():
        sums: Counter[tuple[str, str]] = Counter()
        for entry in actual["ComputeQuotaConfig"]["ComputeQuotaResources"]:
            for resource, amount in amounts(entry, policy).items():
                sums[entry["InstanceType"], resource] += amount
        nominal = {
            (flavor, resource): share.nominal
            for flavor, shares in policy.teams[name].shares.items()
            for resource, share in shares.items()
            if share.nominal and resource != "vpc.amazonaws.com/efa"
        }
        assert {key: amount for key, amount in sums.items() if amount} == nominal
        assert len(actual["ComputeQuotaConfig"]["ComputeQuotaResources"]) <= limits().compute_quota.resources
        properties = {"Name": name, "ClusterArn": CLUSTER, **actual}
        assert validate_properties("AWS::SageMaker::ComputeQuota", properties, "us-west-2") == []


def amounts(entry: dict[str, Any], policy: QuotaPolicy) -> dict[str, int]:
    """An entry in the policy's units; what an instance has beside its network interfaces is what the policy knows."""
    if "Count" in entry:
        flavor = policy.flavors[entry["InstanceType"]]
        whole = {name: amount * entry["Count"] // flavor.instances for name, amount in flavor.capacity.items()}
        return {name: amount for name, amount in whole.items() if name != "vpc.amazonaws.com/efa"}
    actual = {resource: round(entry[field] * unit) for field, (resource, unit) in FIELDS.items()}
    if "Accelerators" in entry:
        neuron = entry["InstanceType"] == TYPES["trn"]
        actual["aws.amazon.com/neurondevice" if neuron else "nvidia.com/gpu"] = entry["Accelerators"]
    if partition := entry.get("AcceleratorPartition"):
        actual[f"nvidia.com/{partition['Type']}"] = partition["Count"]
    return actual


def _group(key: str) -> str:
    return next(name for name, type_name in TYPES.items() if key in (name, type_name))


def test_a_quota_has_the_name_description_and_state_of_the_file() -> None:
    stated = quota(quota={"h200": 2}, compute_quota={"name": "llm-2027", "description": "Große", "state": "disabled"})
    assert [stated[field] for field in ("Name", "Description", "ActivationState")] == ["llm-2027", "Große", "Disabled"]
    # A property that nobody set would be a change of every quota that is deployed.
    assert list(quota(quota={"h200": 2})) == ["Name", "ComputeQuotaConfig", "ComputeQuotaTarget"]
    assert quota(quota={"h200": 2})["Name"] == "llm"


@pytest.mark.parametrize(("state", "expected"), [(None, None), ("enabled", None), ("disabled", "Hold")])
def test_a_quota_that_is_off_holds_its_queue(state: str | None, expected: str | None) -> None:
    stated = quota(quota={"h200": 2}, compute_quota={"state": state})
    (queue,) = (item for item in quota_objects(stated) if item["kind"] == "ClusterQueue")
    assert queue["spec"].get("stopPolicy") == expected
