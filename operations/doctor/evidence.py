"""What doctor reasons about: signals, which are pieces of evidence that concern something that is not well now."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Literal

Kind = Literal["message", "stack", "lifecycle", "health", "kubernetes", "pod_log", "state"]
"""What a signal is: what an AWS service says of cluster, nodes, quotas and add-ons; a reason of CloudFormation; a line
of a lifecycle log; a record of the health agent or of a deep check; what Kubernetes says of its objects; a line of a
pod's log; or a sentence of doctor's own about how things stand, such as a plan that has ended."""

CLUSTER: Final = "cluster"
"""The subject of signals that concern the whole cluster."""


@dataclass(frozen=True, slots=True)
class Signal:
    """A piece of evidence."""

    kind: Kind
    text: str
    subject: str
    """What it concerns, such as `cluster`, `group h200`, `node i-0123456789abcdef0` or `job hyperpod-ns-a/llama`."""
    place: str
    """Where it stands: file, and line or key."""
    around: frozenset[str] = field(default_factory=frozenset)
    """What the subject is part of: a node's group and cluster, a job's nodes."""
    after: frozenset[str] = field(default_factory=frozenset)
    """What it may be a consequence of, without being part of it: a pod finds no room while a group is short."""
    time: datetime | None = None
    symptom: bool = False
    """Whether it is trouble in itself, known cause or not."""
    running: bool = False
    """Whether it comes from a pod that runs as if nothing were wrong."""

    def follows_from(self, other: "Signal") -> bool:
        """Whether the other's cause explains it: both are about the same thing, or about it and a part of it."""
        return (
            self.subject == other.subject
            or other.subject in self.around
            or other.subject in self.after
            # The other way as well: what is known of a part explains that the whole is not well.
            or self.subject in other.around
        )


@dataclass(frozen=True, slots=True)
class Group:
    """An instance group as it is."""

    name: str
    instance_type: str
    current: int
    target: int
    status: str
    subnets: tuple[str, ...]
    security_groups: tuple[str, ...]
    plan: str
    waits: bool
    """Whether it is short of instances for so little time that this is no fault."""

    @property
    def short(self) -> bool:
        """Whether it has fewer instances than it wants."""
        return self.current < self.target

    @property
    def subject(self) -> str:
        """Its name among the subjects."""
        return f"group {self.name}"


@dataclass(frozen=True, slots=True)
class Node:
    """A node as it is."""

    id: str
    group: str
    instance_type: str
    status: str
    message: str
    launched: datetime | None
    healthy: bool
    """Whether neither SageMaker nor Kubernetes finds fault with it."""

    @property
    def subject(self) -> str:
        """Its name among the subjects."""
        return f"node {self.id}"


@dataclass(frozen=True, slots=True)
class Scene:
    """How the cluster stands at the moment of the bundle: against it, evidence is past or present."""

    now: datetime
    status: str
    """Of the cluster; empty where there is none, or nobody could look."""
    groups: dict[str, Group]
    nodes: dict[str, Node]
    labelled: frozenset[str]
    """Ids of the nodes whose health Kubernetes tells."""
    hidden: bool = False
    """Whether nobody could look at the cluster: a group that is not here may be there and full."""

    @property
    def trouble(self) -> frozenset[str]:
        """The cluster, and those of its groups and nodes that are not well."""
        groups = (group.subject for group in self.groups.values() if group.short)
        return frozenset({CLUSTER, *groups, *(node.subject for node in self.nodes.values() if not node.healthy)})

    @property
    def failed(self) -> bool:
        """Whether the cluster as a whole is not in service."""
        return self.status in ("Failed", "RollingBack")

    def since(self, time: datetime | None) -> timedelta:
        """How long ago that was; no time at all for an unknown one."""
        return self.now - time if time else timedelta(0)

    def around_node(self, id: str, group: str) -> frozenset[str]:
        """What a node is part of."""
        return frozenset({f"node {id}", f"group {group}", CLUSTER})

    def concerns_now(self, id: str, group: str) -> bool:
        """Whether what is told of an instance still matters: it is not well, or it is gone and its group is short."""
        if node := self.nodes.get(id):
            return not node.healthy
        entry = self.groups.get(group)
        # Without any group nobody knows what is still there, so the message counts.
        return self.failed or (entry.short if entry else not self.groups and not self.hidden)
