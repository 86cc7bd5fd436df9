"""A real Alertmanager with our definition: what it publishes to SNS, once for many alerts and once when they end.

Mail gets sentences; chat gets JSON of the shape that the chat service shows (Amazon Q Developer in chat applications
Administrator Guide, "Custom notifications", 2026-11), whatever stands in an alert.
"""

import json
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from ruamel.yaml import YAML

from listening import free_port
from loopback import Call, Reply, Server, serving
from needs import needs_programs
from podwright.planning.monitoring.alerts.manager import definition
from waiting import CEILING_SECONDS, until

ACCOUNT = "arn:aws:sns:us-west-2:111122223333"
TOPICS = {"mail": f"{ACCOUNT}:mail", "chat": f"{ACCOUNT}:chat"}
_ANSWER = b"<PublishResponse><PublishResult><MessageId>1</MessageId></PublishResult></PublishResponse>"
_EXECUTABLE = shutil.which("prometheus-alertmanager")


def publishes(server: Server, kind: str) -> list[dict[str, str]]:
    """What was published to a topic."""
    sent = [{name: values[0] for name, values in parse_qs(call.body.decode()).items()} for call in server.calls]
    return [item for item in sent if item["TopicArn"] == TOPICS[kind]]


def alert(gpu: int, *, over: bool = False, summary: str = "") -> dict[str, Any]:
    """An alert. The manager sets the times of one that fires by its own clock, so a late request changes nothing."""
    return {
        "labels": {"alertname": "GpuXid", "cluster_name": "training-prod", "severity": "critical", "gpu": str(gpu)},
        "annotations": {"summary": summary or f"GPU {gpu} reported Xid 79", "runbook": "podwright explain GpuXid"},
    } | ({"endsAt": datetime.now(UTC).isoformat()} if over else {})


@contextmanager
def manager(folder: Path, sns: Server) -> Iterator[str]:
    """An Alertmanager with our definition, which publishes to `sns` and does not wait as long as in earnest."""
    made = YAML(typ="safe").load(definition(TOPICS, "us-west-2"))
    config = YAML(typ="safe").load(made["alertmanager_config"])
    for name, text in made["template_files"].items():
        (folder / name).write_text(text)
    for route in (config["route"], *config["route"]["routes"]):
        route |= {"group_wait": "2s", "group_interval": "300ms"}
    for receiver in config["receivers"][0]["sns_configs"]:
        # The managed service sets the address by itself, and has credentials of its own.
        receiver["api_url"] = sns.url
        receiver["sigv4"] |= {"access_key": "key", "secret_key": "secret"}
    (folder / "alertmanager.yml").write_text(json.dumps(config))
    address = f"127.0.0.1:{free_port()}"
    flags = [f"--config.file={folder}/alertmanager.yml", f"--storage.path={folder}/data", "--cluster.listen-address="]
    command = [str(_EXECUTABLE), *flags, f"--web.listen-address={address}", "--log.level=error"]
    with subprocess.Popen(command, cwd=folder) as process:
        try:
            # Until it listens.
            post(f"http://{address}", [])
            yield f"http://{address}"
        finally:
            process.terminate()


def post(url: str, alerts: list[dict[str, Any]]) -> None:
    """Hand alerts over, as a rule's evaluation does; the manager needs a moment to listen."""
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}/api/v2/alerts", json.dumps(alerts).encode(), headers)

    def is_accepted() -> bool:
        with suppress(urllib.error.URLError), urllib.request.urlopen(request, timeout=CEILING_SECONDS):
            return True
        return False

    until(is_accepted, "the Alertmanager accepts alerts")


def wait_for(server: Server, kind: str, count: int) -> list[dict[str, str]]:
    """Return the messages for a topic once there are `count`."""

    def messages() -> list[dict[str, str]]:
        return publishes(server, kind)

    until(lambda: len(messages()) >= count, lambda: f"{count} messages for {kind} expected: {messages()}")
    return messages()


@needs_programs("prometheus-alertmanager", package="prometheus-alertmanager")
def test_alerts_reach_mail_and_chat(tmp_path: Path) -> None:
    def answer(call: Call) -> Reply:
        return Reply(body=_ANSWER, headers={"Content-Type": "text/xml"})

    with serving(answer) as sns, manager(tmp_path, sns) as url:
        strange = 'GPU 3 of "a\\b"\nreported Xid 79'
        post(url, [alert(number) for number in range(12)] + [alert(99, summary=strange)])
        (chat,) = wait_for(sns, "chat", 1)
        (mail,) = wait_for(sns, "mail", 1)
        # The same alerts once more: nothing is said again within hours.
        post(url, [alert(number) for number in range(12)])
        post(url, [alert(number, over=True) for number in range(12)] + [alert(99, over=True, summary=strange)])
        # The manager may take some of the alerts over before the others, and tells about those first.
        over = until(lambda: [item for item in publishes(sns, "chat") if "RESOLVED" in item["Message"]], "an end")

    assert mail["Subject"] == "CRITICAL: GpuXid in training-prod"
    assert "GPU 0 reported Xid 79." in mail["Message"]
    assert "There are 13 in all." in mail["Message"]
    assert mail["Message"].rstrip().endswith("podwright explain GpuXid")
    message = json.loads(chat["Message"])
    assert message["version"] == "1.0"
    assert message["source"] == "custom"
    assert message["content"]["textType"] == "client-markdown"
    assert message["content"]["title"] == "CRITICAL: GpuXid in training-prod"
    assert message["content"]["description"].count("\n") == 11
    assert "13 in all." in message["content"]["description"]
    assert message["content"]["nextSteps"][0] == "Read `podwright explain GpuXid`"
    assert json.loads(over[0]["Message"])["content"]["title"] == "RESOLVED: GpuXid in training-prod"
    assert json.loads(over[0]["Message"])["metadata"]["threadId"] == message["metadata"]["threadId"]


@needs_programs("amtool", package="prometheus-alertmanager")
def test_any_text_becomes_valid_json(tmp_path: Path) -> None:
    made = YAML(typ="safe").load(definition(TOPICS, "us-west-2"))
    (tmp_path / "podwright.tmpl").write_text(made["template_files"]["podwright"])
    strange = 'a "quoted" C:\\path\tand\nmore é {{ $1 }}'
    data = {
        "status": "firing",
        "groupLabels": {"alertname": "GpuXid", "cluster_name": "c", "severity": "critical"},
        "commonLabels": {"severity": "critical"},
        "alerts": [alert(1, summary=strange) | {"status": "firing"}],
    }
    (tmp_path / "data.json").write_text(json.dumps(data))
    command = ["amtool", "template", "render", f"--template.glob={tmp_path}/podwright.tmpl"]
    command += ['--template.text={{ template "podwright.chat" . }}', f"--template.data={tmp_path}/data.json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    output = json.loads(done.stdout)["content"]["description"]
    assert 'a "quoted" C:\\path and more é {{ $1 }}' in output


def test_only_one_topic_is_told_where_there_is_one() -> None:
    made = YAML(typ="safe").load(definition({"mail": TOPICS["mail"]}, "us-west-2"))
    config = YAML(typ="safe").load(made["alertmanager_config"])
    assert [item["topic_arn"] for item in config["receivers"][0]["sns_configs"]] == [TOPICS["mail"]]
