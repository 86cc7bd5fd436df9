"""Answers CloudFormation's custom-resource requests. Ships with every Lambda handler of ours.

Source of the protocol: AWS CloudFormation User Guide, "Custom resource request and response reference", 2026-10.
"""

import json
import logging
import time
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

logger = logging.getLogger()
logger.setLevel(logging.INFO)

# CloudFormation refuses a response body of more than 4,096 bytes; the other fields need less than half of it.
_REASON_CHARACTERS: Final = 1500
_PUT_ATTEMPTS: Final = 5


@dataclass(frozen=True)
class Answer:
    """A request that was carried out."""

    physical_id: str
    """Physical id of the resource. An answer to an update with another id makes CloudFormation delete the old one."""
    data: Mapping[str, str] = field(default_factory=dict)
    """Attributes that the template reads with Fn::GetAtt."""


def was_not_created(event: Mapping[str, Any]) -> bool:
    """Whether a request is to delete what a creation failed to make, before it had an id of its own."""
    return event["RequestType"] == "Delete" and event["PhysicalResourceId"] == _not_created(event)


def _not_created(event: Mapping[str, Any]) -> str:
    return f"{event['LogicalResourceId']}-not-created"


Handle = Callable[[dict[str, Any], Any], Answer | None]


def answering(handle: Handle) -> Callable[[dict[str, Any], Any], None]:
    """A Lambda entry point that carries a request out with `handle` and sends CloudFormation the outcome.

    `handle` gets the request and the Lambda context. What it raises becomes the failure's reason, so its messages are
    for people. It returns None to leave the request open when it has arranged that another invocation answers it.
    A creation that is about to change something writes its id into the request's `PhysicalResourceId`, so that the
    deletion that follows a failure looks for it.
    """

    def entry(event: dict[str, Any], context: Any) -> None:
        logger.info("%s %s %s", event["RequestType"], event["ResourceType"], event["LogicalResourceId"])
        try:
            answer = handle(event, context)
        except Exception as error:
            # The request has to be answered whatever happened, or the stack waits for its service timeout.
            logger.exception("the request failed")
            _send(event, _failure(event, context, error))
            return
        if answer is not None:
            _send(event, {"Status": "SUCCESS", "PhysicalResourceId": answer.physical_id, "Data": dict(answer.data)})

    return entry


def _failure(event: dict[str, Any], context: Any, error: Exception) -> dict[str, Any]:
    reason = f"{type(error).__name__}: {error}"[:_REASON_CHARACTERS]
    return {
        "Status": "FAILED",
        "Reason": f"{reason} (log group {context.log_group_name}, stream {context.log_stream_name})",
        # A create that failed still needs an id: CloudFormation asks to delete it during the rollback.
        "PhysicalResourceId": event.get("PhysicalResourceId") or _not_created(event),
    }


def _send(event: dict[str, Any], outcome: dict[str, Any]) -> None:
    body = json.dumps(outcome | {name: event[name] for name in ("StackId", "RequestId", "LogicalResourceId")}).encode()
    # The URL is signed for exactly this content type: none.
    request = urllib.request.Request(event["ResponseURL"], data=body, method="PUT", headers={"Content-Type": ""})
    for attempt in range(1, _PUT_ATTEMPTS + 1):
        try:
            with urllib.request.urlopen(request, timeout=10):
                return
        except OSError as error:
            # HTTPError and URLError are OSErrors. After the last attempt Lambda runs the whole request again.
            logger.warning("CloudFormation did not take the answer, attempt %d: %s", attempt, error)
            if attempt == _PUT_ATTEMPTS:
                raise
            time.sleep(2 ** (attempt - 1))
