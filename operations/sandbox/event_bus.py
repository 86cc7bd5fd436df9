"""EventBridge's default bus: events of the sandbox's services reach the targets of the rules that match them.

moto keeps the rules and matches patterns. Lambda functions run for real, and topics and queues get their message, which
moto keeps; nobody gets mail. Input transformers are moto's.
"""

import json
import logging
import uuid
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from moto.events.models import Rule, events_backends
from moto.events.utils import EventTemplateParser

from .providers.base import Clients
from .stack import ACCOUNT
from .template import JsonObject

_LOG = logging.getLogger(__name__)


class EventBus:
    """Sends events of services."""

    def __init__(self, clients: Clients) -> None:
        self.clients = clients

    def listens(self, region: str) -> bool:
        """Whether a rule of the region waits for events."""
        return any(rule.event_pattern.get_pattern() for rule in self._rules(region))

    def send(self, region: str, detail_type: str, resource: str, detail: JsonObject) -> None:
        """Send an event of SageMaker; targets that do not take it are named in the log, as a dead letter would be."""
        event: JsonObject = {
            "version": "0",
            "id": str(uuid.uuid4()),
            "detail-type": detail_type,
            "source": "aws.sagemaker",
            "account": ACCOUNT,
            "time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "region": region,
            "resources": [resource],
            "detail": detail,
        }
        for rule in self._rules(region):
            if rule.state != "ENABLED" or not rule.event_pattern.matches_event(event):  # pyright: ignore[reportArgumentType]
                continue
            for target in rule.targets:
                try:
                    self._deliver(region, target, event)
                except (ClientError, BotoCoreError):
                    # None may keep the others from their event.
                    _LOG.exception("rule %s: %s did not take an event", rule.name, target["Arn"])

    def _rules(self, region: str) -> list[Rule]:
        known = events_backends[ACCOUNT]
        return list(known[region].event_buses["default"].rules.values()) if region in known else []

    def _deliver(self, region: str, target: JsonObject, event: JsonObject) -> None:
        service, name = target["Arn"].split(":")[2], target["Arn"].rsplit(":", 1)[-1]
        transformer = target.get("InputTransformer", {})
        given: Any = event
        if transformer:
            template, paths = transformer.get("InputTemplate"), transformer.get("InputPathsMap", {})
            given = EventTemplateParser.parse(template, paths, event)  # pyright: ignore[reportArgumentType]
        text = target.get("Input") or json.dumps(given)
        if service == "lambda":
            invoke = self.clients.client("lambda", region).invoke
            invoke(FunctionName=target["Arn"], InvocationType="Event", Payload=text.encode())
        elif service == "sns":
            self.clients.client("sns", region).publish(TopicArn=target["Arn"], Message=text)
        elif service == "sqs":
            url = self.clients.client("sqs", region).get_queue_url(QueueName=name)["QueueUrl"]
            self.clients.client("sqs", region).send_message(QueueUrl=url, MessageBody=text)
        else:
            _LOG.warning("events do not reach %s in the sandbox", target["Arn"])
