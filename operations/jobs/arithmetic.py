"""The arithmetic of a waiting job's quota: what it asks for, what its team has and holds, and what others leave."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ...config.settings.environment import Environment
from ...planning.jobs.plan import GROUP_LABEL, engine_of
from ...planning.quota import guarantees
from ...planning.quota.amounts import CPU, amount_of, in_words, is_accelerator
from ...planning.quota.policy import QuotaPolicy, countable_groups
from ...planning.quota.team_names import team_namespace
from .cluster_jobs import Cluster, ClusterJob, nodes_of_quotas
from .resources import in_units, requested, reserved


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
    others_borrow: int | None = None
    """The part of that which is beyond their guarantees."""
    free: int | None = None
    """The amount that is free on nodes; None where they cannot be read."""
    beyond: str = ""
    """The amount by which the guarantees of all teams exceed the nodes, in words; empty if they do not."""

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
        """The amount that no team has; None where that cannot be seen."""
        if self.free is not None:
            return self.free
        return None if self.others is None else max(self.capacity - self.holds - self.others, 0)

    @property
    def is_short(self) -> bool:
        """Whether there is too little of it: of the team's quota, or on the nodes."""
        limited = self.holds + self.asks > self.most
        return limited or self.borrows > 0 or (self.idle is not None and self.idle < self.asks)

    def sentences(self, team: str) -> Iterator[str]:
        """The conclusions, for people."""
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
            yield f"{team} has {guarantee}, which is enough{self._return_of_borrowed()}."
        else:
            yield f"{team} has {guarantee}, and would have to borrow {in_words(self.resource, self.borrows)}."
        if self.idle is not None and self.idle < self.asks:
            yield f"Of {in_words(self.resource, self.capacity)} {self.idle_words} idle."
            if self.beyond:
                yield f"Quotas guarantee more than there is (GOV002): {self.beyond}."

    def _return_of_borrowed(self) -> str:
        """The last clause of a sentence: whether the team can reclaim quota that other teams have borrowed."""
        if self.idle is None or self.others_borrow is None:
            return ""
        if self.idle >= self.asks:
            return f", and {self.idle_words} idle: it does not wait for quota"
        if self.others_borrow:
            return f": other teams must return borrowed quota ({in_words(self.resource, self.others_borrow)})"
        return "; no other team borrows, so none must return quota"

    @property
    def idle_words(self) -> str:
        """How much is idle, within a sentence."""
        idle = self.idle or 0
        return f"{in_words(self.resource, idle)} {'is' if in_units(self.resource, idle) == 1 else 'are'}"


def sums(cluster: Cluster, job: ClusterJob, policy: QuotaPolicy, environment: Environment) -> list[Sum]:
    """The arithmetic of the Workload that Kueue takes next of a job: accelerators first, then vCPUs.

    Without accelerators all resources are there. The result is empty for a job that does not wait for a quota of Kueue.
    """
    team = policy.teams.get(job.team)
    if team is None or not job.waiting:
        return []
    asks = job.growth.needs if job.growth else requested(job.next_pending)
    queues = Queues(cluster, policy, engine_of(environment))
    beyond = {each.flavor: each.words for each in guarantees.beyond(policy, _nodes(cluster, environment))}
    results = [
        Sum(
            flavor=flavor,
            resource=resource,
            asks=asks[resource],
            guaranteed=share.nominal,
            most=policy.most(job.team, flavor, resource),
            holds=queues.held(job.team, flavor, resource),
            capacity=policy.flavors[flavor].capacity.get(resource, 0),
            others=queues.held_by_others(job.team, flavor, resource),
            others_borrow=queues.borrowed_by_others(job.team, flavor, resource),
            free=cluster.free[flavor].get(resource, 0) if flavor in cluster.free else None,
            beyond=beyond.get(flavor, ""),
        )
        for flavor in _flavors(job, policy)
        for resource, share in team.shares.get(flavor, {}).items()
        if asks.get(resource)
    ]
    if not any(is_accelerator(item.resource) for item in results):
        return results
    counted = [item for item in results if is_accelerator(item.resource) or item.resource == CPU]
    return sorted(counted, key=lambda item: item.resource == CPU)


class Queues:
    """The quota that teams hold, as their LocalQueues show it."""

    def __init__(self, cluster: Cluster, policy: QuotaPolicy, engine: Any) -> None:
        """The queues that are readable; those of other teams count only where all are."""
        self._policy = policy
        self._namespaces = {name: team_namespace(engine, name) for name in policy.teams}
        self._queues: dict[str, list[Mapping[str, Any]]] = {}
        for queue in cluster.kind("LocalQueue"):
            self._queues.setdefault(queue["metadata"]["namespace"], []).append(queue)
        self._all_readable = self._queues.keys() >= {*self._namespaces.values()}

    def held(self, team: str, flavor: str, resource: str) -> int:
        """The amount that a team has reserved."""
        return _held(self._queues.get(self._namespaces[team], ()), flavor, resource)

    def borrowed(self, team: str, flavor: str, resource: str) -> int:
        """The amount that a team has beyond its guarantee."""
        share = self._policy.teams[team].shares.get(flavor, {}).get(resource)
        return max(self.held(team, flavor, resource) - (share.nominal if share else 0), 0)

    def held_by_others(self, team: str, flavor: str, resource: str) -> int | None:
        """The amount that all other teams have reserved; None where some of their queues are not readable."""
        if not self._all_readable:
            return None
        return sum(self.held(other, flavor, resource) for other in self._namespaces if other != team)

    def borrowed_by_others(self, team: str, flavor: str, resource: str) -> int | None:
        """The amount that other teams have beyond their guarantees; None where some queues are not readable."""
        if not self._all_readable:
            return None
        return sum(self.borrowed(other, flavor, resource) for other in self._namespaces if other != team)


class Holding(NamedTuple):
    """One resource of one flavor that a team has now. Units are those of quotas."""

    flavor: str
    resource: str
    guaranteed: int
    holds: int
    borrowed: int

    @property
    def in_words(self) -> str:
        """The amounts, for people: `48 vCPUs guaranteed, 40 borrowed, 88 in use`."""
        guaranteed = in_words(self.resource, self.guaranteed)
        borrowed, now = (in_words(self.resource, amount).split()[0] for amount in (self.borrowed, self.holds))
        return f"{guaranteed} guaranteed, {borrowed} borrowed, {now} in use"


def holdings(cluster: Cluster, job: ClusterJob, policy: QuotaPolicy, engine: Any) -> list[Holding]:
    """The quota of a job's team that is in use, vCPUs before accelerators; empty for a job without quota of Kueue."""
    team = policy.teams.get(job.team)
    if team is None or not any(map(reserved, job.workloads)):
        return []
    queues = Queues(cluster, policy, engine)
    results = [
        Holding(
            flavor=flavor,
            resource=resource,
            guaranteed=share.nominal,
            holds=queues.held(job.team, flavor, resource),
            borrowed=queues.borrowed(job.team, flavor, resource),
        )
        for flavor in sorted(team.shares)
        for resource, share in team.shares[flavor].items()
        if resource == CPU or is_accelerator(resource)
    ]
    return sorted((item for item in results if item.guaranteed or item.holds), key=lambda item: item.resource != CPU)


def _nodes(cluster: Cluster, environment: Environment) -> dict[str, int]:
    """The number of nodes of each group: those that are there, or those of the file where they cannot be read."""
    nodes = nodes_of_quotas(environment, cluster.items)
    counts = Counter((node["metadata"].get("labels") or {}).get(GROUP_LABEL, "") for node in nodes)
    return {name: counts[name] if nodes else group.count for name, group in countable_groups(environment).items()}


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
