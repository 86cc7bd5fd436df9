"""The function that tells of a cluster's events: what it says, what it asks, and what it holds back."""

import io
import itertools
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from modelled_client import ModelledClient
from podwright.constructs.observability.cluster_events.handler import index
from podwright.constructs.observability.cluster_events.handler.memory import MOST_IN_AN_HOUR

ARN = "arn:aws:sagemaker:us-west-2:111122223333:cluster/a1b2c3d4e5f6"
NO_CAPACITY = "We currently do not have sufficient capacity to launch new ml.p5.48xlarge instances. Please try again."


class EventServices:
    """The function with a table of moto's; SageMaker answers and SNS keeps what tests decide."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, dynamodb: Any) -> None:
        self.now = 1_780_000_000.0
        self.mails: list[dict[str, str]] = []
        self.chats: list[dict[str, Any]] = []
        self.asked: list[dict[str, str]] = []
        self.answers: list[dict[str, Any] | Exception] = []
        self.broken = 0
        self.objects: dict[str, bytes] = {}
        self.marked: list[dict[str, str]] = []
        self.marks: dict[str, str] = {}
        self.there = True
        self._count = 0
        self._events: dict[str, dict[str, Any]] = {}
        monkeypatch.setattr(index.boto3, "Session", lambda: self)
        monkeypatch.setattr(index.time, "time", lambda: self.now)
        monkeypatch.setattr(index.time, "sleep", lambda seconds: None)
        for name, value in {"TABLE": "memory", "MAIL_TOPIC": "mail", "CHAT_TOPIC": "chat"}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("ENVIRONMENT", "prod")
        self._dynamodb = dynamodb

    def resource(self, service: str, config: object) -> Any:
        assert service == "dynamodb"
        return self._dynamodb

    def client(self, service: str, config: object = None) -> ModelledClient:
        return ModelledClient(service, self)

    def get_object(self, Bucket: str, Key: str) -> dict[str, Any]:
        if Key not in self.objects:
            raise ClientError({"Error": {"Code": "NoSuchKey"}}, "GetObject")
        return {"Body": io.BytesIO(self.objects[Key])}

    def put_object(self, Bucket: str, Key: str, Body: bytes, ContentType: str) -> None:
        self.objects[Key] = Body

    def invoke(self, FunctionName: str, Payload: bytes) -> dict[str, Any]:
        self.marked.append(json.loads(Payload))
        return self.marks | {"Payload": io.BytesIO(json.dumps({"marked": self.there}).encode())}

    def describe_cluster_event(self, **request: str) -> dict[str, Any]:
        self.asked.append(request)
        answer = self.answers.pop(0) if self.answers else {}
        if isinstance(answer, Exception):
            raise answer
        return answer

    def describe_cluster(self, **request: str) -> dict[str, Any]:
        return self.describe_cluster_event(**request)

    def publish(self, TopicArn: str, Message: str, Subject: str = "") -> None:
        if self.broken:
            self.broken -= 1
            raise ClientError({"Error": {"Code": "InternalError"}}, "Publish")
        if TopicArn == "mail":
            self.mails.append({"subject": Subject, "text": Message})
        else:
            self.chats.append(json.loads(Message))

    def event(self, kind: str, detail: dict[str, Any], event_id: str = "") -> dict[str, Any]:
        """An event of now; the same again for an id that was given before."""
        self._count += 1
        event_id = event_id or f"event-{self._count}"
        time = f"{datetime.fromtimestamp(self.now, UTC):%Y-%m-%dT%H:%M:%SZ}"
        return self._events.setdefault(event_id, {"id": event_id, "time": time, "detail-type": kind, "detail": detail})

    def send(self, kind: str, detail: dict[str, Any], event_id: str = "") -> None:
        index.handler(self.event(kind, detail, event_id), None)


@pytest.fixture(scope="module")
def dynamodb() -> Iterator[Any]:
    with mock_aws():
        resource: Any = boto3.Session("key", "secret", region_name="us-west-2").resource("dynamodb")
        resource.create_table(
            TableName="memory",
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": "Key", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "Key", "KeyType": "HASH"}],
        )
        yield resource


@pytest.fixture
def services(monkeypatch: pytest.MonkeyPatch, dynamodb: Any) -> EventServices:
    table = dynamodb.Table("memory")
    for item in table.scan()["Items"]:
        table.delete_item(Key={"Key": item["Key"]})
    return EventServices(monkeypatch, dynamodb)


def failure(metadata: dict[str, Any] | None = None, **record: str) -> dict[str, Any]:
    """An event of an instance that could not be made."""
    return {
        "EventDetails": {
            "EventId": "83ea0bb5-be77-45e8-a458-0a87f778a205",
            "ClusterArn": ARN,
            "ClusterName": "training-prod",
            "InstanceGroupName": "h200",
            "InstanceId": "i-0391f86fa0fe0d465",
            "ResourceType": "Instance",
            "EventTime": 1748794825350,
            "EventLevel": "Error",
            "Description": "Instance creation in Cluster training-prod and InstanceGroup h200 failed",
            "EventDetails": {"EventMetadata": metadata},
            **record,
        }
    }


def health(status: str, instance: str = "i-0391f86fa0fe0d465") -> dict[str, Any]:
    """An event of a node's health."""
    return {
        "ClusterName": "training-prod",
        "ClusterArn": ARN,
        "InstanceId": instance,
        "Tags": {},
        "HealthSummary": {
            "HealthStatus": status,
            "HealthStatusReason": "HMA has detected fault type NvidiaErrorTerminate on this node and is unhealthy.",
            "RepairAction": "Replace",
            "Recommendation": "None",
        },
    }


EVENT = "SageMaker HyperPod Cluster Event"
HEALTH = "SageMaker HyperPod Cluster Node Health Event"
STATE = "SageMaker HyperPod Cluster State Change"


def described(message: str) -> dict[str, Any]:
    return {"EventDetails": {"EventDetails": {"EventMetadata": {"Instance": {"FailureMessage": message}}}}}


def test_what_failed_is_asked_for_when_the_event_lacks_it(services: EventServices) -> None:
    # EventBridge's copy has a null where the metadata should be, and the record itself comes a little later.
    services.answers = [{}, described(NO_CAPACITY)]
    services.send(EVENT, failure({"Instance": None}))
    assert len(services.asked) == 2
    assert services.asked[0] == {"ClusterName": "training-prod", "EventId": "83ea0bb5-be77-45e8-a458-0a87f778a205"}
    assert NO_CAPACITY in services.mails[0]["text"]
    assert NO_CAPACITY in services.chats[0]["content"]["description"]


def test_what_the_event_says_is_not_asked_for(services: EventServices) -> None:
    services.send(EVENT, failure({"Instance": {"FailureMessage": NO_CAPACITY}}))
    assert not services.asked
    assert "At group h200 instance i-0391f86fa0fe0d465." in services.mails[0]["text"]


def test_people_hear_of_it_when_nobody_can_be_asked(services: EventServices) -> None:
    refused = ClientError(
        {"Error": {"Code": "ValidationException", "Message": "not continuous"}}, "DescribeClusterEvent"
    )
    services.answers = [refused]
    services.send(EVENT, failure(None))
    assert "Instance creation in Cluster training-prod and InstanceGroup h200 failed." in services.mails[0]["text"]


def test_the_shape_that_chat_shows(services: EventServices) -> None:
    services.send(EVENT, failure({"Instance": {"FailureMessage": NO_CAPACITY}}))
    (chat,) = services.chats
    assert chat["version"] == "1.0"
    assert chat["source"] == "custom"
    assert chat["content"]["textType"] == "client-markdown"
    assert chat["content"]["title"].startswith("CRITICAL: Instance of training-prod, group h200: ")
    assert chat["content"]["nextSteps"] == ["Find the cause: `podwright doctor training-prod`"]
    assert len(services.mails[0]["subject"]) <= 100
    assert services.mails[0]["subject"].isascii()


def test_without_a_channel_only_mail_is_sent(services: EventServices, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CHAT_TOPIC")
    services.send(HEALTH, health("Unhealthy"))
    assert len(services.mails) == 1
    assert not services.chats


def test_the_same_failure_of_many_instances_is_one_notice_an_hour(services: EventServices) -> None:
    for number in range(12):
        services.send(EVENT, failure({"Instance": {"FailureMessage": NO_CAPACITY}}, InstanceId=f"i-{number:017x}"))
    assert len(services.mails) == 1
    services.now += 3600
    services.send(EVENT, failure({"Instance": {"FailureMessage": NO_CAPACITY}}))
    assert len(services.mails) == 2
    assert "11 more of this kind were held back since the last one." in services.mails[1]["text"]


def test_another_group_or_cause_is_another_notice(services: EventServices) -> None:
    services.send(EVENT, failure({"Instance": {"FailureMessage": NO_CAPACITY}}))
    services.send(EVENT, failure({"Instance": {"FailureMessage": NO_CAPACITY}}, InstanceGroupName="burst"))
    services.send(EVENT, failure({"Instance": {"FailureMessage": "Lifecycle scripts did not run successfully."}}))
    assert len(services.mails) == 3


def test_no_more_than_so_many_an_hour(services: EventServices) -> None:
    for number in range(MOST_IN_AN_HOUR + 4):
        services.send(HEALTH, health("Unhealthy", f"i-{number:017x}"))
    assert len(services.mails) == MOST_IN_AN_HOUR + 1
    assert "more are held back until it is over" in services.mails[-1]["text"]
    assert "held back" not in services.mails[-2]["text"]
    services.now += 3600
    services.send(HEALTH, health("Unhealthy", "i-0ffffffffffffffff"))
    assert len(services.mails) == MOST_IN_AN_HOUR + 2


def test_an_event_that_could_not_be_told_is_told_when_lambda_tries_again(services: EventServices) -> None:
    services.broken = 1
    detail = failure({"Instance": {"FailureMessage": NO_CAPACITY}})
    with pytest.raises(ClientError):
        services.send(EVENT, detail, "the-event")
    services.send(EVENT, detail, "the-event")
    assert len(services.mails) == 1


def test_a_node_that_is_well_again_is_told_of_only_after_its_illness(services: EventServices) -> None:
    services.send(HEALTH, health("Healthy"))
    assert not services.mails
    services.send(HEALTH, health("Unhealthy"))
    services.send(HEALTH, health("Healthy"))
    services.send(HEALTH, health("Healthy"))
    assert [mail["subject"].split(":")[0] for mail in services.mails] == ["WARNING", "RESOLVED"]
    assert services.chats[0]["metadata"]["threadId"] == services.chats[1]["metadata"]["threadId"]
    assert "HyperPod repairs it: Replace." in services.mails[0]["text"]


@pytest.mark.parametrize(("status", "messages"), [("Failed", 1), ("RollingBack", 1), ("InService", 0), ("Updating", 0)])
def test_a_state_that_somebody_has_to_hear_of(services: EventServices, status: str, messages: int) -> None:
    services.answers = [{"FailureMessage": "Subnet has no free addresses"}]
    groups = [{"InstanceGroupName": "h200", "Status": "Failed", "CurrentCount": 0, "TargetCount": 16}]
    services.send(STATE, {"ClusterName": "training-prod", "ClusterStatus": status, "InstanceGroups": groups})
    assert len(services.mails) == messages
    if messages:
        assert "Subnet has no free addresses." in services.mails[0]["text"]
        assert "Instance group h200 is Failed with 0 of 16 instances." in services.mails[0]["text"]


@pytest.mark.parametrize(
    "kind_and_detail", [(EVENT, failure(None, EventLevel="Info")), ("SageMaker Training Job State Change", {})]
)
def test_nobody_hears_of_the_rest(services: EventServices, kind_and_detail: tuple[str, dict[str, Any]]) -> None:
    services.send(*kind_and_detail)
    assert not services.mails


RULE = {"faults": 3, "within_hours": 24, "marker": "marker", "eks_cluster": "prod-eks"}
RULE |= {"bucket": "sagemaker-prod", "prefix": "prod/quarantine"}
INSTANCE = "i-0391f86fa0fe0d465"
RECORD = f"prod/quarantine/{INSTANCE}.json"


@pytest.fixture
def rule(services: EventServices, monkeypatch: pytest.MonkeyPatch) -> EventServices:
    """The function with a rule that takes a node out of work at its third fault within a day."""
    monkeypatch.setenv("QUARANTINE", json.dumps(RULE))
    return services


def fault(action: str = "Reboot") -> dict[str, Any]:
    detail = health("Unhealthy", INSTANCE)
    return detail | {"HealthSummary": detail["HealthSummary"] | {"RepairAction": action}}


def fail(services: EventServices, times: int, *, apart: int = 3600, action: str = "Reboot", event: str = "") -> None:
    """So many faults, each of them over before the next."""
    for number in range(times):
        services.now += apart
        services.send(HEALTH, fault(action), event if number + 1 == times else "")
        services.send(HEALTH, health("Healthy", INSTANCE))


def test_a_node_that_fails_again_and_again_takes_no_more_work(rule: EventServices) -> None:
    fail(rule, 2)
    assert (rule.marked, rule.objects) == ([], {})
    fail(rule, 1)
    reason = "3 faults within 24 hours, the last: HMA has detected fault type NvidiaErrorTerminate on this node and is "
    (node,) = rule.marked
    assert (node["eks_cluster"], node["instance"], node["by"]) == ("prod-eks", INSTANCE, "rule of prod")
    assert node["reason"] == f"{reason}unhealthy"
    retained = json.loads(rule.objects[RECORD])
    assert retained == {"node": INSTANCE, **{key: node[key] for key in ("reason", "by", "since")}}
    (mail,) = [mail for mail in rule.mails if "quarantine" in mail["subject"]]
    assert mail["subject"].startswith(f"CRITICAL: Instance {INSTANCE} of training-prod fails again and again")
    assert f"podwright node release prod {INSTANCE}" in mail["text"]
    fail(rule, 2)
    assert len(rule.marked) == 1, "it is in quarantine already"


@pytest.mark.parametrize(("apart", "action"), [(13 * 3600, "Reboot"), (3600, "Replace")])
def test_faults_far_apart_and_those_that_bring_another_machine_do_not_count(
    rule: EventServices, apart: int, action: str
) -> None:
    fail(rule, 6, apart=apart, action=action)
    assert rule.marked == []


def test_one_fault_that_is_told_of_often_is_one(rule: EventServices) -> None:
    for _ in range(5):
        rule.now += 60
        rule.send(HEALTH, fault())
    assert rule.marked == []
    rule.now += 700
    for _ in range(2):
        rule.send(HEALTH, fault())
        rule.now += 700
    assert len(rule.marked) == 1, "nobody said that it was healthy between, and much time went by"


def test_what_failed_on_the_way_is_done_when_lambda_tries_again(rule: EventServices) -> None:
    fail(rule, 2)
    rule.marks = {"FunctionError": "Unhandled"}
    with pytest.raises(RuntimeError, match="could not be marked"):
        fail(rule, 1, event="third")
    assert rule.objects == {}
    rule.marks, rule.broken = {}, 1
    with pytest.raises(ClientError):
        rule.send(HEALTH, fault(), "third")
    rule.send(HEALTH, fault(), "third")
    assert list(rule.objects) == [RECORD]
    assert sum("quarantine" in mail["subject"] for mail in rule.mails) == 1


def test_the_order_in_which_events_arrive_does_not_matter(rule: EventServices, monkeypatch: pytest.MonkeyPatch) -> None:
    """EventBridge keeps no order, and a function for each event runs at once."""
    monkeypatch.setenv("QUARANTINE", json.dumps(RULE | {"faults": 2}))
    for number, order in enumerate(itertools.permutations(range(3))):
        instance, events = f"i-{number:017}", list[dict[str, Any]]()
        rule.marked.clear()
        for status in ["Unhealthy", "Healthy", "Unhealthy"]:
            rule.now += 5
            summary = health(status, instance)["HealthSummary"] | {"RepairAction": "Reboot"}
            events.append(rule.event(HEALTH, health(status, instance) | {"HealthSummary": summary}))
        for position in order:
            index.handler(events[position], None)
        assert [node["reason"].partition(" within")[0] for node in rule.marked] == ["2 faults"], order


@pytest.mark.parametrize("healthy_first", [True, False])
def test_events_of_one_second_are_two_faults_if_the_node_was_healthy_between(
    rule: EventServices, monkeypatch: pytest.MonkeyPatch, healthy_first: bool
) -> None:
    monkeypatch.setenv("QUARANTINE", json.dumps(RULE | {"faults": 2}))
    rule.send(HEALTH, fault())
    rule.now += 7
    details = [health("Healthy", INSTANCE), fault()]
    for detail in details if healthy_first else reversed(details):
        rule.send(HEALTH, detail)
    assert len(rule.marked) == 1


def test_a_node_that_is_gone_is_not_called_quarantined(rule: EventServices) -> None:
    rule.there = False
    fail(rule, 3)
    assert rule.objects == {}
    assert not any("quarantine" in mail["subject"] for mail in rule.mails)


def test_one_that_was_released_goes_again_at_its_next_fault(rule: EventServices) -> None:
    fail(rule, 3)
    del rule.objects[RECORD]
    fail(rule, 1)
    assert len(rule.marked) == 2


def test_with_slurm_people_are_asked_to_do_it(rule: EventServices, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUARANTINE", json.dumps(RULE | {"marker": "", "eks_cluster": ""}))
    fail(rule, 3)
    (mail,) = [mail for mail in rule.mails if "again and again" in mail["subject"]]
    assert f"podwright node quarantine prod {INSTANCE} --reason" in mail["text"]
    assert (rule.marked, rule.objects) == ([], {})
