"""The policy that a simulation decides by: Kueue's objects as an environment deploys them, and its settings."""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from ...cdk8s_charts.kueue import kueue_objects
from ...config.catalog.instance_types import Catalog, environment_types
from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ...config.settings.governance.teams import Engine, Override
from ...planning.helm.kueue_values import manager_configuration
from ...planning.jobs.plan import GROUP_LABEL
from ...planning.quota.amounts import EFA
from ...planning.quota.compute_quotas import compute_quotas, scheduler_config
from ...planning.quota.overrides import override_moments, with_overrides
from ...planning.quota.policy import countable_groups, environment_policy
from ...planning.quota.task_governance_objects import fair_sharing, priority_objects, quota_objects
from ...planning.simulation.assumptions import CHECKS
from ...planning.simulation.kueue.feature_gates import not_simulated
from ...planning.simulation.plan_windows import dated_plans, plan_moments, plan_windows, present_nodes
from ...planning.simulation.planned_nodes import LAYOUT, planned_nodes
from ...planning.simulation.snapshot import Snapshot
from ...planning.simulation.team_budgets import budget_sentences, following_budget_sentences

UNDATED: Final = 1e8
"""Work that begins before this has no real clock: a trace counts its seconds from any beginning."""
_QUOTAS: Final = ("ClusterQueue", "Cohort")
_INSTEAD: Final = {
    "kai": "KAI's own fairshare-simulator shows how it divides GPUs between queues; the rest has no specification",
    "yunikorn": "YuniKorn has no specification that a simulation could be held to; try the policy in the sandbox: "
    "`podwright deploy ENV --sandbox`",
    "slurm": "Slurm decides by its own plugins: `sbatch --test-only` on the cluster says when a job would start",
}
_AS_READ: Final = (
    "task governance is simulated by podwright's reading: AWS publishes no formula for its limits and weights, and "
    "runs its own version of Kueue"
)
_IN_WINDOWS: Final = (
    "nodes of {} exist in the windows of its training plan, until half an hour before each ends; a job that loses "
    "one node gets another if there is room, and one that loses more stops at once and waits again"
)
_OUT_OF_WINDOWS: Final = (
    "training plan {} has no window at the time of the jobs, so its nodes always exist here; --at moves the "
    "time of the jobs"
)
_IN_FORCE: Final = "override {} is deployed from {} to {}"
_NOT_IN_FORCE: Final = "override {} does not apply at the time of the jobs; --at moves the jobs"
Object = Mapping[str, Any]


class ObjectKey(NamedTuple):
    """By what an object is told from others."""

    kind: str
    namespace: str
    name: str


def key_of(item: Object) -> ObjectKey:
    """The key of an object."""
    return ObjectKey(item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"])


class State(NamedTuple):
    """What decides from a time on."""

    time: float
    environment: Environment
    """As it is then."""
    objects: tuple[Object, ...]
    """As `Policy.objects`."""
    present: Mapping[str, int]
    """Nodes of the groups of which not all are there."""


class Policy(NamedTuple):
    """What decides."""

    environment: Environment
    engine: Engine
    objects: tuple[Object, ...]
    """Kueue's objects and the nodes, in the order in which they would be applied."""
    configuration: dict[str, Any]
    """That of Kueue's manager, as far as it decides anything."""
    assumptions: tuple[str, ...]
    before: Mapping[ObjectKey, Object | None] = MappingProxyType({})
    """Objects of another deployment that take the place of these; None where it has none of that name."""
    states: tuple[State, ...] = ()
    """What decides one after the other, in the order of time, where the policy or its nodes change."""


def dated_policy(policy: Policy, types: Catalog, start: float, end: float) -> Policy:
    """A policy in the time of some work: nodes come and go with the windows of training plans.

    Args:
        policy: What the file says without a time.
        types: Instance catalog of its environment.
        start: When the work begins.
        end: When the last of it comes.
    """
    environment = policy.environment
    plans = dated_plans(environment, start, end)
    moments = {date.timestamp() for date in override_moments(environment)} if start > UNDATED else set[float]()
    times = sorted(time for time in moments | plan_moments(environment, plans) if time > start)
    states = [_state(environment, types, time, plans, policy.before) for time in (start, *times)]
    known = sorted(name for name, group in environment.instance_groups.items() if group.plan in plans)
    unknown = sorted({window["plan"] for window in plan_windows(environment)} - plans)
    sentences = [*map(_IN_WINDOWS.format, known), *map(_OUT_OF_WINDOWS.format, unknown)]
    for name, override in environment.governance.overrides.items():
        is_met = override.begin.timestamp() <= end and override.end.timestamp() > start
        sentences.append(_in_force_words(name, override) if is_met else _NOT_IN_FORCE.format(name))
    sentences += budget_sentences(environment, is_dated=start > UNDATED)
    assumptions = (*policy.assumptions, *sentences)
    return policy._replace(objects=states[0].objects, assumptions=assumptions, states=tuple(states))


def _in_force_words(name: str, override: Override) -> str:
    return _IN_FORCE.format(name, *(f"{date:%Y-%m-%d %H:%M}" for date in (override.begin, override.end)))


def policy_of(environment: Environment, types: Catalog) -> Policy:
    """The policy that an environment's file deploys, with all nodes.

    Raises:
        CommandError: its engine is not Kueue's, or nobody has a quota.
    """
    governance, name = environment.governance, environment.name
    engine = governance.engine if environment.cluster.orchestrator == "eks" else "slurm"
    if not environment.has_cluster:
        raise CommandError(f"{name} has no cluster that work could wait for", "name an environment with one", 2)
    if engine in _INSTEAD:
        raise CommandError(
            f"{name} shares by {engine}, and what is simulated is Kueue: engines hyperpod and kueue",
            _INSTEAD[engine].replace("ENV", name),
            2,
        )
    if not governance.teams:
        raise CommandError(
            f"{name} has no teams, so there are no quotas to simulate", "add governance.teams; docs/user/quotas.md", 2
        )
    if governance.kueue.multikueue and governance.kueue.multikueue.role == "manager":
        raise CommandError(
            f"{name} hands all work to other clusters, and which one takes it first is not Kueue's decision",
            "simulate one of its workers",
            2,
        )
    deployed = _deployed(environment, types)
    nodes = planned_nodes(environment, types)
    decides, sentences = (engine, (LAYOUT,)) if engine == "kueue" else ("hyperpod", (_AS_READ, LAYOUT))
    sentences = (*sentences, *not_simulated(deployed.configuration))
    return Policy(environment, decides, (*deployed.objects, *nodes), deployed.configuration, sentences)


class _Deployed(NamedTuple):
    """What decides of a deployment, without nodes."""

    objects: tuple[Object, ...]
    configuration: dict[str, Any]


def _deployed(environment: Environment, types: Catalog) -> _Deployed:
    """Kueue's objects and its manager's configuration, of either engine."""
    governance, policy = environment.governance, environment_policy(environment, types)
    if governance.engine == "kueue":
        objects = kueue_objects(policy, governance.kueue, countable_groups(environment), types)
        decided = tuple(item for item in objects if item["apiVersion"].startswith("kueue."))
        return _Deployed(decided, manager_configuration(governance))
    config = scheduler_config(governance, policy)
    quotas = compute_quotas(governance, policy).values()
    # Teams share flavors and topologies.
    unique = {
        (item["kind"], item["metadata"].get("namespace"), item["metadata"]["name"]): item
        for quota in quotas
        for item in quota_objects(quota)
    }
    configuration = {
        "resources": {"excludeResourcePrefixes": ["ephemeral-storage", "hugepages-", EFA]},
        "fairSharing": fair_sharing(config),
    }
    return _Deployed((*priority_objects(config), *unique.values()), configuration)


def _state(
    environment: Environment,
    types: Catalog,
    time: float,
    plans: Collection[str],
    before: Mapping[ObjectKey, Object | None],
) -> State:
    """What decides at a time, while nodes of these plans come and go."""
    present, current = present_nodes(environment, plans, time), _in_force(environment, time)
    nodes = planned_nodes(environment, types, present)
    return State(time, current, (*_exchanged(_deployed(current, types).objects, before), *nodes), present)


def _in_force(environment: Environment, time: float) -> Environment:
    """An environment with the quotas that are deployed at a time."""
    return with_overrides(environment, datetime.fromtimestamp(time, UTC))


def following_sentences(snapshot: Snapshot, environment: Environment, checks: float) -> Iterator[str]:
    """What is assumed of the time after a snapshot.

    Args:
        snapshot: What there is.
        environment: Whose windows of training plans, overrides and budgets are to come.
        checks: Seconds until AdmissionChecks are ready.
    """
    yield from not_simulated(_deployed(environment, environment_types(environment.instance_types)).configuration)
    if any(item["kind"] == "ClusterQueue" and item["spec"].get("admissionChecksStrategy") for item in snapshot.objects):
        yield CHECKS.format(checks)
    plans = dated_plans(environment, snapshot.taken, math.inf)
    yield from (_IN_WINDOWS.format(name) for name, group in environment.instance_groups.items() if group.plan in plans)
    for name, override in environment.governance.overrides.items():
        if override.end.timestamp() > snapshot.taken:
            yield _in_force_words(name, override)
    yield from following_budget_sentences(snapshot, environment)


def following_states(snapshot: Snapshot, environment: Environment, types: Catalog) -> tuple[State, ...]:
    """What decides after a snapshot was taken, beginning with it, where nodes come and go with training plans."""
    plans = dated_plans(environment, snapshot.taken, math.inf)
    changes = {date.timestamp() for date in override_moments(environment)}
    times = sorted(time for time in changes | plan_moments(environment, plans) if time > snapshot.taken)
    states = [State(snapshot.taken, environment, tuple(snapshot.objects), {})]
    for time in times:
        present, current = present_nodes(environment, plans, time), _in_force(environment, time)
        # Until quotas change, those of the cluster are what is deployed.
        has_changed = any(snapshot.taken < date <= time for date in changes)
        quotas = {key_of(item): item for item in _deployed(current, types).objects if item["kind"] in _QUOTAS}
        known = {key_of(item) for item in snapshot.objects}
        deployed = {key: item for key, item in quotas.items() if key in known}
        policies = _exchanged(snapshot.objects, deployed) if has_changed else snapshot.objects
        objects = (*_without_groups(policies, present), *_nodes(snapshot, environment, types, present))
        states.append(State(time, current, objects, present))
    return tuple(states)


def _exchanged(objects: Iterable[Object], others: Mapping[ObjectKey, Object | None]) -> list[Object]:
    """The objects, with others in place of those of the same key, and those that have no such key after them."""
    result: dict[ObjectKey, Object | None] = {key_of(item): item for item in objects}
    result.update(others)
    return [item for item in result.values() if item is not None]


def _without_groups(objects: Iterable[Object], groups: Collection[str]) -> Iterator[Object]:
    """All objects but the nodes of some groups."""
    return (item for item in objects if item["kind"] != "Node" or _group(item) not in groups)


def _nodes(
    snapshot: Snapshot, environment: Environment, types: Catalog, present: Mapping[str, int]
) -> Iterator[Object]:
    """Nodes of groups: those that the snapshot shows, and planned ones for what it lacks."""
    planned = list(planned_nodes(environment, types, present))
    for group, count in present.items():
        shown = [item for item in snapshot.objects if item["kind"] == "Node" and _group(item) == group][:count]
        yield from shown
        yield from [item for item in planned if _group(item) == group][len(shown) :]


def _group(node: Object) -> str:
    return (node["metadata"].get("labels") or {}).get(GROUP_LABEL, "")
