"""What a node publishes of its set-up, as its lifecycle scripts write it."""

from typing import Final, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict

NAMESPACE: Final = "podwright/nodes"
METRIC: Final = "degraded_steps"
"""CloudWatch's metric of steps that failed and cost no node: by cluster, and by cluster and group."""

SetupVerdict = Literal["ready", "degraded", "failed"]


class SetupRecord(BaseModel):
    """What came of one run of the lifecycle scripts. A field of a later version is passed over."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    version: Literal[1]
    """Version of this layout."""
    group: str
    """Instance group."""
    instance_id: str
    """Instance id."""
    instance_type: str | None
    """Instance type, if the node knew it."""
    ended: AwareDatetime
    """When the scripts ended."""
    verdict: SetupVerdict
    """ready; degraded: a step failed that costs no node; failed: HyperPod was told that the node failed."""
    failed: dict[str, str]
    """What each step saw that costs the node."""
    degraded: dict[str, str]
    """What each other step saw that failed."""
