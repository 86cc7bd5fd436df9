"""The same specification guarantees the same in all four engines, as read from what each one gets."""

import base64
import gzip
import json
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from hypothesis import Phase, given, settings

from podwright.cdk8s_charts.kai import kai_objects
from podwright.cdk8s_charts.kueue import kueue_objects
from podwright.cdk8s_charts.yunikorn import yunikorn_objects
from podwright.config.catalog.instance_types import catalog
from podwright.config.settings.governance.engines import KaiSettings, YuniKornSettings
from podwright.config.settings.governance.kueue import Kueue
from podwright.config.settings.governance.teams import Governance
from podwright.planning.quota.amounts import node
from podwright.planning.quota.compute_quotas import compute_quotas
from podwright.planning.quota.policy import QuotaPolicy, quota_policy
from random_teams import GROUPS, TEAMS

TYPES = catalog()
EFA = "vpc.amazonaws.com/efa"
SLICES_OF_A_PARTITION = 2
# Of what a unit in front is: vCPUs, bytes, pieces.
UNITS = {"m": Fraction(1, 1000), "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
Guarantees = Counter[tuple[str, str, str]]
"""By team, instance type and resource, in thousandths of a vCPU, of a byte or of a piece."""


def parsed(text: str) -> Fraction:
    digits = text.rstrip("mKMGTi")
    return Fraction(digits) * UNITS.get(text[len(digits) :], 1)


def thousandths(amount: Fraction | int) -> int:
    assert (amount * 1000) % 1 == 0, f"{amount} is not a whole number of thousandths"
    return int(amount * 1000)


def in_task_governance(actual: QuotaPolicy, governance: Governance) -> Guarantees:
    result: Guarantees = Counter()
    for team, quota in compute_quotas(governance, actual).items():
        for entry in quota["ComputeQuotaConfig"]["ComputeQuotaResources"]:
            name = entry["InstanceType"]
            group = next(group for group in GROUPS.values() if group.types == (name,))
            brings = node([TYPES.get(name)], group.labels).brings
            whole = {
                resource: Fraction(amount, 1000 if resource == "cpu" else 1) for resource, amount in brings.items()
            }
            whole["memory"] *= 2**20
            amounts = {resource: amount * entry.get("Count", 0) for resource, amount in whole.items()}
            amounts["cpu"] += Fraction(str(entry.get("VCpu", 0)))
            amounts["memory"] += Fraction(str(entry.get("MemoryInGiB", 0))) * 2**30
            neuron = TYPES.get(name).accelerator_vendor == "neuron"
            accelerator = "aws.amazon.com/neurondevice" if neuron else "nvidia.com/gpu"
            amounts[accelerator] = amounts.get(accelerator, 0) + entry.get("Accelerators", 0)
            if part := entry.get("AcceleratorPartition"):
                amounts[f"nvidia.com/{part['Type']}"] += part["Count"]
            for resource, amount in amounts.items():
                result[team, name, resource] += thousandths(amount)
    return result


def in_kueue(actual: QuotaPolicy, _: Governance) -> Guarantees:
    result: Guarantees = Counter()
    for item in kueue_objects(actual, Kueue(), GROUPS, TYPES):
        for resources in item["spec"].get("resourceGroups", []) if item["kind"] == "ClusterQueue" else []:
            for flavor in resources["flavors"]:
                for resource in flavor["resources"]:
                    key = item["metadata"]["name"], GROUPS[flavor["name"]].types[0], resource["name"]
                    result[key] += thousandths(parsed(resource["nominalQuota"]))
    return result


def in_kai(actual: QuotaPolicy, _: Governance) -> Guarantees:
    result: Guarantees = Counter()
    units = {"cpu": ("cpu", Fraction(1, 1000)), "memory": ("memory", 1_000_000), "gpu": ("nvidia.com/gpu", 1)}
    for item in kai_objects(actual, KaiSettings(), TYPES):
        team = item["metadata"].get("labels", {}).get("podwright/team") if item["kind"] == "Queue" else None
        if team:
            group = item["metadata"]["labels"]["kai.scheduler/node-pool"]
            for name, amounts in item["spec"]["resources"].items():
                resource, unit = units[name]
                result[team, GROUPS[group].types[0], resource] += thousandths(Fraction(str(amounts["quota"])) * unit)
    return result


def in_yunikorn(actual: QuotaPolicy, _: Governance) -> Guarantees:
    result: Guarantees = Counter()
    (item,) = (item for item in yunikorn_objects(actual, YuniKornSettings()) if item["kind"] == "ConfigMap")
    packed = item.get("binaryData", {}).get("queues.yaml.gz")
    text = gzip.decompress(base64.b64decode(packed)) if packed else item["data"]["queues.yaml"]
    for pool in json.loads(text)["partitions"][0]["queues"][0]["queues"]:
        for queue in pool["queues"]:
            for name, amount in queue["resources"].get("guaranteed", {}).items():
                resource = "cpu" if name == "vcore" else name
                result[queue["name"], GROUPS[pool["name"]].types[0], resource] += thousandths(parsed(amount))
    return result


READERS: dict[str, Callable[[QuotaPolicy, Governance], Guarantees]] = {
    "hyperpod": in_task_governance,
    "kueue": in_kueue,
    "kai": in_kai,
    "yunikorn": in_yunikorn,
}


def guarantees(engine: str, teams: dict[str, Any]) -> Guarantees:
    governance = Governance.model_validate({"engine": engine, "teams": teams})
    return +READERS[engine](quota_policy(governance, GROUPS, TYPES), governance)


def without_efa(actual: Guarantees) -> Guarantees:
    return Counter({key: amount for key, amount in actual.items() if key[2] != EFA})


def counted_by_kai(actual: Guarantees) -> Guarantees:
    """KAI counts no Neuron devices and no network interfaces, and a partition as its slices of compute."""
    retained: Guarantees = Counter()
    for (team, name, resource), amount in actual.items():
        if resource.startswith("nvidia.com/mig-"):
            retained[team, name, "nvidia.com/gpu"] += amount * SLICES_OF_A_PARTITION
        elif resource in ("cpu", "memory", "nvidia.com/gpu"):
            retained[team, name, resource] += amount
    return retained


@settings(max_examples=30, deadline=None, derandomize=True, database=None, phases=[Phase.generate])
@given(TEAMS)
def test_guarantees_are_equal_in_all_engines(teams: dict[str, Any]) -> None:
    actual = {engine: guarantees(engine, teams) for engine in READERS}
    assert actual["yunikorn"] == actual["kueue"]
    assert actual["kai"] == counted_by_kai(actual["kueue"])
    # A compute quota names no network interfaces: they come with whole instances.
    assert without_efa(actual["hyperpod"]) == without_efa(actual["kueue"])


def test_a_known_guarantee_reads_alike() -> None:
    teams = {"llm": {"quota": {"h200": {"accelerators": 12}}}}
    expected = {"cpu": 288, "memory": 3072 * 2**30, "nvidia.com/gpu": 12}
    for engine in READERS:
        actual = {key[2]: amount // 1000 for key, amount in without_efa(guarantees(engine, teams)).items()}
        assert actual == expected, engine
