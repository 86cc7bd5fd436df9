"""Tells people of what a HyperPod cluster reports: failures of the cluster, of nodes, and of operations on them.

EventBridge calls it for each event. It fills in the failure message that the event lacks, holds back what people have
just heard, and publishes a text for mail and JSON for chat. A node that fails again and again it takes out of work.
What it raises, Lambda tries twice more, and then hands to the topic for text as it is.
"""

import json
import logging
import os
import time
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from .memory import MOST_IN_AN_HOUR, Verdict, admit, forget, remember
from .notices import HEALTH, Notice, failure_message, notice
from .quarantine import quarantined

# Less than the time of the function, with all retries.
_RETRIES = Config(retries={"mode": "standard", "max_attempts": 5}, connect_timeout=5, read_timeout=10)
_READS: Final = 3
"""An event can be described only some time after it was sent."""
_PAUSE_SECONDS: Final = 4
_SUBJECT_CHARACTERS: Final = 100
_TITLE_CHARACTERS: Final = 200
_TEXT_CHARACTERS: Final = 4000

logger = logging.getLogger()
logger.setLevel(logging.INFO)


def handler(event: dict[str, Any], context: Any) -> None:
    """Tell people of one event, unless they know."""
    session = boto3.Session()
    dynamodb: Any = session.resource("dynamodb", config=_RETRIES)
    table, now = dynamodb.Table(os.environ["TABLE"]), int(time.time())
    if event["detail-type"] == HEALTH and "QUARANTINE" in os.environ:
        result = quarantined(session, table, event)
        if result and (verdict := admit(table, result.key, event["id"], now)).send:
            _publish(session, result, verdict)
    resolved_notice = notice(event, lambda cluster, event_id: _ask(session, cluster, event_id))
    if resolved_notice is None:
        logger.info("nothing to tell of %s", event["detail-type"])
        return
    # Whoever did not hear of the fault needs not hear that it is gone.
    if resolved_notice.severity == "resolved":
        if forget(table, resolved_notice.instance):
            _publish(session, resolved_notice, Verdict(True))
        return
    verdict = admit(table, resolved_notice.key, event["id"], now)
    if not verdict.send:
        logger.info("held back: %s", resolved_notice.title)
        return
    _publish(session, resolved_notice, verdict)
    # After the publication: a notice that did not go out is not to be resolved.
    if resolved_notice.instance:
        remember(table, resolved_notice.instance, now)


def _ask(session: boto3.Session, cluster: str, event_id: str) -> str:
    """The failure message as SageMaker tells it; empty when it tells none."""
    client = session.client("sagemaker", config=_RETRIES)
    try:
        if not event_id:
            return client.describe_cluster(ClusterName=cluster).get("FailureMessage", "")
        for attempt in range(_READS):
            if attempt:
                time.sleep(_PAUSE_SECONDS)
            details = client.describe_cluster_event(ClusterName=cluster, EventId=event_id).get("EventDetails", {})
            if result := failure_message(details.get("EventDetails", {}).get("EventMetadata", {})):
                return result
    except ClientError as error:
        # People hear of the event all the same; a cluster without continuous provisioning cannot be asked, for one.
        logger.warning("SageMaker does not tell of %s %s: %s", cluster, event_id, error)
    return ""


def _publish(session: boto3.Session, result: Notice, verdict: Verdict) -> None:
    """Send a notice by mail, and to chat where there is one, with how many others were held back."""
    environment = os.environ["ENVIRONMENT"]
    text = result.text
    if verdict.held_back:
        text += f"\n{verdict.held_back} more of this kind were held back since the last one."
    if verdict.last:
        text += f"\nThere were {MOST_IN_AN_HOUR} notices within the hour; more are held back until it is over."
    title = f"{result.severity.upper()}: {result.title}"
    sns = session.client("sns", config=_RETRIES)
    sns.publish(
        TopicArn=os.environ["MAIL_TOPIC"],
        Subject=_subject(title),
        # Backticks are Markdown, which a mail shows as they are.
        Message=f"{result.title}\n\n{text}\n\n{result.next_step.replace('`', '')}\nEnvironment: {environment}\n",
    )
    if chat := os.environ.get("CHAT_TOPIC"):
        sns.publish(TopicArn=chat, Message=json.dumps(_chat(title, text, result, environment)))


def _subject(title: str) -> str:
    """A title as SNS takes a subject: ASCII without line breaks, a hundred characters."""
    # SNS takes ASCII without line breaks as a subject.
    plain = title.encode("ascii", "replace").decode()
    return " ".join(plain.split())[:_SUBJECT_CHARACTERS]


def _chat(title: str, text: str, result: Notice, environment: str) -> dict[str, Any]:
    """Source of the shape: Amazon Q Developer in chat applications Administrator Guide, "Custom notifications"."""
    return {
        # The schema by which Amazon Q Developer in chat applications (once AWS Chatbot) draws messages of others.
        "version": "1.0",
        "source": "custom",
        "content": {
            "textType": "client-markdown",
            "title": title[:_TITLE_CHARACTERS],
            "description": text[:_TEXT_CHARACTERS],
            "nextSteps": [result.next_step],
        },
        "metadata": {
            # Messages of a thread stand below one another: what one instance goes through is read in one place.
            "threadId": result.instance or result.key[:32],
            "summary": title[:_TITLE_CHARACTERS],
            "additionalContext": {"environment": environment, "severity": result.severity},
        },
    }
