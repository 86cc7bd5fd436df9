"""The live view: what it shows of a cluster, what it names as unseen, and how many calls it makes."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import boto3
import pytest

from live_account import ENVIRONMENT, Cluster, Sagemaker
from loopback import Call, Reply, Server, serving
from podwright.config.catalog.drills import HEALTH_LABEL
from podwright.config.settings.environment import Environment
from podwright.operations.aws.account import Account
from podwright.operations.aws.quarantines import Quarantine
from podwright.operations.kubernetes.kubectl import Kubectl
from podwright.operations.live import reader
from podwright.operations.live.draw import draw
from podwright.operations.live.reader import Live
from podwright.operations.live.watch import watch
from screens import text_of

USUAL = Sagemaker()


@pytest.fixture(scope="module")
def client() -> Iterator[tuple[Server, Any]]:
    """SageMaker on loopback, and a real client of it, which takes long to make."""
    with serving(USUAL) as server:
        session = boto3.Session("key", "secret", region_name="us-west-2")
        yield server, session.client("sagemaker", endpoint_url=server.url)


@pytest.fixture
def server(client: tuple[Server, Any]) -> Server:
    client[0].answer = USUAL
    client[0].calls.clear()
    return client[0]


@pytest.fixture
def live(client: tuple[Server, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Live]:
    def make(cluster: Cluster | None) -> Live:
        monkeypatch.setattr(reader, "way", lambda *_: cast(Kubectl, cluster))
        out = Quarantine(
            "i-00000000000000006", "ECC", "arn:aws:iam::111122223333:role/ada", "2026-11-21T10:00:00+00:00"
        )
        monkeypatch.setattr(reader, "quarantines", lambda *_: {out.node: out})
        account = Account("111122223333", "us-west-2", None, {})
        account._clients["sagemaker"] = client[1]
        return Live(ENVIRONMENT, account, tmp_path)

    return make


def shown(actual: dict[str, Any]) -> str:
    return text_of(draw(actual))


def test_a_look(live: Callable[..., Live], server: Server) -> None:
    cluster = Cluster()
    report = live(cluster).read()
    assert report["unseen"] == {}
    (group,) = report["groups"]
    assert group["statuses"] == {"Failure": 1, "Running": 149}
    rows = [(row["id"][-1], row["status"], row["health"], row["fault"], row["degraded"]) for row in report["unhealthy"]]
    assert rows == [
        ("6", "Running", "", "", ""),
        ("7", "Failure", "", "", ""),
        ("8", "Running", "UnschedulablePendingReplacement", "Xid", ""),
        ("9", "Running", "", "", "clock.ssh"),
    ]
    assert report["plans"][0]["available"] == 1
    assert report["plans"][0]["until"] == "2100-01-01T00:00+00:00"
    guests, research = report["teams"]
    assert (research["used"], research["borrowed"], research["waiting"]) == (
        {"cpu": 19584, "nvidia.com/gpu": 816},
        {"nvidia.com/gpu": 16},
        2,
    )
    assert research["guaranteed"] == {"cpu": 19200, "nvidia.com/gpu": 800}
    assert (guests["quota"], guests["used"]) == (None, {})
    assert f"--selector={HEALTH_LABEL}!=Schedulable" in cluster.asked, "all nodes would be many megabytes"
    text = shown(report)
    for words in (
        "149 Running",
        "is being replaced",
        "816 GPU",
        "until 2100-01-01",
        "6 API calls",
        "set-up failed: clock.ssh",
        "in quarantine since 2026-11-21T10:00:00+00:00 by ada: ECC",
    ):
        assert words in text


def test_quotas_above_what_takes_work_are_shown(live: Callable[..., Live], server: Server) -> None:
    data = ENVIRONMENT.model_dump(exclude_unset=True)
    eye = live(Cluster())
    assert eye.read()["quotas_beyond"] == []
    data["governance"]["teams"]["research"]["quota"] = {"h200": 149}
    eye._environment = Environment.model_validate(data)
    report = eye.read()
    # Of 150 nodes one has failed, one is to be replaced, and one is in quarantine.
    assert [quota["flavor"] for quota in report["quotas_beyond"]] == ["ml.p5en.48xlarge"]
    assert "147 instances have 1,176 GPUs" in shown(report)


def test_each_look_says_what_it_cost(live: Callable[..., Live], server: Server) -> None:
    eye = live(None)
    for _ in range(2):
        server.calls.clear()
        cost = eye.read()["cost"]
        assert cost["calls"] == len(server.calls) == 6
        assert cost["operations"]["ListClusterNodes"] == 2, "a page for each hundred nodes"


def test_what_nobody_may_see_is_named_and_the_rest_shown(live: Callable[..., Live], server: Server) -> None:
    denied = ("ListClusterEvents", "DescribeTrainingPlan", "ListComputeQuotas")

    def deny(call: Call) -> Reply:
        if call.headers["X-Amz-Target"].endswith(denied):
            return Reply(400, json.dumps({"__type": "AccessDeniedException", "message": "no"}).encode())
        return USUAL(call)

    server.answer = deny
    cluster = Cluster()
    cluster.refuses = True
    report = live(cluster).read()
    assert report["unseen"] == {
        "events": "AccessDeniedException on ListClusterEvents",
        "node health": "Unauthorized",
        "queues": "Unauthorized",
        "set-ups of nodes": "Unauthorized",
        "quotas": "AccessDeniedException on ListComputeQuotas",
        "training plans": "AccessDeniedException on DescribeTrainingPlan",
    }
    assert report["groups"][0]["statuses"]["Running"] == 149
    assert [row["used"] for row in report["teams"]] == [None, None]
    assert "not seen: events: AccessDeniedException on ListClusterEvents" in shown(report)
    assert "`podwright connect prod` opens one" in live(None).read()["unseen"]["node health"]


def test_a_cluster_that_is_not_there(live: Callable[..., Live], server: Server) -> None:
    server.answer = lambda _: Reply(400, json.dumps({"__type": "ResourceNotFound", "message": "no"}).encode())
    report = live(None).read()
    assert report["cluster"] is None
    assert "there is no HyperPod cluster" in shown(report)
    server.answer = lambda _: Reply(400, json.dumps({"__type": "AccessDeniedException", "message": "no"}).encode())
    assert "not seen: AccessDeniedException on DescribeCluster" in shown(live(None).read())


def test_watching_without_a_terminal(
    live: Callable[..., Live], server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    pauses: list[float] = []
    watch(live(None), 5, times=2, as_json=True, sleep=pauses.append)
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["cluster"]["status"] for line in lines] == ["InService"] * 2
    assert pauses == [5]

    def stop(_: float) -> None:
        raise KeyboardInterrupt

    watch(live(None), 5, sleep=stop)
    assert "149 Running" in capsys.readouterr().out
