"""What HyperPod is doing to a node or an instance group until it is done: repairs and software updates."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from ..protocol.clock import now
from ..protocol.json_objects import JsonObject

Action = Literal["reboot", "replace", "none"]


@dataclass(frozen=True)
class FaultKind:
    """A fault that the health agent finds: what it makes of it, and what it then writes."""

    action: Action
    condition: str
    """The fault type, as the agent's node condition calls it."""
    reason: str
    message: str


@dataclass
class Repair:
    """One fault of a node, from when it happened to when the node is well again or gone."""

    instance_id: str
    action: Action
    fault: FaultKind | None
    """None where somebody set the label."""
    at: datetime = field(default_factory=now)
    labelled: bool = False
    acted: bool = False


@dataclass
class SoftwareUpdate:
    """One update of a group, from the request to its end."""

    release: str
    """What nodes get; empty for a custom image."""
    earlier: str
    """What they had."""
    image_id: str
    config: JsonObject
    status: str = "Pending"
    reason: str = ""
    done: list[str] = field(default_factory=list)
    """Instances that have it."""
    under_way: list[str] = field(default_factory=list)
    next_at: datetime = field(default_factory=now)
    """When the next batch may begin."""

    @property
    def active(self) -> bool:
        """Whether it continues."""
        return self.status in ("Pending", "InProgress", "RollbackInProgress")

    @property
    def back(self) -> bool:
        """Whether nodes are on their way back."""
        return self.status == "RollbackInProgress"
