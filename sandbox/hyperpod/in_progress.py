"""HyperPod's operations in progress on a node or an instance group: repairs and software updates."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from ..protocol.clock import now
from ..protocol.json_objects import JsonObject

Action = Literal["reboot", "replace", "none"]


@dataclass(frozen=True)
class FaultKind:
    """A kind of fault: the health agent's action, and the texts that it writes."""

    action: Action
    condition: str
    """The fault type in the agent's node condition."""
    reason: str
    message: str


@dataclass
class Repair:
    """A fault of a node, until the node has recovered or is deleted."""

    instance_id: str
    action: Action
    fault: FaultKind | None
    """None if a client set the health label."""
    at: datetime = field(default_factory=now)
    labelled: bool = False
    acted: bool = False


@dataclass
class SoftwareUpdate:
    """A software update of a group."""

    release: str
    """Release that nodes get; empty for a custom image."""
    earlier: str
    """Former release."""
    image_id: str
    config: JsonObject
    status: str = "Pending"
    reason: str = ""
    done: list[str] = field(default_factory=list)
    """Updated instances."""
    under_way: list[str] = field(default_factory=list)
    next_at: datetime = field(default_factory=now)
    """Earliest start of the next batch."""

    @property
    def active(self) -> bool:
        """True if it has not ended."""
        return self.status in ("Pending", "InProgress", "RollbackInProgress")

    @property
    def back(self) -> bool:
        """True if nodes get the former release again."""
        return self.status == "RollbackInProgress"
