"""The names that teams and priorities have in Kubernetes, by engine.

Task governance dictates its own. The other engines have podwright's, which collide with no namespace of a cluster.
"""

from ...config.catalog.limits import limits
from ...config.settings.governance.teams import Engine


def team_namespace(engine: Engine, team: str) -> str:
    """The namespace in which a team works."""
    return f"{limits().compute_quota.namespace_prefix}{team}" if engine == "hyperpod" else f"team-{team}"


def cluster_queue(engine: Engine, team: str) -> str:
    """The ClusterQueue that holds a team's quota, where Kueue keeps quotas: engines hyperpod and kueue."""
    return f"{team_namespace(engine, team)}-clusterqueue" if engine == "hyperpod" else team


def local_queue(engine: Engine, team: str) -> str:
    """The LocalQueue that the team's jobs name in its namespace, where Kueue keeps quotas."""
    return f"{team_namespace(engine, team)}-localqueue" if engine == "hyperpod" else team


def priority_class(priority: str) -> str:
    """The priority class that jobs name. Task governance calls it so; the others follow, so that jobs can move."""
    return f"{priority}-priority"


def pod_priority_class(priority: str, weight: int) -> str:
    """The PriorityClass of pods with KAI and YuniKorn.

    It names the weight, because Kubernetes lets nobody change the value of a class: another weight is another class.
    """
    return f"{priority}-{weight}"
