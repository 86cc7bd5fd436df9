"""What an event of a HyperPod cluster says to people.

Shapes: Amazon EventBridge events of SageMaker AI (SageMaker Developer Guide, "Events that Amazon SageMaker AI sends to
Amazon EventBridge" and "SageMaker HyperPod cluster events reference", 2026-11).
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

STATE: Final = "SageMaker HyperPod Cluster State Change"
HEALTH: Final = "SageMaker HyperPod Cluster Node Health Event"
EVENT: Final = "SageMaker HyperPod Cluster Event"

Ask = Callable[[str, str], str]
"""Asks SageMaker for a failure message: of an event by cluster and event id, or of a cluster when the id is empty."""

# What differs between two events about the same thing: ids of instances and of anything else, numbers, ARNs.
_PASSING = re.compile(r"arn:\S+|\b(?:i|eni|subnet|sg)-[0-9a-f]+\b|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\d+")
_UNSAID = "SageMaker gives no reason"


@dataclass(frozen=True)
class Notice:
    """One message to people."""

    title: str
    text: str
    """Sentences, one a line."""
    next_step: str
    """What to do, in Markdown."""
    key: str
    """What it is about: two notices of the same key say the same."""
    severity: str
    """critical, warning or resolved."""
    instance: str = ""
    """The instance that is unhealthy, or healthy again."""


def notice(event: Mapping[str, Any], ask: Ask) -> Notice | None:
    """What to say of an event; None for one that nobody has to hear of."""
    kinds = {STATE: _state, HEALTH: _health, EVENT: _event}
    kind = kinds.get(event["detail-type"])
    return kind(event["detail"], ask) if kind else None


def _state(detail: Mapping[str, Any], ask: Ask) -> Notice | None:
    cluster, status = detail["ClusterName"], detail["ClusterStatus"]
    # The other states are those of every deployment; nobody wants a mail of them.
    if status not in ("Failed", "RollingBack"):
        return None
    failure = detail.get("FailureMessage") or ask(cluster, "") or _UNSAID
    groups = [
        f"Instance group {group['InstanceGroupName']} is {group['Status']} "
        f"with {group.get('CurrentCount', '?')} of {group.get('TargetCount', '?')} instances."
        for group in detail.get("InstanceGroups") or ()
        if group.get("Status") not in (None, "InService")
    ]
    text = "\n".join([f"{failure.rstrip('.')}.", *groups])
    return _made(f"Cluster {cluster} is {status}", text, cluster, status, failure, severity="critical")


def _health(detail: Mapping[str, Any], _: Ask) -> Notice | None:
    """The notice of an instance that HyperPod calls unhealthy, or healthy again; never None."""
    cluster, instance, summary = detail["ClusterName"], detail["InstanceId"], detail["HealthSummary"]
    status = summary["HealthStatus"]
    if status == "Healthy":
        title = f"Instance {instance} of {cluster} is healthy again"
        return Notice(title, f"{title}.", "Nothing has to be done", f"{cluster}/{instance}", "resolved", instance)
    reason = summary.get("HealthStatusReason") or _UNSAID
    text = [f"{reason.rstrip('.')}."]
    # None comes as a word, not as null.
    if (action := summary.get("RepairAction")) and action != "None":
        text.append(f"HyperPod repairs it: {action}.")
    if recommendation := summary.get("Recommendation"):
        text.append(recommendation)
    title = f"Instance {instance} of {cluster} is {status}"
    # One notice for each instance: each of them is a repair of its own.
    key = f"{cluster}/{instance}/{status}"
    return Notice(title, "\n".join(text), _inspect(cluster), key, "warning", instance)


def _event(detail: Mapping[str, Any], ask: Ask) -> Notice | None:
    """The notice of a cluster event with what failed; None for events that only inform."""
    record = detail["EventDetails"]
    # Info says that something went as it should.
    if record.get("EventLevel") not in ("Warn", "Error"):
        return None
    cluster = record["ClusterName"]
    metadata = (record.get("EventDetails") or {}).get("EventMetadata") or {}
    # EventBridge's copy often lacks what failed, which only the call tells.
    failure = failure_message(metadata) or ask(cluster, record["EventId"])
    location = " ".join(
        f"{word} {record[name]}"
        for word, name in (("group", "InstanceGroupName"), ("instance", "InstanceId"))
        if record.get(name)
    )
    message = record.get("Description") or f"An event of {record['ResourceType']} without a description"
    text = "\n".join(
        [
            f"{message.rstrip('.')}.",
            *([f"{failure.rstrip('.')}."] if failure else []),
            *([f"At {location}."] if location else []),
        ]
    )
    severity = "critical" if record["EventLevel"] == "Error" else "warning"
    group = record.get("InstanceGroupName", "")
    title = f"{record['ResourceType']} of {cluster}{f', group {group}' if group else ''}: {failure or message}"
    return _made(title, text, cluster, group, message, failure, severity=severity)


def failure_message(value: Any) -> str:
    # The message lies deeper or less deep with the kind of event; SageMaker's reference gives no one place.
    """The first FailureMessage anywhere inside an event's metadata; empty when there is none."""
    if not isinstance(value, Mapping):
        return ""
    if isinstance(result := value.get("FailureMessage"), str) and result:
        return result
    return next((text for inner in value.values() if (text := failure_message(inner))), "")


def _made(title: str, text: str, cluster: str, *about: str, severity: str) -> Notice:
    # Ids and numbers are left out, so that the same failure of a hundred instances is one notice.
    same = "|".join(_PASSING.sub("*", part) for part in (cluster, *about))
    return Notice(title, text, _inspect(cluster), hashlib.sha256(same.encode()).hexdigest(), severity)


def _inspect(cluster: str) -> str:
    return f"Find the cause: `podwright doctor {cluster}`"
