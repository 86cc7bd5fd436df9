"""Which resources the sandbox judges a request on: those that it names."""

import json

import pytest

from podwright.sandbox.authorization.requests import Sent, calls


@pytest.mark.parametrize(
    ("service", "method", "path", "query", "body", "action", "resource"),
    [
        ("scheduler", "POST", "/schedules/end", "", {"GroupName": "own"}, "CreateSchedule", "schedule/own/end"),
        ("scheduler", "POST", "/schedules/end", "", {}, "CreateSchedule", "schedule/default/end"),
        ("scheduler", "DELETE", "/schedules/end", "groupName=own", {}, "DeleteSchedule", "schedule/own/end"),
        ("scheduler", "GET", "/schedule-groups/own", "", {}, "GetScheduleGroup", "schedule-group/own"),
        ("eks", "GET", "/clusters/prod", "", {}, "DescribeCluster", "cluster/prod"),
    ],
)
def test_a_request_is_about_what_it_names(
    service: str, method: str, path: str, query: str, body: dict[str, str], action: str, resource: str
) -> None:
    sent = Sent(service, "us-west-2", "111122223333", method, path, query, "", "", json.dumps(body).encode())
    (call,) = calls(sent, lambda name: None)
    assert call.action == f"{service}:{action}"
    assert call.resources == (f"arn:aws:{service}:us-west-2:111122223333:{resource}",)
