"""AWS::CloudFormation::Stack: a stack inside a stack, deployed through the CloudFormation API of the sandbox."""

import time
from typing import Any

from botocore.exceptions import ClientError

from ...protocol.json_objects import JsonObject
from .base import HandlerError, Outcome, Provider, Request

_POLL_SECONDS = 0.1
_CAPABILITIES = ["CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"]


class NestedStack:
    """A nested stack; its outputs are attributes of the resource."""

    def create(self, request: Request) -> Outcome:
        """Create the stack and wait for it; a failed one stays behind for the rollback to delete."""
        client = request.client("cloudformation")
        stack_id = client.create_stack(
            StackName=request.name(128), Capabilities=_CAPABILITIES, OnFailure="DO_NOTHING", **_values(request)
        )["StackId"]
        return self._wait(client, stack_id, "CREATE_COMPLETE")

    def update(self, request: Request) -> Outcome:
        """Update the stack and wait for it."""
        client = request.client("cloudformation")
        try:
            client.update_stack(StackName=request.physical_id, Capabilities=_CAPABILITIES, **_values(request))
        except ClientError as error:
            if "No updates are to be performed" not in error.response["Error"]["Message"]:
                raise
            # It is as wanted, maybe because it has rolled itself back.
            return self._wait(
                client, request.physical_id, "CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE"
            )
        return self._wait(client, request.physical_id, "UPDATE_COMPLETE")

    def delete(self, request: Request) -> None:
        """Delete the stack and wait for it."""
        client = request.client("cloudformation")
        client.delete_stack(StackName=request.physical_id)
        self._wait(client, request.physical_id, "DELETE_COMPLETE")

    def _wait(self, client: Any, stack_id: str, *good: str) -> Outcome:
        """Wait for a nested stack. Raises HandlerError with the reason when it failed."""
        while True:
            stack = client.describe_stacks(StackName=stack_id)["Stacks"][0]
            if not stack["StackStatus"].endswith("_IN_PROGRESS"):
                break
            time.sleep(_POLL_SECONDS)
        if stack["StackStatus"] not in good:
            # Source of the words: the status reason of a failed AWS::CloudFormation::Stack.
            raise HandlerError(
                f"Embedded stack {stack_id} was not successfully created or updated: "
                f"{stack.get('StackStatusReason', stack['StackStatus'])}",
                stack_id,
            )
        outputs = {f"Outputs.{item['OutputKey']}": item["OutputValue"] for item in stack.get("Outputs", [])}
        return Outcome(stack_id, outputs)


def _values(request: Request) -> JsonObject:
    properties = request.properties
    parameters = [
        {"ParameterKey": key, "ParameterValue": ",".join(value) if isinstance(value, list) else str(value)}
        for key, value in properties.get("Parameters", {}).items()
    ]
    tags = [{"Key": key, "Value": value} for key, value in request.tags.items()]
    return {"TemplateURL": properties["TemplateURL"], "Parameters": parameters, "Tags": tags}


NESTED: dict[str, Provider] = {"AWS::CloudFormation::Stack": NestedStack()}
