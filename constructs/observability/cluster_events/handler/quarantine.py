"""Takes a node that fails again and again out of work, or asks people to where only they can."""

import json
import os
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from .....planning.node.quarantine import record, record_key
from .faults import count
from .notices import Notice

# The function that marks the node has forty seconds.
_CALL: Final = Config(retries={"max_attempts": 0}, connect_timeout=5, read_timeout=45)


def quarantined(session: boto3.Session, table: Any, event: Mapping[str, Any]) -> Notice | None:
    """What to say of a node that was taken out of work because of this event; None for one that stays in it.

    Raises:
        RuntimeError: the node could not be marked; Lambda tries again.
    """
    detail = event["detail"]
    cluster, instance, summary = detail["ClusterName"], detail["InstanceId"], detail["HealthSummary"]
    healthy = summary["HealthStatus"] == "Healthy"
    # Another machine comes in its location.
    if not healthy and summary.get("RepairAction") == "Replace":
        return None
    rule: dict[str, Any] = json.loads(os.environ["QUARANTINE"])
    time = int(datetime.fromisoformat(event["time"]).timestamp())
    faults = count(table, instance, event["id"], time, rule["within_hours"] * 3600, healthy=healthy)
    if faults < rule["faults"]:
        return None
    reason = f"{faults} faults within {rule['within_hours']} hours"
    if not healthy:
        last = (summary.get("HealthStatusReason") or "SageMaker gives no reason").rstrip(".")
        reason += f", the last: {last}"
    title = f"Instance {instance} of {cluster} fails again and again"
    environment = os.environ["ENVIRONMENT"]
    if not rule["marker"]:
        step = f"Take it out of work: `podwright node quarantine {environment} {instance} --reason '{faults} faults'`"
        return Notice(title, f"{reason}.", step, f"{cluster}/{instance}/faults", "critical")
    s3 = session.client("s3")
    location = {"Bucket": rule["bucket"], "Key": record_key(rule["prefix"], instance)}
    # The event's own time: where Lambda repeats it, people still have to be told.
    since = event["time"]
    if (known := _record(s3, location)) and known["since"] != since:
        return None
    by = f"rule of {environment}"
    if not _mark(session, rule, {"instance": instance, "reason": reason, "by": by, "since": since}):
        return None
    text = json.dumps(record(instance, reason, by, since), indent=2) + "\n"
    s3.put_object(**location, Body=text.encode(), ContentType="application/json")
    return Notice(
        f"{title} and is in quarantine",
        f"{reason}.\nWhat runs there continues, and nothing new comes.",
        f"Find the cause or replace it, then `podwright node release {environment} {instance}`",
        f"{cluster}/{instance}/quarantine",
        "critical",
    )


def _record(s3: Any, location: Mapping[str, str]) -> dict[str, str] | None:
    """The record of the node's quarantine; None where it is in none."""
    try:
        return json.loads(s3.get_object(**location)["Body"].read())
    except ClientError as error:
        if error.response["Error"]["Code"] != "NoSuchKey":
            raise
        return None


def _mark(session: boto3.Session, rule: Mapping[str, Any], node: Mapping[str, str]) -> bool:
    """Have the node marked in Kubernetes; whether it is there."""
    request = json.dumps({"eks_cluster": rule["eks_cluster"], **node}).encode()
    answer = session.client("lambda", config=_CALL).invoke(FunctionName=rule["marker"], Payload=request)
    result = json.loads(answer["Payload"].read())
    if "FunctionError" in answer:
        raise RuntimeError(f"{node['instance']} could not be marked: {result}")
    return result["marked"]
