"""One operation on one stack: create, update or delete its resources in order, and roll back when one fails."""

import copy
import logging
from collections.abc import Callable
from functools import partial

from botocore.exceptions import BotoCoreError, ClientError

from ..authorization.authorization import Ledger
from ..authorization.principals import boundary_of
from ..protocol.clients import Clients
from ..protocol.clock import now
from ..protocol.json_objects import JsonObject
from . import parameters, schemas
from .evaluate import Evaluator, text_of
from .graph import order
from .providers.base import HandlerError, Outcome, Provider, Request, unless_gone
from .role_calls import Touched, Verb, calls
from .scope import DeployedScope
from .stack import DELETED, Before, Region, Resource, Stack, StackRequest
from .template import TemplateError
from .validation import validate_properties

_LOG = logging.getLogger(__name__)
ProviderLookup = Callable[[str], Provider]


class OperationFailed(Exception):
    """A resource or an output could not be brought to its new state; the stack rolls back."""


class Deployment:
    """Runs one operation on one stack to its end; every step is written to the stack's events."""

    def __init__(self, region: Region, stack: Stack, clients: Clients, provider: ProviderLookup, ledger: Ledger):
        self.region, self.stack, self.clients, self.provider, self.ledger = region, stack, clients, provider, ledger
        self.scope = DeployedScope(region, stack, clients)

    def evaluator(self) -> Evaluator:
        """The evaluator of the stack's current request; raises TemplateError for a rule that does not hold."""
        request = self.stack.request
        values = parameters.typed(request.template, request.parameters, self.scope.ssm)
        evaluator = Evaluator(request.template, values, self.stack.pseudo(), self.scope)
        parameters.check_rules(evaluator)
        return evaluator

    def create(self) -> None:
        """Create every resource; on failure delete them again, unless the request disables rollback."""
        stack = self.stack
        stack.record("CREATE_IN_PROGRESS", reason="User Initiated")
        try:
            self._converge({})
            stack.record("CREATE_COMPLETE")
        except OperationFailed as failure:
            if not stack.request.rollback or stack.request.on_failure == "DO_NOTHING":
                stack.record("CREATE_FAILED", reason=str(failure))
                return
            self._roll_back_creation(f"{failure} Rollback requested by user.")
            if stack.request.on_failure == "DELETE" and stack.status == "ROLLBACK_COMPLETE":
                self.delete()

    def _roll_back_creation(self, reason: str) -> None:
        stack = self.stack
        stack.record("ROLLBACK_IN_PROGRESS", reason=reason)
        failed = self._delete_resources(list(reversed(stack.resources.values())), creating=True)
        stack.outputs, stack.exports, stack.imports = [], {}, set()
        stack.record("ROLLBACK_FAILED" if failed else "ROLLBACK_COMPLETE", reason=_failed_to("delete", failed))

    def update(self, request: StackRequest) -> None:
        """Bring the stack to a new request; on failure bring every touched resource back to what it was."""
        stack = self.stack
        previous = {name: copy.copy(resource) for name, resource in stack.resources.items()}
        if stack.before is None:  # else an update failed without rollback, and what was before that counts
            stack.before = Before(stack.request, previous, stack.outputs, stack.exports, stack.imports)
        stack.request, stack.imports = request, set()
        stack.record("UPDATE_IN_PROGRESS", reason="User Initiated")
        stack.updated = now()
        try:
            self._converge(previous)
        except OperationFailed as failure:
            if not request.rollback:
                stack.record("UPDATE_FAILED", reason=str(failure))
            else:
                stack.record("UPDATE_ROLLBACK_IN_PROGRESS", reason=str(failure))
                self._roll_back(stack.before)
            return
        self._finish_update()

    def _finish_update(self) -> None:
        self.stack.record("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS")
        self._collect_garbage()
        self.stack.before = None
        self.stack.record("UPDATE_COMPLETE")

    def rollback(self) -> None:
        """Roll back what failed without being rolled back at once."""
        stack = self.stack
        if stack.before is None:
            self._roll_back_creation("User Initiated")
        else:
            stack.record("UPDATE_ROLLBACK_IN_PROGRESS", reason="User Initiated")
            self._roll_back(stack.before)

    def resume(self) -> None:
        """Bring an operation to an end that the sandbox was stopped in: what was under way is rolled back."""
        stack, reason = self.stack, "The sandbox was stopped during the operation (sandbox)"
        if stack.status in ("CREATE_IN_PROGRESS", "ROLLBACK_IN_PROGRESS"):
            self._roll_back_creation(reason)
        elif stack.status == "DELETE_IN_PROGRESS":
            self.delete()
        elif stack.status == "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS":
            self._finish_update()
        elif stack.status == "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS":
            self._finish_rollback()
        elif stack.before:
            stack.record("UPDATE_ROLLBACK_IN_PROGRESS", reason=reason)
            self._roll_back(stack.before)

    def delete(self) -> None:
        """Delete every resource in reverse order, keeping those whose deletion policy says so."""
        stack = self.stack
        stack.record("DELETE_IN_PROGRESS", reason="User Initiated")
        failed = self._delete_resources(list(reversed(stack.resources.values())))
        if failed:
            stack.record("DELETE_FAILED", reason=_failed_to("delete", failed))
            return
        stack.exports, stack.imports, stack.deleted = {}, set(), now()
        stack.record(DELETED)

    def continue_rollback(self, skip: list[str]) -> None:
        """Try again to roll back what failed, leaving the resources in `skip` as they are."""
        stack = self.stack
        stack.record("UPDATE_ROLLBACK_IN_PROGRESS", reason="User Initiated")
        if stack.before:
            for logical_id in skip:
                # CloudFormation takes what is skipped for brought back, whatever it is.
                stack.resources[logical_id].properties = stack.before.resources[logical_id].properties
            self._roll_back(stack.before, stack.garbage)

    def _converge(self, previous: dict[str, Resource]) -> None:
        """Make the resources of the template, in the order of their dependencies. Raises OperationFailed."""
        stack = self.stack
        try:
            evaluator = self.evaluator()
            ordered = order(evaluator)
        except TemplateError as error:
            raise OperationFailed(str(error)) from error
        for logical_id, dependencies in ordered.items():
            definition = evaluator.template["Resources"][logical_id]
            resource = stack.resources.get(logical_id)
            if resource is None:
                resource = Resource(logical_id, definition["Type"], definition, {})
                stack.resources[logical_id] = resource
            self._apply(resource, definition, dependencies, evaluator, previous.get(logical_id))
        for logical_id in [name for name in stack.resources if name not in ordered]:
            stack.garbage.append(stack.resources.pop(logical_id))
        # Kept in dependency order, so that a later deletion can go backwards.
        stack.resources = {name: stack.resources[name] for name in ordered}
        try:
            self._write_outputs(evaluator)
        except TemplateError as error:
            raise OperationFailed(str(error)) from error

    def _apply(
        self,
        resource: Resource,
        definition: JsonObject,
        dependencies: list[str],
        evaluator: Evaluator,
        previous: Resource | None,
    ) -> None:
        """Create, update or replace one resource, and record its events."""
        stack = self.stack
        previous = previous if previous and previous.physical_id else None
        verb = "UPDATE" if previous else "CREATE"
        resource.definition, resource.dependencies = definition, dependencies
        try:
            properties = schemas.with_stack_tags(
                resource.resource_type,
                stack.region,
                stack.request.tags,
                evaluator.resolve(definition.get("Properties", {})),
            )
            if previous and previous.properties == properties:
                return
            stack.record(f"{verb}_IN_PROGRESS", resource)
            self._check(resource, properties)
            self._authorize(resource, properties, "update" if previous else "create")
            if previous is None:
                resource.properties = properties
                self._accept(
                    resource, self.provider(resource.resource_type).create(self._request(resource, properties))
                )
            elif schemas.changed_create_only(resource.resource_type, stack.region, previous.properties, properties):
                self._replace(resource, properties)
            else:
                resource.properties = properties
                outcome = self.provider(resource.resource_type).update(
                    self._request(resource, properties, previous.properties)
                )
                # A handler may answer an update with another resource, as those of custom resources do.
                if outcome.physical_id != resource.physical_id:
                    stack.garbage.append(copy.copy(previous))
                self._accept(resource, outcome)
            resource.properties = properties
            stack.record(f"{verb}_COMPLETE", resource)
        except Exception as error:
            # What was made before the failure has an id, by which the rollback deletes it.
            resource.physical_id = getattr(error, "physical_id", "") or resource.physical_id
            stack.record(f"{verb}_FAILED", resource, reason=self._reason(resource, error))
            raise OperationFailed(
                f"The following resource(s) failed to {verb.lower()}: [{resource.logical_id}]."
            ) from error

    def _replace(self, resource: Resource, properties: JsonObject) -> None:
        """Make a resource's replacement. The old one is deleted in the clean-up, once everything else has succeeded."""
        stack, old = self.stack, copy.copy(resource)
        name = schemas.kept_name(resource.resource_type, stack.region, resource.properties, properties)
        if name:
            raise HandlerError(
                "CloudFormation cannot update a stack when a custom-named resource requires replacing. Rename "
                f"{name} and update the stack again."
            )
        stack.record(
            "UPDATE_IN_PROGRESS",
            resource,
            reason="Requested update requires the creation of a new physical resource; hence creating one.",
        )
        resource.physical_id, resource.attributes = "", {}
        try:
            self._accept(resource, self.provider(resource.resource_type).create(self._request(resource, properties)))
        except Exception:
            resource.physical_id, resource.attributes = old.physical_id, old.attributes
            raise
        stack.garbage.append(old)

    def _check(self, resource: Resource, properties: JsonObject) -> None:
        failures = validate_properties(resource.resource_type, properties, self.stack.region, resource.logical_id)
        if failures:
            raise HandlerError(
                f"Resource template validation failed for resource {resource.logical_id} as the template has invalid "
                "properties. Please refer to the resource documentation to fix the template.\nProperties validation "
                f"failed for resource {resource.logical_id} with message:\n" + "\n".join(map(str, failures))
            )

    def _authorize(self, resource: Resource, properties: JsonObject, verb: Verb) -> None:
        """Refuse what the policies of the stack's role deny; without a role the caller's own rights count."""
        role = self.stack.request.role_arn
        if role is None:
            return
        # Before it is made a name is CloudFormation's, which begins with the stack's.
        name = resource.physical_id or f"{self.stack.name}-{resource.logical_id}"
        account = self.clients.account
        touched = Touched(
            resource.resource_type, properties, account, self.stack.region, name, partial(boundary_of, account)
        )
        if denial := self.ledger.deploys(role, calls(touched, verb)):
            raise HandlerError.saying(str(denial), "AccessDenied")

    def _roll_back(self, before: Before, made_earlier: list[Resource] | None = None) -> None:
        """Bring back what was there before, in reverse order. What cannot be brought back fails the rollback."""
        stack, failed = self.stack, list[str]()
        stack.request, stack.outputs = before.request, before.outputs
        stack.exports, stack.imports = before.exports, before.imports
        made = [resource for name, resource in stack.resources.items() if name not in before.resources]
        made += made_earlier or []
        for logical_id, old in reversed(before.resources.items()):
            current = stack.resources.get(logical_id)
            if current is None or current.updated == old.updated:  # removed from the template, or not reached
                stack.resources[logical_id] = old
                continue
            stack.record("UPDATE_IN_PROGRESS", current)
            if current.physical_id != old.physical_id:
                made.append(current)
                stack.resources[logical_id] = current = copy.copy(old)
            elif current.properties != old.properties:
                try:
                    request = self._request(current, old.properties, current.properties)
                    self._accept(current, self.provider(current.resource_type).update(request))
                except Exception as error:  # noqa: BLE001 - whatever a handler raises is the resource's failure
                    stack.record("UPDATE_FAILED", current, reason=self._reason(current, error))
                    failed.append(logical_id)
                    continue
            current.properties, current.definition = old.properties, old.definition
            current.dependencies = old.dependencies
            stack.record("UPDATE_COMPLETE", current)
        stack.resources = {name: stack.resources[name] for name in before.resources}
        stack.garbage = made
        if failed:
            stack.record("UPDATE_ROLLBACK_FAILED", reason=_failed_to("update", failed))
            return
        self._finish_rollback()

    def _finish_rollback(self) -> None:
        self.stack.record("UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS")
        self._collect_garbage(creating=True)
        self.stack.before = None
        self.stack.record("UPDATE_ROLLBACK_COMPLETE")

    def _collect_garbage(self, creating: bool = False) -> None:
        """Delete what an update replaced or removed. A failure is an event, not the end of the update, as in AWS."""
        self._delete_resources(list(reversed(self.stack.garbage)), creating, garbage=True)
        self.stack.garbage = []

    def _delete_resources(self, resources: list[Resource], creating: bool = False, garbage: bool = False) -> list[str]:
        """Delete resources as their policies allow; returns those that failed. What a failed one needs is held."""
        stack, failed, held = self.stack, list[str](), set[str]()
        for resource in resources:
            if resource.logical_id in held:  # something that could not be deleted still needs it
                held.update(resource.dependencies)
                continue
            replaced = garbage and resource.logical_id in stack.resources
            policy = resource.definition.get("UpdateReplacePolicy" if replaced else "DeletionPolicy", "Delete")
            if replaced and creating:  # the replacement that a rollback undoes; what it replaced stays
                policy = "Delete"
            if policy == "Retain" or (policy == "RetainExceptOnCreate" and not creating):
                stack.record("DELETE_SKIPPED", resource)
            elif resource.physical_id:
                stack.record("DELETE_IN_PROGRESS", resource)
                try:
                    self._authorize(resource, resource.properties, "delete")
                    with unless_gone():
                        self.provider(resource.resource_type).delete(self._request(resource, resource.properties))
                except Exception as error:  # noqa: BLE001 - whatever a handler raises is the resource's failure
                    stack.record("DELETE_FAILED", resource, reason=self._reason(resource, error))
                    failed.append(resource.logical_id)
                    held.update(resource.dependencies)
                    continue
                stack.record("DELETE_COMPLETE", resource)
            else:
                stack.record("DELETE_COMPLETE", resource)
            if not garbage:
                stack.resources.pop(resource.logical_id, None)
        return failed

    def _write_outputs(self, evaluator: Evaluator) -> None:
        """Resolve outputs and exports. Another stack's export of the same name fails the operation."""
        outputs, exports = list[JsonObject](), dict[str, str]()
        for key, output in evaluator.template.get("Outputs", {}).items():
            if not evaluator.active(output):
                continue
            entry = {"OutputKey": key, "OutputValue": text_of(evaluator.resolve(output["Value"]), "Outputs")}
            if "Description" in output:
                entry["Description"] = output["Description"]
            if "Export" in output:
                entry["ExportName"] = str(evaluator.resolve(output["Export"]["Name"]))
                exports[entry["ExportName"]] = entry["OutputValue"]
            outputs.append(entry)
        for name in exports:
            value, owner = self.region.exported().get(name, ("", self.stack))
            if owner is not self.stack:
                raise TemplateError(f"Export with name {name} is already exported by stack {owner.name}.")
        for name, value in self.stack.exports.items():
            users = self.region.importers(name)
            if users and exports.get(name) != value:
                verb = "updated" if name in exports else "deleted"
                raise TemplateError(f"Export {name} cannot be {verb} as it is in use by {users[0].name}")
        self.stack.outputs, self.stack.exports = outputs, exports

    def _request(self, resource: Resource, properties: JsonObject, previous: JsonObject | None = None) -> Request:
        """What a provider needs to act on a resource."""
        stack = self.stack
        return Request(
            resource.resource_type,
            resource.logical_id,
            stack.name,
            stack.stack_id,
            stack.region,
            properties,
            self.clients,
            resource.physical_id,
            resource.attributes,
            previous or {},
            stack.request.tags,
        )

    def _accept(self, resource: Resource, outcome: Outcome) -> None:
        resource.physical_id, resource.attributes = outcome.physical_id, outcome.attributes

    def _reason(self, resource: Resource, error: Exception) -> str:
        if isinstance(error, HandlerError | TemplateError):
            return str(error)
        if isinstance(error, ClientError | BotoCoreError):
            return str(HandlerError.of(error))
        _LOG.exception("handler of %s %s failed", resource.resource_type, resource.logical_id)
        return f"Internal error of the sandbox in the handler of {resource.resource_type}: {error!r} (sandbox)"


def _failed_to(verb: str, logical_ids: list[str]) -> str | None:
    return f"The following resource(s) failed to {verb}: [{', '.join(logical_ids)}]." if logical_ids else None
