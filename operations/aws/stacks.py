"""CloudFormation's stacks: what they hold, export and went through."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import yaml

from ...config.errors import CommandError
from .calls import Clients, change, find, get, pages


@dataclass(frozen=True, slots=True)
class Stack:
    """A stack."""

    name: str
    status: str
    created: datetime
    id: str = ""
    protected: bool = False
    """Whether it is protected from being deleted."""
    outputs: Mapping[str, str] = field(default_factory=dict)
    description: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """CloudFormation's whole description, for whoever keeps it."""

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "Stack":
        """From CloudFormation's description."""
        return cls(
            row["StackName"],
            row["StackStatus"],
            row["CreationTime"],
            row.get("StackId", ""),
            row.get("EnableTerminationProtection", False),
            {output["OutputKey"]: output["OutputValue"] for output in row.get("Outputs", ())},
            row,
        )


@dataclass(frozen=True, slots=True)
class StackResource:
    """A resource of a stack."""

    logical_id: str
    type: str
    name: str
    """Physical id; empty where there is none yet."""
    status: str
    reason: str

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "StackResource":
        """From a StackResourceSummary."""
        return cls(
            row.get("LogicalResourceId", ""),
            row["ResourceType"],
            row.get("PhysicalResourceId", ""),
            row.get("ResourceStatus", ""),
            row.get("ResourceStatusReason", ""),
        )


@dataclass(frozen=True, slots=True)
class StackEvent:
    """One step of a stack's history."""

    id: str
    at: datetime
    status: str
    reason: str
    type: str
    logical_id: str
    """Of the resource; the stack's name where it is about the stack itself."""
    of_stack: bool
    """Whether it is about the stack itself."""

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "StackEvent":
        """From a StackEvent of CloudFormation."""
        logical_id = row["LogicalResourceId"]
        return cls(
            row["EventId"],
            row["Timestamp"],
            row["ResourceStatus"],
            row.get("ResourceStatusReason", ""),
            row["ResourceType"],
            logical_id,
            logical_id == row["StackName"],
        )


def stacks(clients: Clients) -> list[Stack]:
    """All stacks of the account in its region."""
    return [Stack.of(row) for row in pages(clients, "cloudformation", "describe_stacks", "Stacks")]


def stack(clients: Clients, name: str) -> Stack | None:
    """A stack; None where there is none of that name."""
    result = find(clients, "cloudformation", "describe_stacks", ("ValidationError",), StackName=name)
    return Stack.of(result["Stacks"][0]) if result else None


def stack_resources(clients: Clients, name: str) -> list[StackResource]:
    """What a stack holds, resources that are gone or not yet there included."""
    rows = pages(clients, "cloudformation", "list_stack_resources", "StackResourceSummaries", StackName=name)
    return [StackResource.of(row) for row in rows]


def template(clients: Clients, name: str, stage: str = "Original") -> Any:
    """A stack's template; text where CloudFormation's short forms are in it, which no CDK writes."""
    body = get(clients, "cloudformation", "get_template", StackName=name, TemplateStage=stage)["TemplateBody"]
    # boto3 hands JSON on as data; through a proxy or a stand-in it may stay text.
    if not isinstance(body, str) or not body:
        return body
    if body.lstrip().startswith("{"):
        return json.loads(body)
    try:
        # The CDK CLI sends small templates that are no assets as YAML.
        return yaml.safe_load(body)
    except yaml.YAMLError:
        return body


def exports(clients: Clients) -> list[dict[str, str]]:
    """What all stacks export."""
    return pages(clients, "cloudformation", "list_exports", "Exports")


def imported_by(clients: Clients, export: str) -> set[str]:
    """The stacks that import a value."""
    from botocore.exceptions import ClientError

    try:
        return set(pages(clients, "cloudformation", "list_imports", "Imports", ExportName=export))
    except ClientError as error:
        # CloudFormation answers with an error where nobody imports it.
        if "is not imported by any stack" in str(error):
            return set()
        raise


def stack_events(clients: Clients, name: str) -> Iterator[StackEvent]:
    """The history of a stack, by its name or id, the newest first; pages are read as far as somebody asks."""
    for page in clients.client("cloudformation").get_paginator("describe_stack_events").paginate(StackName=name):
        yield from map(StackEvent.of, page["StackEvents"])


def protect(clients: Clients, name: str, *, protected: bool) -> None:
    """Protect a stack from being deleted, or lift that."""
    change(
        clients,
        "cloudformation",
        "update_termination_protection",
        StackName=name,
        EnableTerminationProtection=protected,
    )


def delete_stack(clients: Clients, name: str) -> None:
    """Delete a stack, and wait until it is gone. Raises CommandError when it stays."""
    from botocore.exceptions import WaiterError

    client = clients.client("cloudformation")
    client.delete_stack(StackName=name)
    try:
        client.get_waiter("stack_delete_complete").wait(StackName=name)
    except WaiterError as error:
        raise CommandError(f"{name} is not deleted: {error}", "CloudFormation's console shows its events") from None
