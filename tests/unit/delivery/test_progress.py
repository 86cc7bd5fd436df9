"""What people see of a deployment, from the events of CloudFormation as boto3 gives them."""

import io
import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError

from podwright.operations.aws.account import Account
from podwright.operations.aws.stacks import Stack
from podwright.operations.cdk.events import StackEvents
from podwright.operations.cdk.progress import Progress
from screens import screen

STACK = "AWS::CloudFormation::Stack"
BEGUN = datetime(2026, 11, 23, 11, 20, tzinfo=UTC)


class StackAccount:
    """CloudFormation with stacks to which things happen, one a second."""

    def __init__(self, *names: str, status: str = "CREATE_COMPLETE") -> None:
        self.now = BEGUN
        self.stacks: dict[str, dict[str, Any]] = {}
        self.gone: dict[str, dict[str, Any]] = {}
        self.asked: list[str] = []
        for name in names:
            self.happens(name, name, status, STACK)

    def client(self, service: str) -> "StackAccount":
        assert service == "cloudformation"
        return self

    def get_paginator(self, operation: str) -> "StackAccount":
        assert operation == "describe_stack_events"
        return self

    def paginate(self, StackName: str) -> list[dict[str, Any]]:
        known = {stack["StackId"]: stack for stack in (*self.stacks.values(), *self.gone.values())}
        self.asked.append(known[StackName]["StackName"])
        events = known[StackName]["events"][::-1]
        # As AWS does: pages, the newest first.
        return [{"StackEvents": events[:3]}, {"StackEvents": events[3:]}]

    def happens(self, stack: str, logical_id: str, status: str, kind: str, reason: str | None = None) -> None:
        self.now += timedelta(seconds=1)
        made = {"StackName": stack, "CreationTime": self.now, "StackId": f"arn:{stack}/{len(self.gone)}", "events": []}
        entry = self.stacks.setdefault(stack, made)
        if logical_id == stack:
            entry["StackStatus"] = status
        if status == "UPDATE_IN_PROGRESS" and logical_id == stack:
            entry["LastUpdatedTime"] = self.now
        event = {"StackName": stack, "LogicalResourceId": logical_id, "ResourceStatus": status, "ResourceType": kind}
        time = {"Timestamp": self.now, "EventId": f"{stack}-{len(entry['events'])}"}
        entry["events"].append(event | time | ({"ResourceStatusReason": reason} if reason else {}))
        if (logical_id, status) == (stack, "DELETE_COMPLETE"):
            self.gone[stack] = self.stacks.pop(stack)

    @property
    def events(self) -> StackEvents:
        return StackEvents(cast(Account, self), lambda: [Stack.of(row) for row in self.stacks.values()])


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def followed(account: StackAccount, stream: io.StringIO, clock: Clock) -> Progress:
    progress = Progress(stream, clock)
    progress.watch(account.events)
    progress.begin("deploy")
    return progress


def after_a_while(progress: Progress, clock: Clock) -> None:
    clock.now += 5
    progress.tick()


def printed(stream: io.StringIO) -> list[list[str]]:
    """What was printed after the line on the phase that began."""
    first, *others = [line.split() for line in stream.getvalue().splitlines()]
    assert first == ["deployment", "begins"]
    return others


def make_network(account: StackAccount) -> None:
    for logical_id, status, kind in (
        ("prod-network", "REVIEW_IN_PROGRESS", STACK),
        ("prod-network", "CREATE_IN_PROGRESS", STACK),
        ("Vpc8378EB38", "CREATE_IN_PROGRESS", "AWS::EC2::VPC"),
        ("Vpc8378EB38", "CREATE_COMPLETE", "AWS::EC2::VPC"),
        ("Custom8378EB38", "CREATE_COMPLETE", "Custom::A-B_c@d"),
        ("prod-network", "CREATE_COMPLETE", STACK),
    ):
        account.happens("prod-network", logical_id, status, kind)


def fail_eks(account: StackAccount) -> None:
    account.happens("prod-eks", "prod-eks", "CREATE_IN_PROGRESS", STACK, "User Initiated")
    account.happens("prod-eks", "C9EE0", "CREATE_IN_PROGRESS", "AWS::EKS::Cluster")
    account.happens("prod-eks", "C9EE0", "CREATE_FAILED", "AWS::EKS::Cluster", "1.19 is not supported")
    account.happens("prod-eks", "RoleA", "CREATE_FAILED", "AWS::IAM::Role", "Resource creation cancelled")
    account.happens("prod-eks", "prod-eks", "ROLLBACK_IN_PROGRESS", STACK, "Failed: [C9EE0]")
    account.happens("prod-eks", "C9EE0", "DELETE_COMPLETE", "AWS::EKS::Cluster")
    account.happens("prod-eks", "prod-eks", "ROLLBACK_COMPLETE", STACK)


def test_a_line_for_each_stack_that_is_done() -> None:
    progress = followed(account := StackAccount("prod-storage"), stream := io.StringIO(), Clock())
    progress.line("✨  Synthesis time: 4.71s")
    make_network(account)
    progress.end()
    assert printed(stream) == [["synthesis", "4.7", "s"], ["prod-network", "2", "resources", "0:04"]]
    assert progress.touched == {"prod-network"}
    assert account.asked == ["prod-network"]


def test_what_was_handed_out_does_not_come_again() -> None:
    account = StackAccount("prod-eks")
    events = account.events
    assert events() == []
    account.happens("prod-eks", "prod-eks", "UPDATE_IN_PROGRESS", STACK)
    account.happens("prod-eks", "A", "UPDATE_IN_PROGRESS", "AWS::EKS::Addon")
    assert [event.logical_id for event in events()] == ["prod-eks", "A"]
    assert events() == []
    account.happens("prod-eks", "A", "UPDATE_COMPLETE", "AWS::EKS::Addon")
    account.happens("prod-eks", "prod-eks", "UPDATE_COMPLETE", STACK)
    assert [(event.logical_id, event.status) for event in events()] == [
        ("A", "UPDATE_COMPLETE"),
        ("prod-eks", "UPDATE_COMPLETE"),
    ]
    account.asked.clear()
    assert events() == []
    assert account.asked == []


def test_an_operation_between_two_looks_is_seen_and_no_earlier_one() -> None:
    progress = followed(account := StackAccount("prod-eks"), stream := io.StringIO(), Clock())
    for logical_id, status in (("prod-eks", "IN_PROGRESS"), ("A", "COMPLETE"), ("prod-eks", "COMPLETE")):
        account.happens("prod-eks", logical_id, f"UPDATE_{status}", STACK if logical_id != "A" else "AWS::EKS::Addon")
    progress.end()
    assert printed(stream) == [["prod-eks", "1", "resource", "0:02"]]


def test_a_deleted_stack_is_followed_to_its_end() -> None:
    progress = followed(account := StackAccount("prod-eks"), stream := io.StringIO(), Clock())
    for logical_id, status in (("prod-eks", "IN_PROGRESS"), ("A", "COMPLETE"), ("prod-eks", "COMPLETE")):
        account.happens("prod-eks", logical_id, f"DELETE_{status}", STACK if logical_id != "A" else "AWS::EKS::Addon")
    progress.end()
    assert printed(stream) == [["prod-eks", "deleted", "0:02"]]


def test_failures_are_the_causes_each_once() -> None:
    progress = followed(account := StackAccount(), stream := io.StringIO(), clock := Clock())
    fail_eks(account)
    after_a_while(progress, clock)
    progress.line("prod-eks |  0/9 | 11:20:02 AM | CREATE_FAILED | AWS::EKS::Cluster | prod/eks/Cluster (C9EE0) no")
    progress.line("ToolkitError: Resource updates failed\n")
    progress.end()
    assert [(event.stack, event.logical_id, event.reason) for event in progress.failures] == [
        ("prod-eks", "C9EE0", "1.19 is not supported")
    ]
    assert [event.reason for event in progress.turned_back] == ["Failed: [C9EE0]"]
    assert printed(stream) == [["prod-eks", "failed", "0:06"]]
    assert list(progress.last) == ["ToolkitError: Resource updates failed"]


def test_a_failure_in_a_nested_stack_comes_before_that_of_its_holder() -> None:
    progress = followed(account := StackAccount("prod-governance"), stream := io.StringIO(), Clock())
    inner = "prod-governance-Teams0-1ABC"
    account.happens("prod-governance", "prod-governance", "UPDATE_IN_PROGRESS", STACK)
    account.happens("prod-governance", "Teams0", "CREATE_IN_PROGRESS", STACK)
    account.happens(inner, inner, "CREATE_IN_PROGRESS", STACK)
    account.happens(inner, "Quota", "CREATE_FAILED", "AWS::SageMaker::ComputeQuota", "no such team")
    account.happens(inner, inner, "CREATE_FAILED", STACK, "The following resource(s) failed to create: [Quota].")
    account.happens("prod-governance", "Teams0", "CREATE_FAILED", STACK, f"Embedded stack {inner} was not created")
    account.happens("prod-governance", "prod-governance", "UPDATE_ROLLBACK_COMPLETE", STACK)
    progress.end()
    assert [event.logical_id for event in progress.failures] == ["Quota", "Teams0"]
    assert progress.touched == {"prod-governance"}
    assert printed(stream) == [["prod-governance", "failed", "0:06"]]


@pytest.mark.parametrize("width", [40, 80, 120])
def test_a_terminal_sees_a_bar_for_each_stack_and_nothing_of_it_stays(width: int) -> None:
    account, clock = StackAccount("prod-network"), Clock()
    with screen(width, NO_COLOR="1") as terminal:
        progress = Progress(terminal, clock)
        progress.watch(account.events, {"prod-eks": 8}.get)
        progress.begin("deploy")
        assert terminal.seen(width) == ["  0:00  deployment"]
        progress.line("✨  Synthesis time: 4.71s")
        assert [line.split() for line in terminal.seen(width)] == [["synthesis", "4.7", "s"]]
        account.happens("prod-network", "prod-network", "UPDATE_IN_PROGRESS", STACK)
        account.happens("prod-network", "Vpc", "UPDATE_IN_PROGRESS", "AWS::EC2::VPC" * 9)
        account.happens("prod-eks", "prod-eks", "CREATE_IN_PROGRESS", STACK)
        account.happens("prod-eks", "RoleA", "CREATE_COMPLETE", "AWS::IAM::Role")
        account.happens("prod-eks", "C9EE0", "CREATE_IN_PROGRESS", "AWS::EKS::Cluster")
        for _ in range(12):
            after_a_while(progress, clock)
        lines = terminal.seen(width)
        assert [line.split()[:2] for line in lines[1:]] == [["1:00", "deployment"]] + [
            [name, lines[at].split()[1]] for at, name in ((2, "prod-network"), (3, "prod-eks"))
        ]
        assert max(map(len, lines)) <= width
        if width >= 80:
            # What a new stack will have is known; what an update does to one only CloudFormation knows.
            assert "0 done" in lines[2]
            assert re.search("1 of 8 +AWS::EKS::Cluster", lines[3])
            assert lines[2].endswith("…")
            assert lines[3].count("━") < 5
        account.happens("prod-eks", "prod-eks", "CREATE_COMPLETE", STACK)
        account.happens("prod-network", "prod-network", "UPDATE_COMPLETE", STACK)
        after_a_while(progress, clock)
        progress.end()
        progress.close()
    # A line for each stack, and nothing of what moved.
    assert " ".join(" ".join(terminal.seen(width)).split()) == (
        "synthesis 4.7 s prod-eks 1 resource 0:03 prod-network 0 resources 0:06"
    )


COMMANDS = [("bootstrap", "bootstrap"), ("synth", "synthesis"), ("deploy", "deployment"), ("destroy", "deletion")]


@pytest.mark.parametrize(("command", "phase"), COMMANDS)
def test_the_phase_is_that_of_the_command(command: str, phase: str) -> None:
    Progress(stream := io.StringIO(), Clock()).begin(command)
    assert stream.getvalue().split() == [phase, "begins"]


def test_cloudformation_is_asked_every_few_seconds_only() -> None:
    reads: list[int] = []
    progress = Progress(io.StringIO(), clock := Clock())
    progress.watch(lambda: reads.append(1) or [])
    progress.begin("deploy")
    for _ in range(12):
        clock.now += 1
        progress.tick()
    assert len(reads) == 3


def test_who_may_not_look_is_told_once_and_the_deployment_goes_on() -> None:
    def denied() -> list[dict[str, Any]]:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "not you"}}, "DescribeStacks")

    progress = Progress(stream := io.StringIO(), Clock())
    progress.watch(StackEvents(cast(Account, StackAccount()), denied))
    progress.begin("deploy")
    progress.end()
    assert stream.getvalue().count("cannot be seen: ") == 1
    assert "not you" in stream.getvalue()


def test_a_log_shows_that_it_lives_often_at_first_and_then_every_half_minute() -> None:
    progress = followed(account := StackAccount(), stream := io.StringIO(), clock := Clock())
    account.happens("prod-eks", "prod-eks", "CREATE_IN_PROGRESS", STACK)
    times: list[float] = []
    for _ in range(3600):
        clock.now += 1
        lines = stream.getvalue().count("prod-eks")
        progress.tick()
        times += [clock.now] * (stream.getvalue().count("prod-eks") - lines)
    silences = [later - earlier for earlier, later in pairwise([0.0, *times])]
    assert times[:6] == [5, 10, 15, 20, 25, 30]
    assert silences == sorted(silences)
    assert silences[-100:] == [30] * 100
    assert len(times) < 140, "an hour does not fill a log"
