"""The policy that a simulation decides by: Kueue's objects as an environment deploys them, and its settings."""

from typing import Any, Final, NamedTuple

from ...cdk8s_charts.kueue import kueue_objects
from ...config.catalog.instance_types import Catalog
from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ...config.settings.governance.teams import Engine
from ...planning.helm.kueue_values import manager_configuration
from ...planning.quota.amounts import EFA
from ...planning.quota.compute_quotas import compute_quotas, scheduler_config
from ...planning.quota.policy import countable_groups, environment_policy
from ...planning.quota.task_governance_objects import fair_sharing, priority_objects, quota_objects
from ...planning.simulation.planned_nodes import LAYOUT, planned_nodes

_INSTEAD: Final = {
    "kai": "KAI's own fairshare-simulator shows how it divides GPUs between queues; the rest has no specification",
    "yunikorn": "YuniKorn has no specification that a simulation could be held to; try the policy in the sandbox: "
    "`podwright deploy ENV --sandbox`",
    "slurm": "Slurm decides by its own plugins: `sbatch --test-only` on the cluster says when a job would start",
}
_AS_READ: Final = (
    "task governance is simulated as we read it: AWS publishes no formula for its limits and weights, and runs a Kueue "
    "of its own version"
)
Object = dict[str, Any]


class Policy(NamedTuple):
    """What decides."""

    environment: Environment
    engine: Engine
    objects: tuple[Object, ...]
    """Kueue's objects and the nodes, in the order in which they would be applied."""
    configuration: Object
    """That of Kueue's manager, as far as it decides anything."""
    assumptions: tuple[str, ...]


def policy_of(environment: Environment, types: Catalog) -> Policy:
    """The policy that an environment's file deploys.

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
            f"{name} has no teams, so nobody decides who gets what", "add governance.teams; docs/user/quotas.md", 2
        )
    if governance.kueue.multikueue and governance.kueue.multikueue.role == "manager":
        raise CommandError(
            f"{name} hands all work to other clusters, and which one takes it first is not Kueue's decision",
            "simulate one of its workers",
            2,
        )
    policy, nodes = environment_policy(environment, types), tuple(planned_nodes(environment, types))
    if engine == "kueue":
        groups = countable_groups(environment)
        objects = kueue_objects(policy, governance.kueue, groups, types)
        decided = [item for item in objects if item["apiVersion"].startswith("kueue.")]
        return Policy(environment, engine, (*decided, *nodes), manager_configuration(governance), (LAYOUT,))
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
    objects = (*priority_objects(config), *unique.values(), *nodes)
    return Policy(environment, "hyperpod", objects, configuration, (_AS_READ, LAYOUT))
