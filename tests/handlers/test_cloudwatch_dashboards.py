"""What CloudWatch gets when it asks for the queries of a widget."""

import io
import json
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import parse_qs

import pytest

from podwright.constructs.observability.cloudwatch_dashboards.handler import index

SERIES = [
    {"metric": {"team": "research"}, "values": [[600, "0.5"], [900, "0.75"]]},
    {"metric": {"team": "product"}, "values": [[900, "1"]]},
]


class Answers:
    """A workspace that answers once, and remembers what it was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, code: int = 200, body: Any = None) -> None:
        self.code, self.body = code, {"data": {"result": SERIES}} if body is None else body
        self.request: urllib.request.Request
        monkeypatch.setenv("PROMETHEUS", "https://aps.test/workspaces/ws-1/")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-west-2")
        monkeypatch.setattr(index.urllib.request, "urlopen", self._open)

    def _open(self, request: urllib.request.Request, timeout: float) -> Any:
        self.request = request
        body = io.BytesIO(json.dumps(self.body).encode())
        if self.code != 200:
            raise urllib.error.HTTPError(request.full_url, self.code, "", {}, body)
        return body

    @property
    def asked(self) -> dict[str, str]:
        assert isinstance(self.request.data, bytes)
        return {name: values[0] for name, values in parse_qs(self.request.data.decode()).items()}


def event(query: str = "x[$__range]", legend: str = "{{team}} held", factor: float = 100) -> dict[str, Any]:
    request = {"StartTime": 605, "EndTime": 1205, "Period": 300, "Arguments": [query, legend, factor]}
    return {"EventType": "GetMetricData", "GetMetricDataRequest": request}


def test_series_are_named_scaled_and_begin_with_whole_periods(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = Answers(monkeypatch)
    metric_data_results = index.handler(event(), None)["MetricDataResults"]
    assert metric_data_results == [
        {"StatusCode": "Complete", "Label": "research held", "Timestamps": [600, 900], "Values": [50, 75]},
        {"StatusCode": "Complete", "Label": "product held", "Timestamps": [900], "Values": [100]},
    ]
    assert answers.asked == {"query": "x[600s]", "start": "600", "end": "1205", "step": "300"}
    assert answers.request.full_url == "https://aps.test/workspaces/ws-1/api/v1/query_range"
    assert "/us-west-2/aps/aws4_request" in (answers.request.get_header("Authorization") or "")


def test_a_query_that_prometheus_refuses_is_said_so_in_the_widget(monkeypatch: pytest.MonkeyPatch) -> None:
    Answers(monkeypatch, 400, {"error": "parse error"})
    assert index.handler(event(), None) == {
        "Error": {"Code": "Validation", "Value": 'Prometheus answers 400: {"error": "parse error"}'}
    }


def test_no_widget_gets_more_series_than_it_can_show(monkeypatch: pytest.MonkeyPatch) -> None:
    Answers(monkeypatch, body={"data": {"result": SERIES * 300}})
    assert len(index.handler(event(), None)["MetricDataResults"]) == 100


def test_cloudwatch_is_told_what_the_arguments_are() -> None:
    messages = index.handler({"EventType": "DescribeGetMetricData"}, None)
    assert len(messages["ArgumentDefaults"]) == 3
