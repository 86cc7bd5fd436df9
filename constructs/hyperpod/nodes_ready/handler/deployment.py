"""What the wait for a Deployment looks at: its own status, as its controller reports it."""

from dataclasses import dataclass
from typing import Any

import boto3

from ....common.handler_runtime.kubernetes import KubernetesApi


@dataclass
class Seen:
    """What one read found."""

    wanted: int = 0
    ready: int = 0
    """Replicas of the current revision that are ready."""
    problem: str = ""
    """Why there is nothing to count, or what its conditions say; empty when all is well."""
    alone: bool = True
    """Whether no replica of a former revision is left."""

    @property
    def complete(self) -> bool:
        """Whether every replica of the current revision is ready, and no other is left."""
        return self.alone and 0 < self.wanted <= self.ready

    @property
    def data(self) -> dict[str, str]:
        """Attributes of the custom resource."""
        return {"Ready": str(self.ready)}

    def __str__(self) -> str:
        return f"{self.ready} of {self.wanted} replicas ready {self.problem}".strip()


@dataclass(frozen=True)
class ReplicasOfDeployment:
    """The replicas of one Deployment, all ready."""

    eks_cluster: str
    namespace: str
    name: str
    timeout_seconds: int

    @classmethod
    def of(cls, properties: dict[str, str]) -> "ReplicasOfDeployment":
        """From the resource's properties; CloudFormation sends every number as text."""
        return cls(
            properties["EksClusterName"],
            properties["Namespace"],
            properties["Deployment"],
            int(properties["TimeoutSeconds"]),
        )

    @property
    def physical_id(self) -> str:
        """The same for every version of what the Deployment runs, so that an update replaces nothing."""
        return f"{self.eks_cluster}/{self.namespace}/{self.name}"

    def observe(self, session: boto3.Session) -> Seen:
        """What there is now."""
        try:
            return _seen(KubernetesApi(session, self.eks_cluster).deployment(self.namespace, self.name))
        except OSError as error:
            # Refusals too: it is not there yet, or an access entry has not taken effect yet.
            return Seen(problem=f"Kubernetes: {error}")

    def reason(self, session: boto3.Session, observed: Seen) -> str:
        """Why the wait failed."""
        return (
            f"Deployment {self.name} in {self.namespace} has {observed.ready} of {observed.wanted} "
            f"replicas ready after "
            f"{self.timeout_seconds // 60} minutes{'; ' if observed.problem else ''}{observed.problem}"
        )


def _seen(deployment: dict[str, Any]) -> Seen:
    """How many replicas of the latest revision are ready, and in the Deployment's words why not all."""
    status, desired = deployment.get("status", {}), int(deployment["spec"].get("replicas", 1))
    # Until then the status is that of the former specification, whose replicas are ready.
    if status.get("observedGeneration", 0) < deployment["metadata"].get("generation", 0):
        return Seen(desired, 0, "its controller has not seen the latest change")
    # Those of the former revision are ready too while a rollout continues, and take requests until they are gone.
    ready, updated = int(status.get("readyReplicas", 0)), int(status.get("updatedReplicas", 0))
    former = int(status.get("replicas", 0)) - updated + int(status.get("terminatingReplicas", 0))
    if former > 0:
        return Seen(desired, min(ready, updated), f"{former} replicas of the former revision are still there", False)
    messages = [
        condition["message"]
        for condition in status.get("conditions", [])
        if condition.get("message")
        and (condition["type"], condition["status"])
        in (("Available", "False"), ("Progressing", "False"), ("ReplicaFailure", "True"))
    ]
    return Seen(desired, min(ready, updated), "; ".join(messages))
