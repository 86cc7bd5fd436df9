"""The stacks of an environment as CloudFormation has them: resources, what is retained, who imports from whom."""

import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..aws.account import Account

_RETAINED: Final = ("Retain", "RetainExceptOnCreate", "Snapshot")
# What of these is kept costs nothing and holds nothing by itself; the rest of what is retained is named one by one.
_PARTS: Final = ("AWS::EC2::SecurityGroupIngress", "AWS::EC2::SecurityGroupEgress")


OUR_STACKS: Final = (
    *("network", "storage", "eks", "capacity", "cluster", "platform", "access", "governance"),
    *("observability", "training-jobs"),
)
"""What the stacks of an environment are called, behind its name. Others that begin with it are somebody else's."""


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource of a stack."""

    stack: str
    logical_id: str
    type: str
    name: str
    """Physical id."""
    status: str
    reason: str
    policy: str
    """DeletionPolicy of the deployed template."""

    @property
    def retained(self) -> bool:
        """Whether it survives its stack."""
        return self.policy in _RETAINED and self.type not in _PARTS


def resources_of(account: Account, stacks: list[dict[str, Any]]) -> dict[str, list[Resource]]:
    """The resources of each stack that exist, with the deletion policies of the deployed templates."""
    client = account.client("cloudformation")
    pages = client.get_paginator("list_stack_resources")
    found = {}
    for stack in stacks:
        name = stack["StackName"]
        body = client.get_template(StackName=name, TemplateStage="Processed")["TemplateBody"]
        # boto3 hands JSON on as data; through a proxy or a stand-in it may stay text.
        template = json.loads(body) if isinstance(body, str) else body
        policies = {key: item.get("DeletionPolicy", "") for key, item in template.get("Resources", {}).items()}
        rows = [row for page in pages.paginate(StackName=name) for row in page["StackResourceSummaries"]]
        found[name] = [
            Resource(
                name,
                row.get("LogicalResourceId", ""),
                row["ResourceType"],
                row["PhysicalResourceId"],
                row.get("ResourceStatus", ""),
                row.get("ResourceStatusReason", ""),
                policies.get(row.get("LogicalResourceId", ""), ""),
            )
            for row in rows
            if row.get("PhysicalResourceId") and row.get("ResourceStatus") != "DELETE_COMPLETE"
        ]
    return found


def parents(found: Mapping[str, list[Resource]]) -> dict[str, str]:
    """The stack that each nested one belongs to, by the nested one's name."""
    return {
        item.name.rpartition(":stack/")[2].partition("/")[0]: stack
        for stack, items in found.items()
        for item in items
        if item.type == "AWS::CloudFormation::Stack"
    }


def importers(
    account: Account, stacks: list[dict[str, Any]], parents: Mapping[str, str]
) -> dict[str, dict[str, set[str]]]:
    """By stack and export: the other stacks that import it, of this environment or of anybody.

    A nested stack goes by the name of the one it belongs to, with which it is deleted.
    """
    client = account.client("cloudformation")
    names = {stack["StackId"]: stack["StackName"] for stack in stacks}
    found: dict[str, dict[str, set[str]]] = defaultdict(dict)
    for page in client.get_paginator("list_exports").paginate() if names else ():
        for export in page["Exports"]:
            if stack := names.get(export["ExportingStackId"]):
                others = {parents.get(name, name) for name in _imported_by(client, export["Name"])}
                found[stack][export["Name"]] = others - {stack}
    return found


def _imported_by(client: Any, export: str) -> set[str]:
    pages = client.get_paginator("list_imports").paginate(ExportName=export)
    try:
        return {name for page in pages for name in page["Imports"]}
    except client.exceptions.ClientError as error:
        # CloudFormation answers with an error where nobody imports it.
        if "is not imported by any stack" in str(error):
            return set()
        raise


def imports(users: Mapping[str, Mapping[str, set[str]]]) -> dict[str, set[str]]:
    """By stack: those whose exports it imports."""
    found: dict[str, set[str]] = defaultdict(set)
    for stack, exports in users.items():
        for name in (name for names in exports.values() for name in names):
            found[name].add(stack)
    return found


def failed(resources: list[Resource], shown: Callable[[Resource], str] | None = None) -> tuple[str, ...]:
    """Why resources of a stack could not be deleted."""
    name = shown or (lambda item: f"{item.logical_id} ({item.type}, {item.name})")
    return tuple(f"{name(item)}: {item.reason}" for item in resources if item.status == "DELETE_FAILED")


def creation_minutes(account: Account, stack: dict[str, Any]) -> float | None:
    """How long a stack took to be created; None where its history no longer says."""
    pages = account.client("cloudformation").get_paginator("describe_stack_events")
    for page in pages.paginate(StackName=stack["StackName"]):
        for event in page["StackEvents"]:
            of_stack = event["LogicalResourceId"] == stack["StackName"]
            if of_stack and event["ResourceStatus"] == "CREATE_COMPLETE":
                return (event["Timestamp"] - stack["CreationTime"]).total_seconds() / 60
    return None
