"""AWS::SageMaker::ComputeQuota and ClusterSchedulerConfig, made through the SageMaker API of the sandbox."""

import time
from dataclasses import dataclass

from ...protocol.json_objects import JsonObject
from .api import call, retag
from .base import HandlerError, Outcome, Provider, Request

_POLL_SECONDS = 0.1


@dataclass(frozen=True)
class SchedulerResource:
    """One of the two types: `kind` as its API members begin, `noun` as its operations are called."""

    kind: str
    noun: str

    def create(self, request: Request) -> Outcome:
        """Create it and wait until it is in force."""
        made = call(request, "sagemaker", f"create_{self.noun}", request.properties)
        return self._wait(request, made[f"{self.kind}Id"])

    def update(self, request: Request) -> Outcome:
        """Change its latest version."""
        identifier = request.attributes[f"{self.kind}Id"]
        current = self._describe(request, identifier)
        values = {**request.properties, f"{self.kind}Id": identifier, "TargetVersion": current[f"{self.kind}Version"]}
        call(request, "sagemaker", f"update_{self.noun}", values)
        retag(request, current[f"{self.kind}Arn"])
        return self._wait(request, identifier)

    def delete(self, request: Request) -> None:
        """Delete it and wait until it is gone, which an error says."""
        identifier = request.attributes[f"{self.kind}Id"]
        call(request, "sagemaker", f"delete_{self.noun}", {f"{self.kind}Id": identifier})
        while True:
            self._describe(request, identifier)
            time.sleep(_POLL_SECONDS)

    def _wait(self, request: Request, identifier: str) -> Outcome:
        while (result := self._describe(request, identifier))["Status"].endswith("ing"):
            time.sleep(_POLL_SECONDS)
        arn = result[f"{self.kind}Arn"]
        if result["Status"].endswith("Failed"):
            raise HandlerError.saying(result.get("FailureReason", "It failed"), "NotStabilized", arn)
        names = (f"{self.kind}Arn", f"{self.kind}Id", f"{self.kind}Version", "Status")
        return Outcome(
            arn, {**{name: result[name] for name in names}, "CreationTime": result["CreationTime"].isoformat()}
        )

    def _describe(self, request: Request, identifier: str) -> JsonObject:
        return call(request, "sagemaker", f"describe_{self.noun}", {f"{self.kind}Id": identifier})


SCHEDULERS: dict[str, Provider] = {
    "AWS::SageMaker::ComputeQuota": SchedulerResource("ComputeQuota", "compute_quota"),
    "AWS::SageMaker::ClusterSchedulerConfig": SchedulerResource("ClusterSchedulerConfig", "cluster_scheduler_config"),
}
