"""The CloudFormation service of the sandbox: what its API operations do, in terms of stacks and deployments."""

import threading
import uuid
from collections.abc import Callable
from typing import Any

from ..authorization.authorization import Ledger
from ..protocol.arns import PARTITION
from ..protocol.clients import Clients
from ..protocol.clock import now
from ..protocol.json_objects import JsonObject
from ..protocol.service import Refusal, refuse
from . import parameters, schemas
from .changes import plan
from .deployment import Deployment, ProviderLookup
from .scope import DeployedScope
from .stack import DELETED, REVIEW, ChangeSet, Region, Stack, StackRequest
from .template import TemplateError, parse

_UPDATABLE = {
    "CREATE_COMPLETE",
    "UPDATE_COMPLETE",
    "UPDATE_ROLLBACK_COMPLETE",
    "IMPORT_COMPLETE",
    "IMPORT_ROLLBACK_COMPLETE",
    # Left by an operation without rollback: an update tries again what failed.
    "CREATE_FAILED",
    "UPDATE_FAILED",
}
# Source: AWS CloudFormation User Guide, "Understand CloudFormation quotas".
_INLINE_BYTES, _S3_BYTES = 51_200, 1_000_000
_LIMITS = {"Resources": 500, "Parameters": 200, "Outputs": 200, "Mappings": 200}
SETTLE_SECONDS = 8.0
"""How long the answer that starts an operation may wait for its end. AWS answers at once. The CDK CLI asks for the
state of a stack at once and then every five seconds, and most operations here take one."""
_EARLY_VALIDATION = (
    "The following hook(s)/validation failed: [AWS::EarlyValidation::PropertyValidation]. To troubleshoot Early "
    "Validation errors, use the DescribeEvents API for detailed failure information."
)


class ValidationError(Refusal):
    """CloudFormation's error for everything that a caller can put right."""

    code = "ValidationError"


class ChangeSetNotFound(Refusal):
    """The named change set does not exist."""

    code = "ChangeSetNotFound"


class CloudFormation:
    """All stacks of an account and the operations on them. Operations on a stack run in a thread of their own."""

    def __init__(self, clients: Clients, provider: ProviderLookup, ledger: Ledger):
        self.clients, self.provider, self.ledger = clients, provider, ledger
        self.regions: dict[str, Region] = {}
        self.threads: dict[str, threading.Thread] = {}
        self._lock = threading.RLock()
        # Called when an operation on a stack has ended.
        self.finished: Callable[[], None] = lambda: None

    def region(self, name: str) -> Region:
        """The stacks of a region."""
        with self._lock:
            return self.regions.setdefault(name, Region(name))

    def stack(self, region: str, name_or_id: str) -> Stack:
        """A stack by name or id; raises ValidationError if there is none."""
        stack = self.region(region).find(name_or_id)
        if stack is None:
            raise ValidationError(f"Stack with id {name_or_id} does not exist")
        return stack

    def body(self, region: str, params: JsonObject, previous: Stack | None = None) -> str:
        """The template text of a request: inline, from S3, or the previous one."""
        if params.get("TemplateBody"):
            if len(params["TemplateBody"].encode()) > _INLINE_BYTES:
                raise ValidationError(
                    "1 validation error detected: Value at 'templateBody' failed to satisfy constraint: Member must "
                    f"have length less than or equal to {_INLINE_BYTES}"
                )
            return params["TemplateBody"]
        if params.get("TemplateURL"):
            body = self._fetch(region, params["TemplateURL"])
            if len(body.encode()) > _S3_BYTES:
                raise ValidationError(f"Template may not exceed {_S3_BYTES} bytes in size.")
            return body
        if params.get("UsePreviousTemplate") and previous:
            return previous.request.body
        raise ValidationError("Either Template URL or Template Body must be specified.")

    def request(self, region: str, params: JsonObject, previous: Stack | None = None) -> StackRequest:
        """A caller's parameters as a checked stack request; raises ValidationError."""
        body = self.body(region, params, previous)
        try:
            template = parse(body)
            values = parameters.effective(
                template, params.get("Parameters", []), previous.request.parameters if previous else {}
            )
        except TemplateError as error:
            raise ValidationError(str(error)) from error
        self._check_limits(template)
        self._check_types(region, template)
        tags = {tag["Key"]: tag["Value"] for tag in params.get("Tags", [])}
        if "Tags" not in params and previous:
            tags = previous.request.tags
        request = StackRequest(
            body,
            template,
            values,
            tags,
            params.get("RoleARN"),
            params.get("NotificationARNs", []),
            params.get("Capabilities", []),
            rollback=not params.get("DisableRollback", False),
            on_failure=params.get("OnFailure", "ROLLBACK"),
            token=params.get("ClientRequestToken"),
        )
        self._check_capabilities(request)
        return request

    def create_stack(self, region: str, params: JsonObject) -> Stack:
        """Start creating a stack."""
        name = params["StackName"]
        with self._lock:
            existing = self.region(region).find(name)
            if existing and existing.status != REVIEW:
                raise refuse("AlreadyExistsException", f"Stack [{name}] already exists")
            request = self.request(region, params)
            stack = existing or Stack(name, region, request, self.clients.account)
            stack.request = request
            self._plan(stack, request)
            stack.termination_protection = bool(params.get("EnableTerminationProtection"))
            self.region(region).stacks[stack.stack_id] = stack
            self._start(stack, "create")
        return stack

    def update_stack(self, region: str, params: JsonObject) -> Stack:
        """Start updating a stack; raises ValidationError when nothing would change."""
        with self._lock:
            stack = self._updatable(region, params["StackName"])
            request = self.request(region, params, stack)
            # After a failure without rollback the same template is no empty update: it finishes what is missing.
            if self._plan(stack, request).empty and stack.status not in ("CREATE_FAILED", "UPDATE_FAILED"):
                raise ValidationError("No updates are to be performed.")
            self._start(stack, "update", request)
        return stack

    def delete_stack(self, region: str, name: str, token: str | None = None) -> Stack | None:
        """Start deleting a stack and return it; one that does not exist is a success."""
        with self._lock:
            stack = self.region(region).find(name)
            if stack is None or stack.status == DELETED:
                return None
            if stack.termination_protection:
                raise ValidationError(
                    f"Stack [{stack.stack_id}] cannot be deleted while TerminationProtection is enabled"
                )
            if stack.in_progress:
                raise ValidationError(
                    f"Stack [{stack.name}] is in {stack.status} state and cannot be deleted (sandbox)"
                )
            stack.request.token = token
            for export in stack.exports:
                if users := self.region(region).importers(export):
                    # DeleteStack has succeeded by then: only an event says that it came to nothing.
                    reason = f"Delete canceled. Cannot delete export {export} as it is in use by {users[0].name}."
                    stack.record(stack.status, reason=reason)
                    return stack
            self._start(stack, "delete")
        return stack

    def create_change_set(self, region: str, params: JsonObject) -> ChangeSet:
        """Compute a change set. It fails as CloudFormation's does: no changes, or refused by early validation."""
        name, kind = params["ChangeSetName"], params.get("ChangeSetType", "UPDATE")
        if kind == "IMPORT":
            raise ValidationError("Import change sets are not supported (sandbox)")
        with self._lock:
            if kind == "CREATE":
                stack = self.region(region).find(params["StackName"])
                if stack and stack.status != REVIEW:
                    raise ValidationError(
                        f"Stack [{stack.name}] already exists and cannot be created again with the changeSet [{name}]."
                    )
                request = self.request(region, params)
                if stack is None:
                    nothing = StackRequest("", {"Resources": {}}, {}, {})
                    stack = Stack(params["StackName"], region, nothing, self.clients.account)
                    self.region(region).stacks[stack.stack_id] = stack
                    stack.record(REVIEW, reason="User Initiated")
            else:
                stack = self._updatable(region, params["StackName"])
                request = self.request(region, params, stack)
            if name in stack.change_sets:
                raise refuse("AlreadyExistsException", f"ChangeSet {name} already exists")
            identifier = (
                f"arn:{PARTITION}:cloudformation:{region}:{self.clients.account}:changeSet/{name}/{uuid.uuid4()}"
            )
            change_set = ChangeSet(name, identifier, kind, request, params.get("Description"))
            self._fill(change_set, stack)
            stack.change_sets[name] = change_set
        return change_set

    def change_set(self, region: str, name: str, stack_name: str | None) -> tuple[Stack, ChangeSet]:
        """A change set by name or id, with its stack; raises ChangeSetNotFound."""
        stacks = [self.stack(region, stack_name)] if stack_name else list(self.region(region).stacks.values())
        for stack in stacks:
            for change_set in stack.change_sets.values():
                if name in (change_set.name, change_set.change_set_id):
                    return stack, change_set
        raise ChangeSetNotFound(f"ChangeSet [{name}] does not exist")

    def execute_change_set(self, region: str, params: JsonObject) -> Stack:
        """Start what a change set announces; returns its stack."""
        with self._lock:
            stack, change_set = self.change_set(region, params["ChangeSetName"], params.get("StackName"))
            if change_set.execution_status != "AVAILABLE":
                raise refuse(
                    "InvalidChangeSetStatus",
                    f"ChangeSet [{change_set.change_set_id}] cannot be executed in its current "
                    f"status of [{change_set.status}]",
                )
            # The others were made for what the stack was before.
            stack.change_sets.clear()
            change_set.execution_status = "EXECUTE_IN_PROGRESS"
            request = change_set.request
            request.rollback = not params.get("DisableRollback", False)
            request.token = params.get("ClientRequestToken")
            if change_set.kind == "CREATE":
                stack.request = request
                self._start(stack, "create")
            else:
                self._start(stack, "update", request)
        return stack

    def continue_rollback(self, region: str, name: str, skip: list[str]) -> None:
        """Take a stack out of UPDATE_ROLLBACK_FAILED."""
        stack = self.stack(region, name)
        if stack.status != "UPDATE_ROLLBACK_FAILED":
            raise ValidationError(
                f"Stack:{stack.stack_id} is in {stack.status} state and can not continue rollback (sandbox)"
            )
        self._start(stack, "continue_rollback", skip)

    def rollback(self, region: str, name: str) -> Stack:
        """Roll a stack back that failed without rollback."""
        stack = self.stack(region, name)
        if stack.status not in ("CREATE_FAILED", "UPDATE_FAILED"):
            raise ValidationError(
                f"Stack [{stack.name}] is in {stack.status} state and can not be rolled back (sandbox)"
            )
        self._start(stack, "rollback")
        return stack

    def resume(self) -> None:
        """Bring every operation to an end that the sandbox was stopped in."""
        for region in self.regions.values():
            for stack in region.stacks.values():
                if stack.in_progress:
                    self._start(stack, "resume")

    def wait(self, timeout: float) -> None:
        """Wait until no operation runs, at most `timeout` seconds for each."""
        for thread in list(self.threads.values()):
            thread.join(timeout)

    def settle(self, stack: Stack) -> None:
        """Wait a while for the operation of a stack: who asks only every five seconds finds a quick one ended."""
        if thread := self.threads.get(stack.stack_id):
            thread.join(SETTLE_SECONDS)

    def deployment(self, stack: Stack) -> Deployment:
        """A deployment of a stack."""
        return Deployment(self.region(stack.region), stack, self.clients, self.provider, self.ledger)

    def _start(self, stack: Stack, operation: str, *arguments: Any) -> None:
        """Run an operation on a stack in a thread of its own."""
        # The status changes before the call returns, so that nobody sees the old one after it.
        if operation not in ("continue_rollback", "resume", "rollback"):
            stack.status = f"{operation.upper()}_IN_PROGRESS"
        run = getattr(self.deployment(stack), operation)

        def operate() -> None:
            try:
                run(*arguments)
            finally:
                self.finished()

        thread = threading.Thread(target=operate, daemon=True, name=f"{operation} {stack.name}")
        self.threads[stack.stack_id] = thread
        thread.start()

    def _updatable(self, region: str, name: str) -> Stack:
        stack = self.region(region).find(name)
        if stack is None or stack.status == DELETED:
            raise ValidationError(f"Stack [{name}] does not exist")
        if stack.status not in _UPDATABLE:
            raise ValidationError(f"Stack:{stack.stack_id} is in {stack.status} state and can not be updated.")
        return stack

    def _plan(self, stack: Stack, request: StackRequest) -> Any:
        try:
            return plan(stack, request, DeployedScope(self.region(stack.region), stack, self.clients))
        except TemplateError as error:
            raise ValidationError(str(error)) from error

    def _fill(self, change_set: ChangeSet, stack: Stack) -> None:
        """Work out the changes of a change set, and what validation refuses before anything is deployed."""
        planned = self._plan(stack, change_set.request)
        change_set.changes = planned.changes
        change_set.failures = [
            {
                "EventId": str(uuid.uuid4()),
                "StackId": stack.stack_id,
                "OperationId": str(uuid.uuid4()),
                "OperationType": "CREATE_CHANGESET",
                "OperationStatus": "FAILED",
                "EventType": "VALIDATION_ERROR",
                "LogicalResourceId": failure.logical_id,
                "ResourceType": failure.resource_type,
                "Timestamp": now(),
                "ValidationName": "PROPERTY_VALIDATION",
                "ValidationStatus": "FAILED",
                "ValidationFailureMode": "FAIL",
                "ValidationStatusReason": str(failure),
                "ValidationPath": "/".join(["/Resources", failure.logical_id, "Properties", *map(str, failure.path)]),
            }
            for failure in planned.failures
        ]
        if planned.failures:
            change_set.status, change_set.reason = "FAILED", _EARLY_VALIDATION
        elif planned.empty:
            change_set.status = "FAILED"
            change_set.reason = (
                "The submitted information didn't contain changes. Submit different information to create a change set."
            )
        if change_set.status == "FAILED":
            change_set.execution_status = "UNAVAILABLE"

    def _fetch(self, region: str, url: str) -> str:
        path = url.split("://", 1)[-1].split("?")[0]
        host, _, key = path.partition("/")
        bucket, _, host_key = key.partition("/")
        # The bucket stands in the host, or, in addresses of the older style, first in the path.
        if ".s3" in host and not host.startswith("s3"):
            bucket, host_key = host.split(".s3", 1)[0], key
        try:
            return self.clients.client("s3", region).get_object(Bucket=bucket, Key=host_key)["Body"].read().decode()
        except Exception as error:
            raise ValidationError(f"S3 error: {error}") from error

    def _check_limits(self, template: JsonObject) -> None:
        for section, limit in _LIMITS.items():
            if (count := len(template.get(section, {}))) > limit:
                raise ValidationError(
                    f"Template format error: Number of {section.lower()}, {count}, is greater than maximum allowed, "
                    f"{limit}"
                )

    def _check_types(self, region: str, template: JsonObject) -> None:
        unknown = sorted(
            {
                resource["Type"]
                for resource in template["Resources"].values()
                if schemas.find(resource["Type"], region) is None
            }
        )
        if unknown:
            raise ValidationError(f"Template format error: Unrecognized resource types: [{', '.join(unknown)}]")

    def _check_capabilities(self, request: StackRequest) -> None:
        iam = [
            resource for resource in request.template["Resources"].values() if resource["Type"].startswith("AWS::IAM::")
        ]
        specified = set(request.capabilities)
        # An inline policy always has a PolicyName, and is no resource of IAM that others could name.
        named = any(
            key.endswith("Name") and key != "PolicyName" for resource in iam for key in resource.get("Properties", {})
        )
        needed = {"CAPABILITY_NAMED_IAM"} if named else {"CAPABILITY_IAM", "CAPABILITY_NAMED_IAM"}
        if iam and not specified & needed:
            raise refuse("InsufficientCapabilitiesException", f"Requires capabilities : [{min(needed)}]")
