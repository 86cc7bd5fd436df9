"""Answers CloudWatch's dashboards from a workspace of Prometheus: a data source connector of CloudWatch.

CloudWatch calls it for each query of a widget, by the function LAMBDA of its metric math, and draws what it returns.
Source: CloudWatch User Guide, "Create a custom connector to a data source", 2026-11.
"""

import json
import logging
import os
import re
import urllib.error
import urllib.request
from typing import Any, Final
from urllib.parse import urlencode

import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest

# Grafana writes a label of a series so, and both draw the same definitions.
_LABEL: Final = re.compile(r"\{\{\s*(\w+)\s*\}\}")
# CloudWatch shows at most 500 metrics in a widget.
_MOST_SERIES: Final = 100

logger = logging.getLogger()
logger.setLevel(logging.INFO)


class Refused(Exception):
    """Prometheus does not answer the query."""


def handler(event: dict[str, Any], _: Any) -> dict[str, Any]:
    """Answer one event; a mistake is answered too, for CloudWatch to show it in the widget."""
    if event["EventType"] == "DescribeGetMetricData":
        return {
            "Description": "Metrics of HyperPod in Prometheus. Arguments: query, name of a series, factor.",
            "ArgumentDefaults": [{"Value": "up"}, {"Value": "{{instance}}"}, {"Value": 1}],
        }
    try:
        return {"MetricDataResults": _results(event["GetMetricDataRequest"])}
    except Refused as refused:
        logger.warning("%s", refused)
        return {"Error": {"Code": "Validation", "Value": str(refused)}}


def _results(request: dict[str, Any]) -> list[dict[str, Any]]:
    """The series of a query as CloudWatch takes them; those beyond the most that a widget shows are left out."""
    query, legend, factor = request["Arguments"]
    # Recordings are written once a minute, so a shorter period has holes.
    start, end, period = request["StartTime"], request["EndTime"], max(60, request["Period"])
    # Grafana's own variable for the span that is looked at; Prometheus does not know it.
    query = query.replace("$__range", f"{max(60, end - start)}s")
    # CloudWatch wants times that are whole periods.
    first = start - start % period
    result = _asked({"query": query, "start": first, "end": end, "step": period})
    return [_drawn(series, legend, factor) for series in result[:_MOST_SERIES]]


def _drawn(series: dict[str, Any], legend: str, factor: float) -> dict[str, Any]:
    """A series as CloudWatch draws it."""
    return {
        "StatusCode": "Complete",
        "Label": _named(legend, series["metric"]),
        "Timestamps": [int(timestamp) for timestamp, _ in series["values"]],
        "Values": [float(value) * factor for _, value in series["values"]],
    }


def _named(legend: str, labels: dict[str, str]) -> str:
    return _LABEL.sub(lambda label: labels.get(label[1], ""), legend).strip() or "value"


def _asked(values: dict[str, Any]) -> list[dict[str, Any]]:
    url, body = f"{os.environ['PROMETHEUS']}api/v1/query_range", urlencode(values)
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    session: Any = boto3.Session()
    request = AWSRequest("POST", url, headers, body)
    SigV4Auth(session.get_credentials(), "aps", session.region_name).add_auth(request)
    signed = urllib.request.Request(url, body.encode(), dict(request.headers.items()), method="POST")
    # POST: a query may be longer than a URL is allowed to be.
    try:
        with urllib.request.urlopen(signed, timeout=20) as answer:
            return json.load(answer)["data"]["result"]
    except urllib.error.HTTPError as error:
        raise Refused(f"Prometheus answers {error.code}: {error.read().decode(errors='replace')[:500]}") from error
