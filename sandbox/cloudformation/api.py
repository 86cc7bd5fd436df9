# ruff: noqa: D102 - the public methods of the response class are API operations; their names say which.
"""CloudFormation's wire protocol: requests parsed and answers serialised by moto from botocore's service model."""

from typing import Any, ClassVar

from moto.core.responses import ActionResult, BaseResponse, EmptyResult

from ..protocol.json_objects import JsonObject, without
from ..protocol.service import refuse
from . import schemas
from .service import CloudFormation, ValidationError
from .stack import DELETED, Event, Resource, Stack
from .template import TemplateError, parse

_PAGE = 100


class CloudFormationResponse(BaseResponse):
    """One request; every public method is an API operation. `service` is set once when the server starts."""

    service: ClassVar[CloudFormation]

    def __init__(self) -> None:
        super().__init__(service_name="cloudformation")
        self.automated_parameter_parsing = True

    def _params(self) -> JsonObject:
        return {key: value for key, value in dict(self.params).items() if value is not None}

    def _target(self) -> Stack:
        return self.service.stack(self.region, self._get_param("StackName"))

    def _page(self, items: list[Any], key: str, size: int = _PAGE) -> ActionResult:
        start = int(self._get_param("NextToken") or 0)
        token = {"NextToken": str(start + size)} if len(items) > start + size else {}
        return ActionResult({key: items[start : start + size], **token})

    def create_stack(self) -> ActionResult:
        return ActionResult({"StackId": self.service.create_stack(self.region, self._params()).stack_id})

    def update_stack(self) -> ActionResult:
        return ActionResult({"StackId": self.service.update_stack(self.region, self._params()).stack_id})

    def delete_stack(self) -> ActionResult:
        stack = self.service.delete_stack(
            self.region, self._get_param("StackName"), self._get_param("ClientRequestToken")
        )
        if stack:
            self.service.settle(stack)
        return EmptyResult()

    def continue_update_rollback(self) -> ActionResult:
        self.service.continue_rollback(
            self.region, self._get_param("StackName"), self._get_param("ResourcesToSkip", [])
        )
        return ActionResult({})

    def rollback_stack(self) -> ActionResult:
        return ActionResult({"StackId": self.service.rollback(self.region, self._get_param("StackName")).stack_id})

    def update_termination_protection(self) -> ActionResult:
        stack = self._target()
        stack.termination_protection = self._get_param("EnableTerminationProtection")
        return ActionResult({"StackId": stack.stack_id})

    def describe_stacks(self) -> ActionResult:
        name = self._get_param("StackName")
        stacks = (
            [self._target()]
            if name
            else [stack for stack in self.service.region(self.region).stacks.values() if stack.status != DELETED]
        )
        return self._page([_stack(stack) for stack in stacks], "Stacks")

    def list_stacks(self) -> ActionResult:
        requested = self._get_param("StackStatusFilter")
        return self._page(
            [
                _stack(stack)
                for stack in reversed(self.service.region(self.region).stacks.values())
                if not requested or stack.status in requested
            ],
            "StackSummaries",
        )

    def describe_type(self) -> ActionResult:
        name = self._get_param("TypeName")
        if schemas.find(name, self.region) is None:
            raise refuse("TypeNotFoundException", f"The type {name} does not exist in {self.region} (sandbox)")
        return ActionResult({"Type": "RESOURCE", "TypeName": name, "Visibility": "PUBLIC"})

    def describe_stack_events(self) -> ActionResult:
        stack = self.service.region(self.region).find(self._get_param("StackName"))
        if stack is None:
            raise ValidationError(f"Stack [{self._get_param('StackName')}] does not exist")
        return self._page([_event(event) for event in reversed(stack.events)], "StackEvents")

    def describe_stack_resource(self) -> ActionResult:
        stack, logical_id = self._target(), self._get_param("LogicalResourceId")
        if logical_id not in stack.resources:
            raise ValidationError(f"Resource {logical_id} does not exist for stack {stack.name}")
        return ActionResult({"StackResourceDetail": _resource(stack, stack.resources[logical_id])})

    def describe_stack_resources(self) -> ActionResult:
        """The resources of a stack, or of the stack that has a physical id."""
        physical_id, logical_id = self._get_param("PhysicalResourceId"), self._get_param("LogicalResourceId")
        stacks = (
            [self._target()]
            if self._get_param("StackName")
            else [stack for stack in self.service.region(self.region).stacks.values() if stack.holds(physical_id)]
        )
        if not stacks:
            raise ValidationError(f"Stack for {physical_id} does not exist")
        return ActionResult(
            {
                "StackResources": [
                    _resource(stack, resource)
                    for stack in stacks
                    for resource in stack.resources.values()
                    if not logical_id or resource.logical_id == logical_id
                ]
            }
        )

    def list_stack_resources(self) -> ActionResult:
        stack = self._target()
        return self._page(
            [_resource(stack, resource) for resource in stack.resources.values()], "StackResourceSummaries"
        )

    def get_template(self) -> ActionResult:
        if self._get_param("ChangeSetName"):
            _, change_set = self.service.change_set(
                self.region, self._get_param("ChangeSetName"), self._get_param("StackName")
            )
            body = change_set.request.body
        else:
            body = self._target().request.body
        return ActionResult({"TemplateBody": body, "StagesAvailable": ["Original", "Processed"]})

    def get_template_summary(self) -> ActionResult:
        name = self._get_param("StackName")
        return ActionResult(self._summary(self._target().request.body if name else None))

    def validate_template(self) -> ActionResult:
        return ActionResult(self._summary(None))

    def _summary(self, body: str | None) -> JsonObject:
        """What GetTemplateSummary says of a template: parameters, types, capabilities, identifiers for imports."""
        try:
            template = parse(body or self.service.body(self.region, self._params()))
        except TemplateError as error:
            raise ValidationError(str(error)) from error
        types = sorted({resource["Type"] for resource in template["Resources"].values()})
        identifiers = list[JsonObject]()
        for resource_type in types:
            schema = schemas.find(resource_type, self.region)
            if schema and schema.primary_identifier:
                identifiers.append(
                    {
                        "ResourceType": resource_type,
                        "ResourceIdentifiers": schema.primary_identifier,
                        "LogicalResourceIds": [
                            name
                            for name, resource in template["Resources"].items()
                            if resource["Type"] == resource_type
                        ],
                    }
                )
        declared = [
            {
                "ParameterKey": key,
                "ParameterType": item.get("Type", "String"),
                "NoEcho": bool(item.get("NoEcho")),
                "DefaultValue": item.get("Default"),
                "Description": item.get("Description"),
                "ParameterConstraints": {},
            }
            for key, item in template.get("Parameters", {}).items()
        ]
        return {
            "Parameters": declared,
            "Description": template.get("Description"),
            "ResourceTypes": types,
            "Version": template.get("AWSTemplateFormatVersion"),
            "ResourceIdentifierSummaries": identifiers,
        }

    def list_exports(self) -> ActionResult:
        exported = self.service.region(self.region).exported()
        return self._page(
            [
                {"Name": name, "Value": value, "ExportingStackId": stack.stack_id}
                for name, (value, stack) in exported.items()
            ],
            "Exports",
        )

    def list_imports(self) -> ActionResult:
        name = self._get_param("ExportName")
        users = self.service.region(self.region).importers(name)
        if not users:
            raise ValidationError(f"Export '{name}' is not imported by any stack.")
        return ActionResult({"Imports": [stack.name for stack in users]})

    def create_change_set(self) -> ActionResult:
        change_set = self.service.create_change_set(self.region, self._params())
        stack, _ = self.service.change_set(self.region, change_set.change_set_id, None)
        return ActionResult({"Id": change_set.change_set_id, "StackId": stack.stack_id})

    def describe_change_set(self) -> ActionResult:
        """A change set with its changes."""
        stack, change_set = self.service.change_set(
            self.region, self._get_param("ChangeSetName"), self._get_param("StackName")
        )
        changes = change_set.changes
        if not self._get_param("IncludePropertyValues"):
            changes = [_without_values(change) for change in changes]
        return ActionResult(
            {
                "ChangeSetName": change_set.name,
                "ChangeSetId": change_set.change_set_id,
                "StackId": stack.stack_id,
                "StackName": stack.name,
                "Description": change_set.description,
                "CreationTime": change_set.created,
                "Parameters": _parameters(change_set.request.parameters),
                "ExecutionStatus": change_set.execution_status,
                "Status": change_set.status,
                "StatusReason": change_set.reason,
                "Changes": changes,
                "Capabilities": change_set.request.capabilities,
                "Tags": _tags(change_set.request.tags),
            }
        )

    def list_change_sets(self) -> ActionResult:
        """The change sets of a stack."""
        stack = self._target()
        return self._page(
            [
                {
                    "StackId": stack.stack_id,
                    "StackName": stack.name,
                    "ChangeSetId": item.change_set_id,
                    "ChangeSetName": item.name,
                    "ExecutionStatus": item.execution_status,
                    "Status": item.status,
                    "StatusReason": item.reason,
                    "CreationTime": item.created,
                    "Description": item.description,
                }
                for item in stack.change_sets.values()
            ],
            "Summaries",
        )

    def delete_change_set(self) -> ActionResult:
        stack_name, name = self._get_param("StackName"), self._get_param("ChangeSetName")
        if stack_name or name.startswith("arn:"):
            stacks = (
                [self.service.stack(self.region, stack_name)]
                if stack_name
                else list(self.service.region(self.region).stacks.values())
            )
            for stack in stacks:
                stack.change_sets = {
                    key: item for key, item in stack.change_sets.items() if name not in (item.name, item.change_set_id)
                }
        return EmptyResult()

    def execute_change_set(self) -> ActionResult:
        self.service.settle(self.service.execute_change_set(self.region, self._params()))
        return ActionResult({})

    def describe_events(self) -> ActionResult:
        if self._get_param("ChangeSetName"):
            _, change_set = self.service.change_set(
                self.region, self._get_param("ChangeSetName"), self._get_param("StackName")
            )
            return self._page(change_set.failures, "OperationEvents")
        events = [_event(event) | {"EventType": "STACK_EVENT"} for event in reversed(self._target().events)]
        if (self._get_param("Filters") or {}).get("FailedEvents"):
            events = [event for event in events if event["ResourceStatus"].endswith("FAILED")]
        return self._page(events, "OperationEvents")

    def list_hook_results(self) -> ActionResult:
        return ActionResult({"HookResults": []})


def _tags(tags: dict[str, str]) -> list[JsonObject]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def _parameters(values: dict[str, str]) -> list[JsonObject]:
    return [{"ParameterKey": key, "ParameterValue": value} for key, value in values.items()]


def _stack(stack: Stack) -> JsonObject:
    """A stack as DescribeStacks shows it."""
    return {
        "StackId": stack.stack_id,
        "StackName": stack.name,
        "StackStatus": stack.status,
        "StackStatusReason": stack.reason,
        "CreationTime": stack.created,
        "LastUpdatedTime": stack.updated,
        "DeletionTime": stack.deleted,
        "Description": stack.request.template.get("Description"),
        "TemplateDescription": stack.request.template.get("Description"),
        "Parameters": _parameters(stack.request.parameters),
        "Outputs": stack.outputs,
        "Tags": _tags(stack.request.tags),
        "EnableTerminationProtection": stack.termination_protection,
        "DisableRollback": not stack.request.rollback,
        "Capabilities": stack.request.capabilities,
        "NotificationARNs": stack.request.notification_arns,
        "RoleARN": stack.request.role_arn,
        "RollbackConfiguration": {},
        "DriftInformation": {"StackDriftStatus": "NOT_CHECKED"},
    }


def _resource(stack: Stack, resource: Resource) -> JsonObject:
    return {
        "StackName": stack.name,
        "StackId": stack.stack_id,
        "LogicalResourceId": resource.logical_id,
        "PhysicalResourceId": resource.physical_id,
        "ResourceType": resource.resource_type,
        "Timestamp": resource.updated,
        "LastUpdatedTimestamp": resource.updated,
        "ResourceStatus": resource.status,
        "ResourceStatusReason": resource.reason,
        "DriftInformation": {"StackResourceDriftStatus": "NOT_CHECKED"},
    }


def _event(event: Event) -> JsonObject:
    return {
        "StackId": event.stack_id,
        "StackName": event.stack_name,
        "EventId": event.event_id,
        "LogicalResourceId": event.logical_id,
        "PhysicalResourceId": event.physical_id,
        "ResourceType": event.resource_type,
        "ResourceStatus": event.status,
        "ResourceStatusReason": event.reason,
        "Timestamp": event.timestamp,
        "ClientRequestToken": event.token,
    }


def _without_values(change: JsonObject) -> JsonObject:
    """A change without the values of properties, as DescribeChangeSet has it unless they are asked for."""
    resource = without(change["ResourceChange"], "BeforeContext", "AfterContext")
    resource["Details"] = [
        {**detail, "Target": without(detail["Target"], "BeforeValue", "AfterValue", "AttributeChangeType")}
        for detail in resource["Details"]
    ]
    return {"Type": change["Type"], "ResourceChange": resource}
