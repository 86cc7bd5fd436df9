"""What the wait for namespaces looks at: each by its name, there and not going."""

from dataclasses import dataclass, field
from typing import Any, Final

import boto3

from ....common.handler_runtime.kubernetes import KubernetesApi

_SHOWN: Final = 5
"""Namespaces in a failure's reason; CloudFormation keeps it short."""


@dataclass
class Seen:
    """What one read found."""

    count: int
    """Namespaces that are wanted."""
    problems: dict[str, str] = field(default_factory=dict)
    """Why a namespace takes no objects yet, by its name."""

    @property
    def complete(self) -> bool:
        """Whether every namespace takes objects."""
        return not self.problems

    @property
    def data(self) -> dict[str, str]:
        """Attributes of the custom resource."""
        return {"Ready": str(self.count - len(self.problems))}

    def __str__(self) -> str:
        return f"{self.count - len(self.problems)} of {self.count} namespaces {self.problems or ''}".strip()


@dataclass(frozen=True)
class NamespacesOfTeams:
    """Namespaces that somebody else makes, all there."""

    eks_cluster: str
    names: tuple[str, ...]
    timeout_seconds: int

    @classmethod
    def of(cls, properties: dict[str, Any]) -> "NamespacesOfTeams":
        """From the resource's properties; CloudFormation sends every number as text."""
        return cls(properties["EksClusterName"], tuple(properties["Namespaces"]), int(properties["TimeoutSeconds"]))

    @property
    def physical_id(self) -> str:
        """The same for every list of names, so that a team that comes or goes replaces nothing."""
        return f"{self.eks_cluster}/namespaces"

    def observe(self, session: boto3.Session) -> Seen:
        """What there is now."""
        observed = Seen(len(self.names))
        try:
            api = KubernetesApi(session, self.eks_cluster)
        except OSError as error:
            observed.problems = dict.fromkeys(self.names, f"Kubernetes: {error}")
            return observed
        for name in self.names:
            problem = _problem(api, name)
            if problem:
                observed.problems[name] = problem
        return observed

    def reason(self, session: boto3.Session, observed: Seen) -> str:
        """Why the wait failed."""
        minutes = self.timeout_seconds // 60
        missing = [f"{name}: {problem}" for name, problem in observed.problems.items()]
        first = f"{len(missing)} of {observed.count} namespaces are not there after {minutes} minutes"
        return "; ".join([first, *missing[:_SHOWN]])


def _problem(api: KubernetesApi, name: str) -> str:
    """Why a namespace takes no objects, and empty when it does."""
    try:
        namespace = api.namespace(name)
    except OSError as error:
        # Refusals too: it is not there yet, or an access entry has not taken effect yet.
        return f"Kubernetes: {error}"
    # Left by a quota that went, such as that of a deployment that was rolled back: it takes no new objects, and what it
    # holds goes with it.
    if namespace["metadata"].get("deletionTimestamp"):
        return "it is being deleted"
    return ""
