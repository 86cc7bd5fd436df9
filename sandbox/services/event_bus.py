"""EventBridge's default bus: events of an account's services reach the targets of the rules that match them.

moto keeps the rules and matches patterns. Lambda functions run for real, and topics and queues get their message, which
moto keeps; nobody gets mail. Input transformers are moto's.
"""

import json
import logging
import re
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from moto.events.models import Rule, events_backends
from moto.events.utils import EventTemplateParser

from ..protocol.clients import Clients
from ..protocol.json_objects import JsonObject

_LOG = logging.getLogger(__name__)
_RATE = re.compile(r"rate\((\d+) (minute|hour|day)s?\)")


class EventBus:
    """Sends events of services."""

    def __init__(self, clients: Clients) -> None:
        self.clients = clients
        self._last: dict[str, datetime] = {}
        """When each rule with a rate was last due, by its ARN."""

    def listens(self, region: str) -> bool:
        """Whether a rule of the region waits for events."""
        return any(rule.event_pattern.get_pattern() for rule in self._rules(region))

    def send(self, region: str, detail_type: str, resource: str, detail: JsonObject) -> None:
        """Send an event of SageMaker; targets that do not take it are named in the log, as a dead letter would be."""
        event = _event(self.clients.account, region, "aws.sagemaker", detail_type, resource, detail)
        for rule in self._rules(region):
            if rule.state == "ENABLED" and rule.event_pattern.matches_event(event):  # pyrefly: ignore[bad-argument-type]
                self._give(region, rule, event)

    def _give(self, region: str, rule: Rule, event: JsonObject) -> None:
        for target in rule.targets:
            try:
                self._deliver(region, target, event)
            except (ClientError, BotoCoreError):
                # None may keep the others from their event.
                _LOG.exception("rule %s: %s did not take an event", rule.name, target["Arn"])

    def tick(self) -> None:
        """Send what rules with a rate are due; one that is new waits for a whole period first."""
        timestamp = datetime.now(UTC)
        for region in list(events_backends[self.clients.account]):
            for rule in self._rules(region):
                match = _RATE.fullmatch(rule.scheduled_expression or "")
                if not match or rule.state != "ENABLED":
                    continue
                last = self._last.setdefault(rule.arn, timestamp)
                if timestamp - last >= timedelta(**{f"{match[2]}s": int(match[1])}):
                    self._last[rule.arn] = timestamp
                    event = _event(self.clients.account, region, "aws.events", "Scheduled Event", rule.arn, {})
                    self._give(region, rule, event)

    def _rules(self, region: str) -> list[Rule]:
        known = events_backends[self.clients.account]
        return list(known[region].event_buses["default"].rules.values()) if region in known else []

    def _deliver(self, region: str, target: JsonObject, event: JsonObject) -> None:
        """Hand an event to a target, transformed as its rule says."""
        service, name = target["Arn"].split(":")[2], target["Arn"].rsplit(":", 1)[-1]
        transformer = target.get("InputTransformer", {})
        specified: Any = event
        if transformer:
            template, paths = transformer.get("InputTemplate"), transformer.get("InputPathsMap", {})
            specified = EventTemplateParser.parse(template, paths, event)  # pyrefly: ignore[bad-argument-type]
        text = target.get("Input") or json.dumps(specified)
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


def _event(account: str, region: str, source: str, detail_type: str, resource: str, detail: JsonObject) -> JsonObject:
    return {
        "version": "0",
        "id": str(uuid.uuid4()),
        "detail-type": detail_type,
        "source": source,
        "account": account,
        "time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "region": region,
        "resources": [resource],
        "detail": detail,
    }
