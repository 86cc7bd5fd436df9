"""The policy behind all engines: examples with their numbers, and what holds for any specification of teams."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings

from podwright.config.catalog.instance_types import catalog
from podwright.config.catalog.mig import partitions, partitions_per_gpu
from podwright.config.settings.governance.teams import Department, Governance
from podwright.config.settings.groups import InstanceGroup
from podwright.planning.quota.amounts import CPU, EFA, GPU, MEMORY, NEURON, in_words, quantity
from podwright.planning.quota.node_pools import department_path, yunikorn_queue
from podwright.planning.quota.policy import QuotaPolicy, environment_policy, quota_policy
from podwright.planning.quota.team_names import local_queue, priority_class, team_namespace
from random_teams import GROUPS, TEAMS
from rule_pages import loaded

TYPES = catalog()
ACCELERATORS = (GPU, NEURON, "nvidia.com/mig-2g.35gb")
GIB = 1024


def policy(teams: Mapping[str, Any], groups: Mapping[str, InstanceGroup] = GROUPS, **more: Any) -> QuotaPolicy:
    return quota_policy(Governance.model_validate({"engine": "kueue", "teams": teams} | more), groups, TYPES)


def nominal(actual: QuotaPolicy, team: str, flavor: str) -> dict[str, int]:
    return {name: share.nominal for name, share in actual.teams[team].shares[flavor].items()}


def test_instances_bring_everything() -> None:
    resolved_policy = policy({"a": {"quota": {"h200": 2}}})
    assert nominal(resolved_policy, "a", "h200") == {CPU: 384_000, MEMORY: 4096 * GIB, GPU: 16, EFA: 32}
    assert not any(share.filled for share in resolved_policy.teams["a"].shares["h200"].values())


def test_accelerators_bring_the_rest_in_proportion() -> None:
    resolved_policy = policy({"a": {"quota": {"h200": {"accelerators": 12}}}})
    assert nominal(resolved_policy, "a", "h200") == {CPU: 288_000, MEMORY: 3072 * GIB, GPU: 12, EFA: 24}
    assert {name for name, share in resolved_policy.teams["a"].shares["h200"].items() if share.filled} == {
        CPU,
        MEMORY,
        EFA,
    }


def test_vcpu_brings_memory_and_no_accelerators() -> None:
    resolved_policy = policy({"a": {"quota": {"h200": {"vcpu": 48}}}, "b": {"quota": {"h200": {"memory_gib": 256}}}})
    assert nominal(resolved_policy, "a", "h200") == {CPU: 48_000, MEMORY: 512 * GIB, GPU: 0, EFA: 0}
    assert nominal(resolved_policy, "b", "h200") == {CPU: 24_000, MEMORY: 256 * GIB, GPU: 0, EFA: 0}


def test_what_is_given_is_not_filled_in() -> None:
    resolved_policy = policy({"a": {"quota": {"h200": {"accelerators": 8, "vcpu": 10.1, "memory_gib": 100}}}})
    assert nominal(resolved_policy, "a", "h200") == {CPU: 10_100, MEMORY: 100 * GIB, GPU: 8, EFA: 16}


def test_partitions_bring_their_part_of_a_node() -> None:
    groups = {
        "cut": InstanceGroup(instance_type="ml.p5en.48xlarge", count=1, labels={"nvidia.com/mig.config": "all-1g.18gb"})
    }
    resolved_policy = policy({"a": {"quota": {"cut": {"mig": {"mig-1g.18gb": 14}}}}}, groups)
    assert resolved_policy.flavors["cut"].capacity == {
        CPU: 192_000,
        MEMORY: 2048 * GIB,
        EFA: 16,
        "nvidia.com/mig-1g.18gb": 56,
    }
    assert nominal(resolved_policy, "a", "cut") == {
        CPU: 48_000,
        MEMORY: 512 * GIB,
        EFA: 4,
        "nvidia.com/mig-1g.18gb": 14,
    }


def test_hyper_threading_off_halves_the_vcpus() -> None:
    groups = {"h200": InstanceGroup(instance_type="ml.p5en.48xlarge", count=1, threads_per_core=1)}
    assert nominal(policy({"a": {"quota": {"h200": 1}}}, groups), "a", "h200")[CPU] == 96_000


def test_a_mixed_group_guarantees_the_least() -> None:
    groups = {"mixed": InstanceGroup(instance_types=("ml.g5.12xlarge", "ml.g5.48xlarge"), count=1)}
    assert nominal(policy({"a": {"quota": {"mixed": 1}}}, groups), "a", "mixed") == {
        CPU: 48_000,
        MEMORY: 192 * GIB,
        GPU: 4,
        EFA: 1,
    }


def test_an_amount_of_a_type_goes_where_there_is_room() -> None:
    """Two groups of p5 hold 2 and 3 instances; b's own takes 1 of the second."""
    resolved_policy = policy({"a": {"quota": {"ml.p5.48xlarge": 3}}, "b": {"quota": {"second": 1}}})
    assert (nominal(resolved_policy, "a", "first")[GPU], nominal(resolved_policy, "a", "second")[GPU]) == (16, 8)
    resolved_policy = policy({"a": {"quota": {"ml.p5.48xlarge": 9}}})
    assert (nominal(resolved_policy, "a", "first")[GPU], nominal(resolved_policy, "a", "second")[GPU]) == (16, 56)


def test_task_governance_counts_types() -> None:
    resolved_policy = policy({"a": {"quota": {"first": 1, "second": 2}}}, engine="hyperpod")
    assert resolved_policy.flavors["ml.p5.48xlarge"].groups == ("first", "second")
    assert nominal(resolved_policy, "a", "ml.p5.48xlarge")[GPU] == 24


def test_lending_and_borrowing_by_strategy() -> None:
    teams = {
        "both": {"quota": {"h200": 2}, "borrow_limit_percent": 75},
        "giver": {"quota": {"h200": 1}, "share": "lend"},
        "alone": {"quota": {"h200": 1}, "share": "dont_lend"},
        "guest": {},
        "capped": {"quota": {"h200": 1}, "borrow_limits": {"h200": {"accelerators": 2}}},
    }
    resolved_policy = policy(teams)
    gpus = {name: team.shares["h200"][GPU] for name, team in resolved_policy.teams.items()}
    assert {name: (share.lendable, share.borrowable) for name, share in gpus.items()} == {
        "both": (16, 12),
        "giver": (8, 0),
        "alone": (0, 0),
        "guest": (0, None),
        "capped": (8, 2),
    }
    # 8 instances hold 64 GPUs, of which 40 are guaranteed; all but 8 of them are lent.
    assert resolved_policy.unallocated["h200"][GPU] == 24
    assert {name: resolved_policy.most(name, "h200", GPU) for name in teams} == {
        "both": 28,
        "giver": 8,
        "alone": 8,
        "guest": 56,
        "capped": 10,
    }
    assert policy(teams, idle_resource_sharing=False).most("guest", "h200", GPU) == 32


def test_a_team_uses_only_what_its_quota_names() -> None:
    resolved_policy = policy({"a": {"quota": {"h200": 1, "cpu": 0}}})
    assert list(resolved_policy.teams["a"].shares) == ["cpu", "h200"]
    assert list(resolved_policy.flavors) == ["cpu", "h200"]
    assert resolved_policy.most("a", "first", GPU) == 0


def test_a_quota_of_what_is_not_there_is_refused() -> None:
    with pytest.raises(LookupError, match="b200 is neither"):
        policy({"a": {"quota": {"b200": 1}}})


@pytest.mark.parametrize(
    ("quota", "flavors"),
    [("h200: 1", ["h200"]), ("system: 1", ["system"]), ("ml.m5.4xlarge: 1", ["plain"]), ("ml.m5.2xlarge: 1", [])],
)
def test_nodes_of_the_system_are_lent_by_name_only(quota: str, flavors: list[str]) -> None:
    groups = "instance_groups: {plain: {instance_type: ml.m5.4xlarge, count: 3, zone: usw2-az2}}"
    environment = loaded(f"{groups}\ngovernance: {{engine: kueue, teams: {{a: {{quota: {{{quota}}}}}}}}}").environment
    if not flavors:
        with pytest.raises(LookupError):
            environment_policy(environment, TYPES)
        return
    assert list(environment_policy(environment, TYPES).flavors) == flavors


def test_flavors_are_called_as_kubernetes_takes_it() -> None:
    groups = {"H200": InstanceGroup(instance_type="ml.p5en.48xlarge", count=1)}
    assert list(policy({"a": {"quota": {"H200": 1}}}, groups).flavors) == ["h200"]


def test_priorities_stand_highest_first() -> None:
    resolved_policy = policy({}, priorities={"low": 10, "high": 90, "mid": 50})
    assert list(resolved_policy.priorities.items()) == [("high", 90), ("mid", 50), ("low", 10)]


def test_names_fit_into_labels_with_every_prefix() -> None:
    longest = "t" * 40
    for engine in ("hyperpod", "kueue", "kai", "yunikorn"):
        assert len(team_namespace(engine, longest)) <= 63
        assert len(local_queue(engine, longest)) <= 63
    assert len(priority_class(longest)) <= 63
    assert local_queue("hyperpod", "llm") == "hyperpod-ns-llm-localqueue"


@pytest.mark.parametrize(
    ("type_name", "profile", "count"),
    [
        ("ml.p4d.24xlarge", "1g.5gb", 7),
        ("ml.p4d.24xlarge", "1g.10gb", 4),
        ("ml.p5.48xlarge", "2g.20gb", 3),
        ("ml.p5en.48xlarge", "3g.71gb", 2),
        ("ml.p6-b200.48xlarge", "4g.90gb", 1),
        ("ml.p6-b300.48xlarge", "7g.269gb", 1),
        ("ml.p6-b300.48xlarge", "1g.18gb", 0),
    ],
)
def test_partitions_of_a_gpu(type_name: str, profile: str, count: int) -> None:
    assert partitions_per_gpu(profile, TYPES.get(type_name).mig_profiles) == count


def test_layouts_of_nvidias_manager() -> None:
    profiles = TYPES.get("ml.p5.48xlarge").mig_profiles

    def layout(name: str) -> dict[str, int] | None:
        return partitions({"nvidia.com/mig.config": name}, profiles)

    assert partitions({}, profiles) == layout("all-disabled") == {}
    assert layout("all-2g.20gb") == {"2g.20gb": 3}
    assert layout("all-balanced") == {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}
    assert layout("all-1g.18gb") is None
    assert layout("our-own") is None


def test_amounts_in_words_and_as_kubernetes_writes_them() -> None:
    assert in_words(CPU, 1500) == "1.5 vCPUs"
    assert in_words(GPU, 1) == "1 GPU"
    assert in_words(MEMORY, 2048 * GIB) == "2,048 GiB"
    assert in_words("nvidia.com/mig-1g.18gb", 14) == "14 mig-1g.18gb"
    assert [
        quantity(CPU, 1500),
        quantity(CPU, 2000),
        quantity(MEMORY, 1536),
        quantity(MEMORY, 2048),
        quantity(GPU, 8),
    ] == ["1500m", "2", "1536Mi", "2Gi", "8"]


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(TEAMS)
def test_nothing_is_lost_and_nothing_is_made(teams: dict[str, Any]) -> None:
    by_group, by_type = policy(teams), policy(teams, engine="hyperpod")
    for name in teams:
        assert _by_type(by_group, name) == _by_type(by_type, name)
        held = Counter(
            {
                actual: count
                for (actual, resource), count in _by_type(by_group, name).items()
                if resource in ACCELERATORS
            }
        )
        assert held == _accelerators(teams[name]["quota"])
    for flavor, existing in by_group.flavors.items():
        for resource, capacity in existing.capacity.items():
            held = sum(
                team.shares.get(flavor, {})[resource].nominal
                for team in by_group.teams.values()
                if flavor in team.shares
            )
            assert by_group.unallocated[flavor][resource] == max(capacity - held, 0)


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(TEAMS)
def test_limits_hold(teams: dict[str, Any]) -> None:
    resolved_policy = policy(teams)
    for name, team in resolved_policy.teams.items():
        given_to = teams[name]
        for flavor, shares in team.shares.items():
            for resource, share in shares.items():
                most = resolved_policy.most(name, flavor, resource)
                lent = resolved_policy.pool[flavor].get(resource, 0) - share.lendable
                assert 0 <= share.lendable <= share.nominal
                assert most <= max(share.nominal + lent, 0)
                assert share.lendable == (0 if given_to["share"] == "dont_lend" else share.nominal)
                if given_to["share"] != "lend_and_borrow":
                    assert share.borrowable == 0
                elif share.borrowable is not None:
                    assert most <= share.nominal + share.borrowable
                    if not given_to["borrow_limits"]:
                        assert share.borrowable <= share.nominal * given_to["borrow_limit_percent"] / 100


def _accelerators(quota: dict[str, Any]) -> Counter[str]:
    """GPUs, partitions and Neuron devices of a quota by type, straight from what the file says."""
    actual: Counter[str] = Counter()
    for key, amount in quota.items():
        name = key if key.startswith("ml.") else GROUPS[key].types[0]
        each = 8 * 3 if key == "cut" else TYPES.get(name).accelerator_count
        actual[name] += (
            amount * each
            if isinstance(amount, int)
            else sum(amount.get("mig", {}).values()) + amount.get("accelerators", 0)
        )
    return +actual


def _by_type(actual: QuotaPolicy, team: str) -> Counter[tuple[str, str]]:
    held: Counter[tuple[str, str]] = Counter()
    for flavor, shares in actual.teams[team].shares.items():
        for resource, share in shares.items():
            held[actual.flavors[flavor].types[0], resource] += share.nominal
    return +held


def test_an_amount_of_vcpu_of_a_type_is_divided_over_its_groups() -> None:
    """The first of the two groups of p5 has 384 of them."""
    resolved_policy = policy({"a": {"quota": {"ml.p5.48xlarge": {"vcpu": 400}}}})
    cpus = [nominal(resolved_policy, "a", name)[CPU] for name in ("first", "second")]
    assert sum(cpus) == 400_000
    assert cpus[0] == pytest.approx(384_000, abs=1)


def test_nothing_is_left_of_what_is_all_guaranteed() -> None:
    resolved_policy = policy({"a": {"quota": {"h200": 8}, "share": "dont_lend"}, "guest": {}})
    assert resolved_policy.unallocated["h200"][GPU] == 0
    assert resolved_policy.most("guest", "h200", GPU) == 0


def test_a_queue_lies_below_its_departments_the_widest_first() -> None:
    departments = {"research": Department(), "vision": Department(parent="research")}
    assert yunikorn_queue("llm", "vision", departments, "H200") == "root.h200.dept_research.dept_vision.llm"
    assert yunikorn_queue("llm", None, departments, "H200") == "root.h200.llm"
    circle = {"a": Department(parent="b"), "b": Department(parent="a")}
    assert department_path("a", circle) == ("b", "a")
