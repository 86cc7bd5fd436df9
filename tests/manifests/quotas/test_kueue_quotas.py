"""Rendered queues under Kueue's own arithmetic: what a policy promises holds in whatever usage can come about."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from podwright.cdk8s_charts.kueue import kueue_objects
from podwright.config.catalog.instance_types import catalog
from podwright.config.settings.governance.teams import Governance
from podwright.config.settings.groups import InstanceGroup
from podwright.planning.quota.amounts import CPU, MEMORY
from podwright.planning.quota.policy import QuotaPolicy, quota_policy
from quota_tree import Item, Node, tree

GROUPS = {
    "h200": InstanceGroup(instance_type="ml.p5en.48xlarge", count=8),
    "l40s": InstanceGroup(instance_type="ml.g6e.48xlarge", count=3),
    "cpu": InstanceGroup(instance_type="ml.m5.4xlarge", count=5),
}
TYPES = catalog()
# What a unit of the policy is in Kubernetes' own: thousandths of a vCPU and MiB.
UNITS = {CPU: Fraction(1, 1000), MEMORY: Fraction(2**20)}

AMOUNTS = st.one_of(
    st.integers(0, 5),
    st.integers(0, 20).map(lambda number: {"accelerators": number}),
    st.integers(0, 300).map(lambda number: {"vcpu": number}),
)
QUOTAS = st.dictionaries(st.sampled_from(sorted(GROUPS)), AMOUNTS, max_size=3)
DEPARTMENTS = {"science": {}, "labs": {"parent": "science"}, "sales": {}}
TEAMS = st.dictionaries(
    st.sampled_from(["a", "b", "c", "d"]),
    st.fixed_dictionaries(
        {
            "quota": QUOTAS,
            "share": st.sampled_from(["lend_and_borrow", "lend", "dont_lend"]),
            "borrow_limit_percent": st.integers(1, 500),
            "borrow_limits": st.one_of(st.just({}), QUOTAS),
            "department": st.sampled_from([None, *DEPARTMENTS]),
        }
    ),
    min_size=1,
)
# Who, what, and how many thirds of what is to be had; negative gives so many thirds back.
USES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 30), st.integers(-3, 3)), max_size=30)
Specs = Callable[[Callable[..., None]], Callable[[], None]]


def cases(**more: Any) -> Specs:
    def decorate(test: Callable[..., None]) -> Callable[[], None]:
        # Without shrinking: a team specification has so many parts that it takes minutes.
        return settings(max_examples=30, deadline=None, derandomize=True, database=None, phases=[Phase.generate])(
            given(teams=TEAMS, shared=st.booleans(), **more)(test)
        )

    return decorate


def rendered(teams: dict[str, Any], shared: bool) -> tuple[QuotaPolicy, Node, dict[str, Node]]:
    governance = Governance.model_validate(
        {"engine": "kueue", "teams": teams, "departments": DEPARTMENTS, "idle_resource_sharing": shared}
    )
    policy = quota_policy(governance, GROUPS, TYPES)
    return policy, *tree(kueue_objects(policy, governance.kueue, GROUPS, TYPES))


def items(policy: QuotaPolicy) -> list[Item]:
    return [(name, resource) for name, flavor in policy.flavors.items() for resource in flavor.capacity]


def unit(item: Item) -> Fraction:
    return UNITS.get(item[1], Fraction(1))


@cases()
def test_quotas_are_those_of_the_policy_and_nothing_is_lost(teams: dict[str, Any], shared: bool) -> None:
    policy, root, queues = rendered(teams, shared)
    for flavor, resource in items(policy):
        item = flavor, resource
        held = {name: team.shares.get(flavor, {}).get(resource) for name, team in policy.teams.items()}
        for name, share in held.items():
            nominal = queues[name].nominal.get(item, Fraction(0))
            assert nominal == (share.nominal if share else 0) * unit(item)
            assert queues[name].lending.get(item, Fraction(0)) <= nominal
        nominal = sum((queue.nominal.get(item, Fraction(0)) for queue in queues.values()), Fraction(0))
        capacity = policy.flavors[flavor].capacity[resource] * unit(item)
        assert nominal + root.nominal.get(item, Fraction(0)) == (max(nominal, capacity) if shared else nominal)


@cases(uses=USES)
def test_limits_hold_in_every_usage_that_can_come_about(
    teams: dict[str, Any], shared: bool, uses: list[tuple[int, int, int]]
) -> None:
    policy, root, queues = rendered(teams, shared)
    names, known = sorted(queues), items(policy)
    for who, which, thirds in uses if known else []:
        queue, item = queues[names[who % len(names)]], known[which % len(known)]
        used = queue.usage.get(item, Fraction(0))
        queue.usage[item] = used + Fraction(thirds, 3) * (
            used if thirds < 0 else max(Fraction(0), queue.available(item))
        )
        assert root.used(item) <= root.subtree(item)
        for name, team in policy.teams.items():
            share = team.shares.get(item[0], {}).get(item[1])
            nominal = (share.nominal if share else 0) * unit(item)
            held = queues[name].usage.get(item, Fraction(0))
            if share and share.borrowable is not None:
                assert held <= nominal + share.borrowable * unit(item)
            if team.share == "lend":
                assert held <= nominal
            if team.share == "dont_lend":
                assert held <= nominal
                assert queues[name].available(item) >= nominal - held


@cases()
def test_a_team_alone_gets_what_the_policy_calls_the_most(teams: dict[str, Any], shared: bool) -> None:
    policy, _, queues = rendered(teams, shared)
    for flavor, resource in items(policy):
        capacity = policy.flavors[flavor].capacity[resource] * unit((flavor, resource))
        for name in policy.teams:
            if (flavor, resource) in queues[name].nominal:
                free = queues[name].available((flavor, resource))
                assert min(free, capacity) == policy.most(name, flavor, resource) * unit((flavor, resource))
