"""The arithmetic of a waiting job's quota: what it asks for, what its team has and holds, and what others leave."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ...planning.jobs.plan import GROUP_LABEL
from ...planning.quota.amounts import amount_of, in_words, is_accelerator
from ...planning.quota.policy import QuotaPolicy
from ...planning.quota.team_names import team_namespace
from .cluster_jobs import Cluster, ClusterJob


class Sum(NamedTuple):
    """One resource of one flavor. Units are those of quotas."""

    flavor: str
    resource: str
    asks: int
    guaranteed: int
    most: int
    """What the team can hold while nobody else holds anything."""
    holds: int
    """What the team has now."""
    capacity: int
    """What all nodes of the flavor bring."""
    others: int | None
    """What all other teams have now; None where whoever asks may not read their queues."""

    @property
    def own(self) -> int:
        """What is left of the guarantee."""
        return max(self.guaranteed - self.holds, 0)

    @property
    def borrows(self) -> int:
        """What it would have to borrow."""
        return max(self.asks - self.own, 0)

    @property
    def idle(self) -> int | None:
        """What nobody has; None where that cannot be seen."""
        return None if self.others is None else max(self.capacity - self.holds - self.others, 0)

    def sentences(self, team: str) -> Iterator[str]:
        """What follows, for people."""
        asks = in_words(self.resource, self.asks)
        if self.asks > self.most:
            yield f"{asks} are more than {team} can ever hold ({in_words(self.resource, self.most)}): it never starts."
            return
        if self.holds + self.asks > self.most:
            holds, most = in_words(self.resource, self.holds), in_words(self.resource, self.most)
            yield f"{team} holds {holds}, and with {asks} more it would pass its limit of {most}."
            return
        guarantee = f"{in_words(self.resource, self.own)} left of its guarantee"
        if not self.borrows:
            yield f"{team} has {guarantee}, which is enough: others have to give back what they borrow."
            return
        yield f"{team} has {guarantee}, and would have to borrow {in_words(self.resource, self.borrows)}."
        if self.idle is not None and self.idle < self.asks:
            yield f"Of {in_words(self.resource, self.capacity)} {self.idle_words} idle."

    @property
    def idle_words(self) -> str:
        """How much is idle, within a sentence."""
        return f"{in_words(self.resource, self.idle or 0)} {'is' if self.idle == 1 else 'are'}"


def sums(cluster: Cluster, job: ClusterJob, policy: QuotaPolicy, engine: Any) -> list[Sum]:
    """The arithmetic of a job that waits for a quota of Kueue, accelerators first; of others nothing."""
    team = policy.teams.get(job.team)
    if team is None or not job.waiting:
        return []
    asks = job.asks
    namespaces = {team_namespace(engine, name) for name in policy.teams}
    queues = cluster.kind("LocalQueue")
    readable = {queue["metadata"]["namespace"] for queue in queues} >= namespaces
    own = [queue for queue in queues if queue["metadata"]["namespace"] == job.namespace]
    others = [queue for queue in queues if queue["metadata"]["namespace"] in namespaces - {job.namespace}]
    results = [
        Sum(
            flavor=flavor,
            resource=resource,
            asks=asks[resource],
            guaranteed=share.nominal,
            most=policy.most(job.team, flavor, resource),
            holds=_held(own, flavor, resource),
            capacity=policy.flavors[flavor].capacity.get(resource, 0),
            others=_held(others, flavor, resource) if readable else None,
        )
        for flavor in _flavors(job, policy)
        for resource, share in team.shares.get(flavor, {}).items()
        if asks.get(resource)
    ]
    return [item for item in results if is_accelerator(item.resource)] or results


def _flavors(job: ClusterJob, policy: QuotaPolicy) -> list[str]:
    """The flavors of the groups that its pods choose; all of its team's where they choose none."""
    parts = [part for workload in job.waiting for part in workload["spec"]["podSets"]]
    groups = {part["template"]["spec"].get("nodeSelector", {}).get(GROUP_LABEL) for part in parts}
    chosen = [name for name, flavor in policy.flavors.items() if groups & {*flavor.groups}]
    return chosen or list(policy.teams[job.team].shares)


def _held(queues: Sequence[Mapping[str, Any]], flavor: str, resource: str) -> int:
    """How much of a resource queues have a reservation of."""
    parts = [part for queue in queues for part in queue.get("status", {}).get("flavorsReservation") or ()]
    entries = [entry for part in parts if part["name"] == flavor for entry in part["resources"]]
    return sum(amount_of(resource, entry["total"]) for entry in entries if entry["name"] == resource)
