"""Waits until an instance group has its nodes, a Deployment its replicas, or teams their namespaces.

In continuous mode a HyperPod cluster is InService before any node exists, so CloudFormation would continue to what
needs nodes. A request may wait longer than a Lambda function runs: before its time is up the function invokes itself
with the same request, which then carries the deadline, and the last invocation answers.

Lambda stops a function that has invoked itself about 16 times; at 13 minutes each an hour takes five.
Source: AWS Lambda Developer Guide, "Recursive loop detection", 2026-10.
"""

import json
import logging
import time
from typing import Any, Final

import boto3

from ....common.handler_runtime.response import Answer, answering
from .deployment import ReplicasOfDeployment
from .namespaces import NamespacesOfTeams
from .nodes import RETRIES, NodesOfGroup

_WAITS: Final = {
    "Custom::PodwrightNodesReady": NodesOfGroup,
    "Custom::PodwrightDeploymentReady": ReplicasOfDeployment,
    "Custom::PodwrightNamespacesReady": NamespacesOfTeams,
}
_POLL_SECONDS: Final = 15
# Enough for one more look and for the answer to CloudFormation before Lambda ends the process.
_MARGIN_SECONDS: Final = 90
"""Time that one more look, the invocation of the next run and a slow answer may take."""

logger = logging.getLogger()


class NotReady(Exception):
    """What was waited for did not come in time."""


def handle(event: dict[str, Any], context: Any) -> Answer | None:
    """Carry out one request; None when another invocation continues with it."""
    # Nothing was made, so nothing has to go; physical ids do not depend on counts, and an update deletes nothing.
    if event["RequestType"] == "Delete":
        return Answer(event["PhysicalResourceId"])
    desired: Any = _WAITS[event["ResourceType"]].of(event["ResourceProperties"])
    deadline = event.setdefault("Deadline", time.time() + desired.timeout_seconds)
    session = boto3.Session()
    while True:
        observed = desired.observe(session)
        logger.info("%s: %s", desired.physical_id, observed)
        if observed.complete:
            return Answer(desired.physical_id, observed.data)
        if time.time() + _POLL_SECONDS > deadline:
            raise NotReady(desired.reason(session, observed))
        if context.get_remaining_time_in_millis() / 1000 < _MARGIN_SECONDS + _POLL_SECONDS:
            session.client("lambda", config=RETRIES).invoke(
                # Event: the invocation returns at once, and this one ends while the next one waits on.
                FunctionName=context.invoked_function_arn,
                InvocationType="Event",
                Payload=json.dumps(event),
            )
            return None
        time.sleep(_POLL_SECONDS)


handler = answering(handle)
