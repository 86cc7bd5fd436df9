"""EventBridge's default bus, which sends events of an account's services to the targets of matching rules.

moto stores the rules, matches patterns and transforms inputs. Lambda functions run. Topics and queues get a message,
which moto stores; no mail is sent.
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
        """Last due time of each rule with a rate, by its ARN."""

    def listens(self, region: str) -> bool:
        """Return True if a rule of the region matches events."""
        return any(rule.event_pattern.get_pattern() for rule in self._rules(region))

    def send(self, region: str, detail_type: str, resource: str, detail: JsonObject) -> None:
        """Send an event of SageMaker to the targets of matching rules, and log those that fail."""
        event = _event(self.clients.account, region, "aws.sagemaker", detail_type, resource, detail)
        for rule in self._rules(region):
            if rule.state == "ENABLED" and rule.event_pattern.matches_event(event):  # pyrefly: ignore[bad-argument-type]
                self._give(region, rule, event)

    def _give(self, region: str, rule: Rule, event: JsonObject) -> None:
        for target in rule.targets:
            try:
                self._deliver(region, target, event)
            except (ClientError, BotoCoreError):
                # The other targets still get the event.
                _LOG.exception("rule %s: %s did not take an event", rule.name, target["Arn"])

    def tick(self) -> None:
        """Send the events of rules with a rate that are due. A new rule first waits for a whole period."""
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
        """Send an event to a target, with the transformation of its rule."""
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
