"""The two kinds of objects of SageMaker's scheduler, in the words of its API."""

from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True)
class Kind:
    """One kind, whose operations are called alike."""

    noun: str
    """As in `create_<noun>`."""
    member: str
    """What its id, ARN and version begin with."""

    def id_of(self, answer: dict[str, Any]) -> str:
        """The id in an answer."""
        return answer[f"{self.member}Id"]

    def arn_of(self, answer: dict[str, Any]) -> str:
        """The ARN in an answer."""
        return answer[f"{self.member}Arn"]

    def version_of(self, answer: dict[str, Any]) -> int:
        """The version in an answer, which an update has to name."""
        return answer[f"{self.member}Version"]


KINDS: Final = {
    "Custom::PodwrightComputeQuota": Kind("compute_quota", "ComputeQuota"),
    "Custom::PodwrightSchedulerConfig": Kind("cluster_scheduler_config", "ClusterSchedulerConfig"),
}
"""By the type of the custom resource."""
