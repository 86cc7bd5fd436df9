"""What teams lend, borrow and weigh in engines kueue, kai and yunikorn, where an engine has words for it."""

from fractions import Fraction
from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from engine_queues import Queue, kai_queues, yunikorn_queues
from podwright.cdk8s_charts.kai import kai_objects
from podwright.cdk8s_charts.kueue import kueue_objects
from podwright.cdk8s_charts.yunikorn import yunikorn_objects
from podwright.config.catalog.instance_types import catalog
from podwright.config.settings.governance.engines import KaiSettings, YuniKornSettings
from podwright.config.settings.governance.teams import Governance
from podwright.config.settings.groups import InstanceGroup
from podwright.planning.quota.node_pools import kai_queue, yunikorn_queue
from podwright.planning.quota.policy import QuotaPolicy, quota_policy
from podwright.planning.rules.framework.rule import RULES
from quota_tree import Node, tree
from random_teams import GROUPS, TEAMS

TYPES = catalog()
DEPARTMENTS = {"science": {"weight": 30}, "labs": {"parent": "science", "weight": 3}, "sales": {"weight": 5}}
# KAI counts GPUs, vCPU and memory, each partition as its slices.
COUNTED_BY_KAI = ("cpu", "memory", "nvidia.com/gpu")
KUBERNETES_UNITS = {"cpu": Fraction(1, 1000), "memory": Fraction(2**20)}


def placed(teams: dict[str, Any], locations: list[str | None]) -> dict[str, Any]:
    return {
        name: team | {"department": placement}
        for (name, team), placement in zip(sorted(teams.items()), locations, strict=False)
    }


SPECIFICATIONS = st.fixed_dictionaries(
    {
        "teams": st.builds(placed, TEAMS, st.lists(st.sampled_from([None, *DEPARTMENTS]), min_size=4, max_size=4)),
        "departments": st.just(DEPARTMENTS),
        "idle_resource_sharing": st.booleans(),
        "fair_share": st.booleans(),
    }
)
OF_ALL_KINDS = settings(max_examples=20, deadline=None, derandomize=True, database=None, phases=[Phase.generate])


class Engines:
    """One specification in three engines."""

    def __init__(self, specification: dict[str, Any], groups: dict[str, InstanceGroup] = GROUPS) -> None:
        self.governance = Governance.model_validate(specification | {"engine": "kueue"})
        self.policy: QuotaPolicy = quota_policy(self.governance, groups, TYPES)
        _, self.kueue = tree(kueue_objects(self.policy, self.governance.kueue, groups, TYPES))
        self.kai: dict[str, Queue] = kai_queues(kai_objects(self.policy, KaiSettings(), TYPES))
        self.yunikorn: dict[str, Queue] = yunikorn_queues(yunikorn_objects(self.policy, YuniKornSettings()))

    def in_yunikorn(self, team: str, pool: str) -> Queue | None:
        settings = self.governance.teams[team]
        return self.yunikorn.get(yunikorn_queue(team, settings.department, self.governance.departments, pool))

    def parts(self) -> list[tuple[str, str, str]]:
        return [
            (team.name, pool, resource)
            for team in self.policy.teams.values()
            for pool, shares in team.shares.items()
            for resource in shares
        ]


@OF_ALL_KINDS
@given(SPECIFICATIONS)
def test_a_team_reaches_as_far_in_every_engine(specification: dict[str, Any]) -> None:
    engines = Engines(specification)
    for team, pool, resource in engines.parts():
        unit = KUBERNETES_UNITS.get(resource, Fraction(1))
        kueue: Node = engines.kueue[team]
        reach = kueue.available((pool, resource))
        held = engines.policy.teams[team].shares[pool][resource].nominal * unit
        queue = engines.in_yunikorn(team, pool)
        keeps = any(other.share == "dont_lend" and other.shares.get(pool) for other in engines.policy.teams.values())
        others: list[Fraction | None] = [queue.most(resource) if queue else Fraction(0)]
        if resource in COUNTED_BY_KAI and "mig" not in str(engines.policy.flavors[pool].capacity):
            others.append(engines.kai[kai_queue(team, pool)].most(resource))
        for other in others:
            assert other is not None
            # What one team does not lend, the schedulers lend all the same; that is a finding of its own.
            assert other == reach or (keeps and other > reach)
            assert other >= held


@OF_ALL_KINDS
@given(SPECIFICATIONS)
def test_weights_are_equal_where_there_are_weights(specification: dict[str, Any]) -> None:
    engines = Engines(specification)
    fair = engines.policy.fair_share
    for name, team in engines.policy.teams.items():
        for pool in engines.policy.flavors:
            assert engines.kai[kai_queue(name, pool)].weight == (team.weight if fair else 1)
    for name, department in engines.policy.departments.items():
        for pool in engines.policy.flavors:
            assert engines.kai[f"{name}.department.{pool}"].weight == (department.weight if fair else 1)


@OF_ALL_KINDS
@given(SPECIFICATIONS)
def test_what_an_engine_cannot_say_is_found(specification: dict[str, Any]) -> None:
    def ids(engine: str) -> set[str]:
        governance = Governance.model_validate(specification | {"engine": engine})
        return {
            rule.id
            for rule in RULES.values()
            if rule.on is Governance and rule.id.startswith("GOV0") and any(rule.problems(governance, TYPES))
        }

    governance = Governance.model_validate(specification)
    keeps = any(team.share == "dont_lend" and team.quota for team in governance.teams.values())
    borrowers = {team.weight for team in governance.teams.values() if team.share == "lend_and_borrow"}
    weighs = governance.fair_share and (len(borrowers) > 1 or len(governance.departments) > 1)
    assert ("GOV070" in ids("kai"), "GOV080" in ids("yunikorn")) == (keeps, keeps)
    assert ("GOV071" in ids("kai"), "GOV082" in ids("yunikorn")) == (not governance.fair_share,) * 2
    assert ("GOV081" in ids("yunikorn")) == weighs
    assert not {f"GOV0{number}" for number in range(70, 90)} & ids("kueue")


def test_parents_hold_at_least_what_their_children_do() -> None:
    """KAI refuses a queue whose parent is guaranteed less."""
    teams = {"a": {"quota": {"h200": {"accelerators": 11}}, "department": "labs"}, "b": {"quota": {"h200": 3}}}
    queues = Engines({"teams": teams, "departments": DEPARTMENTS}).kai
    for queue in queues.values():
        for resource, amount in queue.guaranteed.items():
            assert queue.parent is None or queue.parent.guaranteed[resource] >= amount, queue.name
    assert [queue.name for queue in queues["a.h200"].above] == [
        "a.h200",
        "labs.department.h200",
        "science.department.h200",
        "h200",
    ]
