"""Custom resources: the Lambda function behind ServiceToken is really invoked and answers to a response URL.

Source of the protocol: AWS CloudFormation User Guide, "Custom resource request and response reference".
"""

import json
import uuid
from collections.abc import Mapping
from typing import Any

from ...protocol.json_objects import JsonObject
from ...services.functions import Functions
from ..responses import PREFIX, RESPONSES
from .base import HandlerError, Outcome, Request

# CloudFormation waits an hour for a custom resource that names no time of its own.
_DEFAULT_TIMEOUT = 3600.0
_POLL_SECONDS = 0.5


class CustomResource:
    """Custom::* and AWS::CloudFormation::CustomResource."""

    functions: Mapping[str, Functions]
    """What runs functions, by account; set once when the server starts."""

    def create(self, request: Request) -> Outcome:
        """Send a Create request."""
        return self._send(request, "Create")

    def update(self, request: Request) -> Outcome:
        """Send an Update request; an answer with a new physical id replaces the resource."""
        return self._send(request, "Update")

    def delete(self, request: Request) -> None:
        """Send a Delete request."""
        self._send(request, "Delete")

    def _send(self, request: Request, kind: str) -> Outcome:
        """Call the function behind a custom resource and wait for its answer."""
        request_id = str(uuid.uuid4())
        event: JsonObject = {
            "RequestType": kind,
            "ServiceToken": request.properties["ServiceToken"],
            "RequestId": request_id,
            "ResponseURL": f"{request.clients.endpoint}{PREFIX}{request_id}",
            "StackId": request.stack_id,
            "LogicalResourceId": request.logical_id,
            "ResourceType": request.resource_type,
            "ResourceProperties": _texts(request.properties),
        }
        if kind != "Create":
            event["PhysicalResourceId"] = request.physical_id
        if kind == "Update":
            event["OldResourceProperties"] = _texts(request.previous)
        token = request.properties["ServiceToken"]
        functions = request.client("lambda")
        runtime = functions.get_function(FunctionName=token)["Configuration"].get("Runtime", "a container image")
        if not runtime.startswith("python"):
            raise HandlerError(f"{token} runs on {runtime}; the sandbox runs Python handlers only (sandbox)")
        functions.invoke(FunctionName=token, InvocationType="Event", Payload=json.dumps(event))
        answer = self._answer(request, request_id, token)
        physical_id = answer.get("PhysicalResourceId", "")
        if answer.get("Status") != "SUCCESS":
            # Source of the words: CloudFormation's status reason for a FAILED response.
            raise HandlerError(
                "Received response status [FAILED] from custom resource. Message returned: "
                f"{answer.get('Reason', '')} (RequestId: {request_id})",
                physical_id,
            )
        if not physical_id and kind != "Delete":
            raise HandlerError("Invalid PhysicalResourceId")
        return Outcome(physical_id or request.physical_id, dict(answer.get("Data") or {}))

    def _answer(self, request: Request, request_id: str, token: str) -> JsonObject:
        """Wait for the answer of a function. Raises HandlerError as soon as none can come."""
        waited, limit = 0.0, float(request.properties.get("ServiceTimeout", _DEFAULT_TIMEOUT))
        while waited < limit:
            busy = self.functions[request.clients.account].running[token] > 0
            answer = RESPONSES.take(request_id, _POLL_SECONDS)
            if answer is not None:
                return answer
            if not busy:
                raise HandlerError(
                    f"The function {token} ended without an answer; see its logs. CloudFormation would wait "
                    f"{limit:.0f} seconds for one (sandbox)",
                    request.physical_id or request.name(),
                )
            waited += _POLL_SECONDS
        raise HandlerError(
            "CloudFormation did not receive a response from your Custom Resource. Please check your logs for requestId "
            f"[{request_id}].",
            request.physical_id or request.name(),
        )


def _texts(value: Any) -> Any:
    """CloudFormation sends every scalar as text."""
    if isinstance(value, dict):
        return {key: _texts(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_texts(item) for item in value]
    return str(value).lower() if isinstance(value, bool) else str(value)
