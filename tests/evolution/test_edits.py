"""Day two: what an edit of the environment file does to everything that holds data or nodes.

Expected is each stateful resource that is touched, and how: `+` made, `-` removed, `~` updated in place, `!` replaced.
Whether a changed property replaces comes from the provider schemas, by the same code that the sandbox deploys with.
"""

import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from synthesis import STATEFUL, Synthesis, effects, environment_of, synthesize

REGION = "us-west-2"
BASE: dict[str, Any] = {
    "account": "111122223333",
    "region": REGION,
    "network": {"zones": ["usw2-az1", "usw2-az2"]},
    "storage": {
        "lustre": {"zone": "usw2-az1", "efa": "true", "throughput": "500"},
        "home": {"openzfs": {"zone": "usw2-az1"}},
    },
    "cluster": {"zones": ["usw2-az1", "usw2-az2"]},
    "instance_groups": {
        "system": {"instance_type": "ml.m5.4xlarge", "count": "2", "zone": "usw2-az1"},
        "h100": {"instance_type": "ml.p5.48xlarge", "count": "4", "zone": "usw2-az1"},
    },
}
File = dict[str, Any]


def synthesized(file: File) -> Synthesis:
    return synthesize(environment_of(json.dumps(file)))


@pytest.fixture(scope="module")
def before() -> Synthesis:
    return synthesized(BASE)


def add_group(file: File) -> None:
    file["instance_groups"]["h200"] = {"instance_type": "ml.p5en.48xlarge", "count": "2", "zone": "usw2-az2"}


def remove_group(file: File) -> None:
    del file["instance_groups"]["h100"]


def reorder_groups(file: File) -> None:
    file["instance_groups"] = dict(reversed(file["instance_groups"].items()))


def reorder_zones(file: File) -> None:
    file["network"]["zones"].reverse()


def add_zone(file: File) -> None:
    file["network"]["zones"].insert(0, "usw2-az3")


def count(file: File) -> None:
    file["instance_groups"]["h100"]["count"] = "6"


def eks_version(file: File) -> None:
    file["cluster"]["eks"] = {"version": "1.35"}


def cluster_name(file: File) -> None:
    file["cluster"]["name"] = "another"


def home_zone(file: File) -> None:
    file["cluster"]["zones"].reverse()


def capacity(file: File) -> None:
    file["storage"]["lustre"]["capacity_gib"] = "19200"


def file_system_zone(file: File) -> None:
    file["storage"]["lustre"]["zone"] = "usw2-az2"


def protection(file: File) -> None:
    file["protection"] = "destroy"


def tags(file: File) -> None:
    file["tags"] = {"cost-center": "ai"}


def teams(file: File) -> None:
    file["governance"] = {"teams": {"llm": {"quota": {"h100": "2"}}, "vision": {"share": "lend"}}}


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (add_group, {"~ cluster"}),
        (remove_group, {"~ cluster"}),
        (reorder_groups, set()),
        (reorder_zones, set()),
        (add_zone, {"+ subnet"}),
        (count, {"~ cluster"}),
        (eks_version, {"~ eks"}),
        (cluster_name, {"! cluster"}),
        (home_zone, {"! cluster"}),
        (capacity, {"~ file system"}),
        (file_system_zone, {"! file system"}),
        (teams, set()),
        (tags, {f"~ {kind}" for kind in STATEFUL.values()} - {"~ database", "~ secret", "~ workspace"}),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_an_edit_touches_what_it_says(before: Synthesis, edit: Callable[[File], None], expected: set[str]) -> None:
    file = deepcopy(BASE)
    edit(file)
    assert effects(before, synthesized(file)) == expected


@pytest.mark.parametrize("edit", [reorder_groups, reorder_zones])
def test_the_order_of_the_file_means_nothing(before: Synthesis, edit: Callable[[File], None]) -> None:
    file = deepcopy(BASE)
    edit(file)
    assert synthesized(file).templates == before.templates


def test_a_zone_that_goes_takes_its_subnets_and_nothing_else() -> None:
    wider = deepcopy(BASE)
    add_zone(wider)
    assert effects(synthesized(wider), synthesized(BASE)) == {"- subnet"}


def test_protection_replaces_nothing(before: Synthesis) -> None:
    file = deepcopy(BASE)
    protection(file)
    assert {effect[0] for effect in effects(before, synthesized(file))} == {"~"}


def test_a_renamed_environment_is_another_one() -> None:
    """Stacks carry the environment's name, so nothing of the old one is touched: it has to be destroyed by name."""
    one, other = (
        synthesize(environment_of(json.dumps(BASE), "one")),
        synthesize(environment_of(json.dumps(BASE), "two")),
    )
    assert one.stack_names.isdisjoint(other.stack_names)
