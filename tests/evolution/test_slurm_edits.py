"""Day two of a Slurm cluster: what an edit does to its nodes and its accounts."""

import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from synthesis import Synthesis, effects, environment_of, synthesize

File = dict[str, Any]
BASE: File = {
    "account": "111122223333",
    "region": "us-west-2",
    "network": {"zones": ["usw2-az1", "usw2-az2"]},
    "storage": {"lustre": {"zone": "usw2-az1"}},
    "cluster": {"zones": ["usw2-az1"], "orchestrator": "slurm", "slurm": {"accounting": {}}},
    "instance_groups": {
        "controller": {"instance_type": "ml.m5.4xlarge", "count": "1"},
        "login": {"instance_type": "ml.m5.4xlarge", "count": "1"},
        "h100": {"instance_type": "ml.p5.48xlarge", "count": "4"},
    },
    "governance": {"teams": {"research": {"quota": {"h100": "2"}, "users": ["ann"]}}},
    "users": {"ann": {"uid": "2001"}},
}


def synthesized(file: File) -> Synthesis:
    return synthesize(environment_of(json.dumps(file)))


@pytest.fixture(scope="module")
def before() -> Synthesis:
    return synthesized(BASE)


def more_nodes(file: File) -> None:
    file["instance_groups"]["h100"]["count"] = "6"


def partition(file: File) -> None:
    file["instance_groups"]["h100"]["slurm"] = {"partition": "training"}


def new_partition(file: File) -> None:
    file["instance_groups"]["cpu"] = {"instance_type": "ml.c5.18xlarge", "count": "2"}


def larger_database(file: File) -> None:
    file["cluster"]["slurm"]["accounting"]["max_capacity"] = "8"


def single_database(file: File) -> None:
    file["cluster"]["slurm"]["accounting"]["standby"] = "false"


def new_zone(file: File) -> None:
    file["network"]["zones"].append("usw2-az3")


def accounts_on_the_controller(file: File) -> None:
    del file["cluster"]["slurm"]


def kubernetes(file: File) -> None:
    file["cluster"] = {"zones": ["usw2-az1", "usw2-az2"]}


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (more_nodes, {"~ cluster"}),
        (partition, {"~ cluster"}),
        (new_partition, {"~ cluster"}),
        (larger_database, {"~ database"}),
        (single_database, set()),
        (new_zone, {"+ subnet"}),
        # Kept in the account by their removal policy; the rules say that HyperPod has no way back.
        (accounts_on_the_controller, {"- database", "- secret", "~ cluster"}),
        (kubernetes, {"- database", "- secret", "+ eks", "! cluster"}),
    ],
)
def test_effect(before: Synthesis, edit: Callable[[File], None], expected: set[str]) -> None:
    file = deepcopy(BASE)
    edit(file)
    assert effects(before, synthesized(file)) == expected


def new_member(file: File) -> None:
    file["users"]["bo"] = {"uid": "2002"}
    file["governance"]["teams"]["research"]["users"].append("bo")


def larger_quota(file: File) -> None:
    file["governance"]["teams"]["research"]["quota"]["h100"] = "3"


@pytest.mark.parametrize("edit", [new_member, larger_quota])
def test_people_and_quotas_change_what_nodes_read_and_no_node(before: Synthesis, edit: Callable[[File], None]) -> None:
    file = deepcopy(BASE)
    edit(file)
    after = synthesized(file)
    changed = {
        (stack, resource["Type"])
        for stack, template in after.templates.items()
        for name, resource in template["Resources"].items()
        if resource != before.templates[stack]["Resources"].get(name)
    }
    assert changed == {("cluster", "Custom::PodwrightLifecycle")}
