"""YuniKorn's objects: its one configuration of queues, and the priorities of pods."""

import base64
import gzip
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ..config.catalog.charts import YUNIKORN
from ..config.settings.governance.engines import OtherQueue, YuniKornSettings
from ..planning.quota.amounts import CPU, GPU, MEMORY, NEURON, quantity
from ..planning.quota.node_pools import YUNIKORN_ROOT, department_path, yunikorn_department_queue
from ..planning.quota.policy import QuotaPolicy, Share, TeamPolicy
from ..planning.quota.team_names import team_namespace
from .priority_classes import priority_classes
from .scheduler_guard import scheduler_guard

_CONFIG: Final = "yunikorn-configs"
_FILE: Final = "queues.yaml"
# A custom resource of CloudFormation takes 200 kB, which the text fills twice over once its quotes are escaped.
_LONGEST: Final = 90_000
# Pods of a team that name no queue, where YuniKorn serves others too: enough for a launcher, nothing that quotas are
# about. YuniKorn ignores a maximum of nothing but zeros.
_WITHOUT_QUEUE: Final = {"vcore": "4", "memory": "16Gi", GPU: "0", NEURON: "0"}


def yunikorn_objects(policy: QuotaPolicy, settings: YuniKornSettings) -> list[dict[str, Any]]:
    """Everything that YuniKorn has to know of a policy.

    Decided for you: pods with accelerators in namespaces of teams have to name YuniKorn, or Kubernetes refuses them;
    and a configuration that is too long for one custom resource is packed, which YuniKorn unpacks.

    Args:
        policy: The policy.
        settings: YuniKorn's settings.
    """
    metadata = {"name": _CONFIG, "namespace": settings.existing or YUNIKORN}
    # JSON is YAML, and one that YuniKorn reads without questions of quoting.
    text = json.dumps(yunikorn_queues(policy, settings), indent=1)
    return [
        *scheduler_guard("yunikorn"),
        *priority_classes(policy.priorities),
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **_content(text)},
    ]


def yunikorn_queues(policy: QuotaPolicy, settings: YuniKornSettings) -> dict[str, Any]:
    """What `queues.yaml` holds.

    Decided for you:

    - Each instance group that teams use has a queue of its own below the root, with its departments and teams below.
      Pods of jobs select the nodes of their group, so a quota of one group stays one of that group.
    - A quota is what is guaranteed; quota and what may be borrowed together are the maximum. The queue of a group may
      hold what its quotas add up to and, where that is shared, what no quota holds.
    - Priorities count inside of a team only (`priority.policy: fence`): a team takes back what is its own whatever the
      priority of those who borrowed it. Teams never stop work outside of their group (`preemption.policy: fence`).
    - Jobs of a team start in the order in which they come, by priority first: gangs need that.
    - Nodes fill one after the other, by GPUs first.
    - A pod goes where its label says, or with other queues to that of its namespace, and is refused otherwise. Where
      YuniKorn was there before, any other namespace has a queue without limits, as YuniKorn does by itself.

    Sources: YuniKorn documentation, queue configuration, priorities, preemption and placement rules, 2026-11; its check
    of a configuration and its search for victims, yunikorn-core 1.9.

    Args:
        policy: The policy.
        settings: YuniKorn's settings.
    """
    queues = [queue for pool in policy.flavors if (queue := _pool(policy, pool, settings))]
    queues += [_other(name, queue) for name, queue in sorted(settings.other_queues.items())]
    # Placement rules are tried in their order: what a pod says itself comes before where its namespace leads.
    rules: list[dict[str, Any]] = [{"name": "provided", "create": False}]
    rules += [
        {"name": "tag", "value": "namespace", "create": False, "parent": _fixed(name)}
        for name, queue in sorted(settings.other_queues.items())
        if queue.namespaces
    ]
    if settings.existing:
        queues += [
            {"name": team_namespace("yunikorn", team), "resources": {"max": _WITHOUT_QUEUE}} for team in policy.teams
        ]
        # Last: YuniKorn makes a queue for a namespace that no other rule knew.
        rules.append({"name": "tag", "value": "namespace", "create": True})
    partition = {
        "name": "default",
        # A GPU weighs more than the rest, so that nodes are emptied of free GPUs before others are begun.
        "nodesortpolicy": {"type": "binpacking", "resourceweights": {GPU: 4.0, "vcore": 1.0, "memory": 1.0}},
        "placementrules": rules,
        "queues": [{"name": YUNIKORN_ROOT, "submitacl": "*", "queues": queues}],
    }
    return {"partitions": [partition]}


def _pool(policy: QuotaPolicy, pool: str, settings: YuniKornSettings) -> dict[str, Any] | None:
    """The queue of a pool; None where nobody may hold anything."""
    most = dict(policy.unallocated.get(pool, {}))
    for team in policy.teams.values():
        for resource, share in team.shares.get(pool, {}).items():
            most[resource] = most.get(resource, 0) + share.nominal
    # YuniKorn reads a maximum of nothing but zeros as no maximum at all, so who may hold nothing gets no queue.
    teams = [team for team in policy.teams.values() if any(_most(team.shares.get(pool, {}), most).values())]
    if not teams:
        return None
    return {
        "name": pool,
        "parent": True,
        "properties": {"preemption.policy": "fence"},
        "resources": _resources(limit=most),
        "queues": _inside(policy, None, pool, teams, most, settings),
    }


def _most(shares: Mapping[str, Share], most: Mapping[str, int]) -> dict[str, int]:
    """What a team may hold at most; YuniKorn refuses a queue that may hold more than the one above it."""
    return {
        name: most.get(name, 0)
        if share.borrowable is None
        else min(share.nominal + share.borrowable, most.get(name, 0))
        for name, share in shares.items()
    }


def _inside(
    policy: QuotaPolicy,
    department: str | None,
    pool: str,
    teams: list[TeamPolicy],
    most: Mapping[str, int],
    settings: YuniKornSettings,
) -> list[dict[str, Any]]:
    """The queues directly below that of a department, or of the pool."""
    queues = []
    for name, settings_of in policy.departments.items():
        below = [team for team in teams if name in department_path(team.department, policy.departments)]
        if settings_of.parent == department and below:
            held: dict[str, int] = {}
            for team in below:
                for resource, share in team.shares[pool].items():
                    held[resource] = held.get(resource, 0) + share.nominal
            queues.append(
                {
                    "name": yunikorn_department_queue(name),
                    "parent": True,
                    "properties": {"priority.policy": "fence"},
                    "resources": _resources(guaranteed=held),
                    "queues": _inside(policy, name, pool, below, most, settings),
                }
            )
    queues += [_team(team, pool, most, settings) for team in teams if team.department == department]
    return queues


def _team(team: TeamPolicy, pool: str, most: Mapping[str, int], settings: YuniKornSettings) -> dict[str, Any]:
    shares = team.shares[pool]
    return {
        "name": team.name,
        "properties": {
            "application.sort.policy": "fifo",
            "priority.policy": "fence",
            "preemption.delay": f"{settings.preemption_delay_seconds}s",
        },
        "resources": _resources({name: share.nominal for name, share in shares.items()}, _most(shares, most)),
    }


def _other(name: str, queue: OtherQueue) -> dict[str, Any]:
    resources = {
        result: dict(amounts) for result, amounts in (("guaranteed", queue.guaranteed), ("max", queue.max)) if amounts
    }
    results: dict[str, Any] = {"name": name, "resources": resources}
    if queue.namespaces:
        results |= {"parent": True, "queues": [{"name": namespace} for namespace in sorted(queue.namespaces)]}
    return results


def _fixed(name: str) -> dict[str, str]:
    return {"name": "fixed", "value": f"{YUNIKORN_ROOT}.{name}"}


def _resources(
    guaranteed: Mapping[str, int] | None = None, limit: Mapping[str, int] | None = None
) -> dict[str, dict[str, str]]:
    resources: dict[str, dict[str, str]] = {}
    if guaranteed and any(guaranteed.values()):
        resources["guaranteed"] = _words((name, amount) for name, amount in guaranteed.items() if amount)
    if limit:
        resources["max"] = _words(limit.items())
    return resources


def _words(amounts: Iterable[tuple[str, int]]) -> dict[str, str]:
    """Amounts as YuniKorn writes them; it calls vCPUs vcore."""
    words = {CPU: "vcore", MEMORY: "memory"}
    return {words.get(name, name): quantity(name, amount) for name, amount in sorted(amounts)}


def _content(text: str) -> dict[str, Any]:
    if len(text) <= _LONGEST:
        return {"data": {_FILE: text}}
    # Without a time, so that the same queues are the same bytes.
    packed = gzip.compress(text.encode(), mtime=0)
    return {"binaryData": {f"{_FILE}.gz": base64.b64encode(packed).decode()}}
