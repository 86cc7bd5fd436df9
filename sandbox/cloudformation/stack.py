"""What CloudFormation remembers: stacks, their resources, events, change sets and exports."""

import uuid
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from ...config.catalog.sandbox_account import SANDBOX_ACCOUNT
from ..protocol.arns import PARTITION
from ..protocol.clock import now
from ..protocol.json_objects import JsonObject

REVIEW = "REVIEW_IN_PROGRESS"
DELETED = "DELETE_COMPLETE"


@dataclass
class Event:
    """One line of a stack's history."""

    stack_id: str
    stack_name: str
    logical_id: str
    physical_id: str
    resource_type: str
    status: str
    reason: str | None
    token: str | None
    timestamp: datetime
    event_id: str = field(default_factory=lambda: str(uuid.uuid4()))


@dataclass
class Resource:
    """A resource as it was last deployed: its template definition, resolved properties, id and attributes."""

    logical_id: str
    resource_type: str
    definition: JsonObject
    properties: JsonObject
    physical_id: str = ""
    attributes: JsonObject = field(default_factory=dict)
    dependencies: list[str] = field(default_factory=list)
    status: str = "CREATE_IN_PROGRESS"
    reason: str | None = None
    updated: datetime = field(default_factory=now)


@dataclass
class ChangeSet:
    """A planned update: the template and parameters it would deploy, and the changes it announces."""

    name: str
    change_set_id: str
    kind: str
    request: "StackRequest"
    description: str | None
    changes: list[JsonObject] = field(default_factory=list)
    status: str = "CREATE_COMPLETE"
    reason: str | None = None
    execution_status: str = "AVAILABLE"
    failures: list[JsonObject] = field(default_factory=list)
    created: datetime = field(default_factory=now)


@dataclass
class StackRequest:
    """What a caller asks a stack to become."""

    body: str
    template: JsonObject
    parameters: dict[str, str]
    tags: dict[str, str]
    role_arn: str | None = None
    notification_arns: list[str] = field(default_factory=list)
    capabilities: list[str] = field(default_factory=list)
    rollback: bool = True
    on_failure: str = "ROLLBACK"
    token: str | None = None


@dataclass
class Before:
    """A stack as it was before an update."""

    request: StackRequest
    resources: dict[str, Resource]
    outputs: list[JsonObject]
    exports: dict[str, str]
    imports: set[str]


@dataclass
class Stack:
    """A stack. `request` is the last one deployed with success (or under way); `resources` what exists now."""

    name: str
    region: str
    request: StackRequest
    account: str = SANDBOX_ACCOUNT
    stack_id: str = ""
    status: str = REVIEW
    reason: str | None = None
    resources: dict[str, Resource] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    outputs: list[JsonObject] = field(default_factory=list)
    exports: dict[str, str] = field(default_factory=dict)
    imports: set[str] = field(default_factory=set)
    change_sets: dict[str, ChangeSet] = field(default_factory=dict)
    termination_protection: bool = False
    created: datetime = field(default_factory=now)
    updated: datetime | None = None
    deleted: datetime | None = None
    # Old physical resources that an update replaced or removed, deleted when the update has succeeded.
    garbage: list[Resource] = field(default_factory=list)
    # What an update that is under way goes back to if it fails.
    before: "Before | None" = None

    def __post_init__(self) -> None:
        if not self.stack_id:
            self.stack_id = (
                f"arn:{PARTITION}:cloudformation:{self.region}:{self.account}:stack/{self.name}/{uuid.uuid4()}"
            )

    @property
    def in_progress(self) -> bool:
        """Whether an operation runs."""
        return self.status.endswith("_IN_PROGRESS") and self.status != REVIEW

    def holds(self, physical_id: str) -> bool:
        """Whether one of the stack's resources has that physical id."""
        return any(resource.physical_id == physical_id for resource in self.resources.values())

    def record(self, status: str, resource: Resource | None = None, reason: str | None = None) -> None:
        """Set the status of the stack, or of one of its resources, and write the event."""
        if resource is None:
            self.status, self.reason = status, reason
            logical_id, physical_id, kind = self.name, self.stack_id, "AWS::CloudFormation::Stack"
        else:
            resource.status, resource.reason, resource.updated = status, reason, now()
            logical_id, physical_id, kind = resource.logical_id, resource.physical_id, resource.resource_type
        timestamp = now()
        if self.events:  # callers sort by time, so no two events may share theirs
            timestamp = max(timestamp, self.events[-1].timestamp + timedelta(milliseconds=1))
        self.events.append(
            Event(
                self.stack_id, self.name, logical_id, physical_id, kind, status, reason, self.request.token, timestamp
            )
        )

    def pseudo(self) -> dict[str, Any]:
        """The pseudo parameters for this stack."""
        return {
            "AWS::AccountId": self.account,
            "AWS::Region": self.region,
            "AWS::Partition": PARTITION,
            "AWS::URLSuffix": "amazonaws.com",
            "AWS::StackName": self.name,
            "AWS::StackId": self.stack_id,
            "AWS::NotificationARNs": self.request.notification_arns,
        }


@dataclass
class Region:
    """All stacks of one region, by stack id; deleted ones stay, as in AWS."""

    name: str
    stacks: dict[str, Stack] = field(default_factory=dict)

    def find(self, name_or_id: str) -> Stack | None:
        """A stack by id, or the living one of that name."""
        if name_or_id in self.stacks:
            return self.stacks[name_or_id]
        return next(
            (stack for stack in self.stacks.values() if stack.name == name_or_id and stack.status != DELETED), None
        )

    def exported(self) -> dict[str, tuple[str, Stack]]:
        """Every export of the region: name to value and exporting stack."""
        return {
            name: (value, stack)
            for stack in self.stacks.values()
            if stack.status != DELETED
            for name, value in stack.exports.items()
        }

    def importers(self, export: str) -> list[Stack]:
        """The living stacks that import a name."""
        return [stack for stack in self.stacks.values() if stack.status != DELETED and export in stack.imports]
