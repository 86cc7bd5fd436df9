"""`podwright chart outdated`: sources on loopback that have moved on, have not, or say nothing."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from loopback import Call, Reply, Server, serving
from podwright.config.catalog.charts import HYPERPOD_DEPENDENCIES, KAI, KUEUE, YUNIKORN, chart, chart_versions
from podwright.operations.artifacts import charts, outdated
from podwright.operations.artifacts.outdated import Published, published
from podwright.operations.artifacts.registry import Registry

PIN = chart(HYPERPOD_DEPENDENCIES).revision
Answers = dict[str, Any]


@pytest.fixture
def sources(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Answers, Server]]:
    """What paths answer, as JSON; `last` names the last commit of the chart's folder by where one starts."""
    monkeypatch.setattr("urllib3.util.retry.time.sleep", lambda _: None)
    answers: Answers = {}

    def answer(call: Call) -> Reply:
        path, _, query = call.path.partition("?")
        if path.endswith("/commits"):
            assert "path=helm_chart%2FHyperPodHelmChart" in query
            path = f"{path} {query.partition('sha=')[2].partition('&')[0]}"
        elif "last=" in query:
            path += " 2"
        if path not in answers:
            return Reply(403)
        link = {"Link": f'<{path}?last=x&n=2>; rel="next"'} if f"{path} 2" in answers else {}
        body = answers[path]
        return Reply(body=body if isinstance(body, bytes) else json.dumps(body).encode(), headers=link)

    with serving(answer) as server:
        monkeypatch.setattr(outdated, "_GITHUB", f"{server.url}/repos")
        local = server.url.removeprefix("http://")
        monkeypatch.setattr(outdated, "Registry", lambda host: Registry(local, scheme="http"))
        yield answers, server


def commit(sha: str, day: str = "2026-01-20") -> list[dict[str, Any]]:
    return [{"sha": sha, "commit": {"committer": {"date": f"{day}T01:02:03Z"}}}]


COMMITS = "/repos/aws/sagemaker-hyperpod-cli/commits"


@pytest.mark.parametrize(("newest", "expected"), [("b" * 40, True), ("a" * 40, False)])
def test_a_commit_is_outdated_by_a_later_one_of_its_folder(
    sources: tuple[Answers, Server], newest: str, expected: bool
) -> None:
    answers, _ = sources
    answers |= {f"{COMMITS} {PIN}": commit("a" * 40), f"{COMMITS} HEAD": commit(newest, "2026-11-02")}
    actual = published(chart(HYPERPOD_DEPENDENCIES))
    assert actual == Published(HYPERPOD_DEPENDENCIES, "a" * 40, newest, "2026-11-02")
    assert actual.outdated is expected


def version(name: str) -> str:
    return chart_versions()[name]


@pytest.mark.parametrize(
    ("name", "path", "answer"),
    [
        (YUNIKORN, "/repos/apache/yunikorn-release/releases", lambda *tags: [{"tag_name": f"v{tag}"} for tag in tags]),
        (
            "kuberay-operator",
            "/repos/ray-project/kuberay-helm/releases",
            lambda *tags: [{"tag_name": "ray-cluster-999.0.0"}, *({"tag_name": f"kuberay-operator-{t}"} for t in tags)],
        ),
        (KUEUE, "/v2/kueue/charts/kueue/tags/list", lambda *tags: {"tags": tags}),
        (
            KAI,
            "/v2/kai-scheduler/kai-scheduler/kai-scheduler/tags/list",
            lambda *tags: {"tags": [f"v{tag}" for tag in tags]},
        ),
    ],
)
def test_a_release_is_outdated_by_a_later_version(
    sources: tuple[Answers, Server], name: str, path: str, answer: Callable[..., Any]
) -> None:
    answers, _ = sources
    own = version(name).removeprefix("v")
    sign = "v" if version(name).startswith("v") else ""
    # Before a release, of another number of digits, and one that text would put after 10.
    answers[path] = answer("0.9.0", own, "999.0.0-rc.1", "latest")
    assert published(chart(name)) == Published(name, version(name), version(name))
    assert not published(chart(name)).outdated
    answers[path] = answer(own, "99.9.0", "99.10.0", "999.0.0-rc.1")
    assert published(chart(name)).newest == f"{sign}99.10.0"
    assert published(chart(name)).outdated


def test_a_registry_is_read_to_its_last_page(sources: tuple[Answers, Server]) -> None:
    answers, _ = sources
    path = "/v2/kueue/charts/kueue/tags/list"
    answers |= {path: {"tags": ["0.1.0"]}, f"{path} 2": {"tags": ["99.0.0"]}}
    assert published(chart(KUEUE)).newest == "99.0.0"


@pytest.mark.parametrize("answer", [None, b"<html>sign in</html>"])
def test_a_source_that_does_not_say_is_not_called_new(sources: tuple[Answers, Server], answer: bytes | None) -> None:
    answers, _ = sources
    if answer:
        answers["/v2/kueue/charts/kueue/tags/list"] = answer
    actual = published(chart(KUEUE))
    assert actual.problem
    assert not actual.outdated


@pytest.mark.parametrize(
    ("newest", "code", "words"),
    [("a" * 40, 0, "newest"), ("b" * 40, 1, "newer at its source"), (None, 1, "not seen: HTTP status 403")],
)
def test_the_command_says_what_is_newer_and_changes_nothing(
    sources: tuple[Answers, Server],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    newest: str | None,
    code: int,
    words: str,
) -> None:
    answers, _ = sources
    answers |= {f"{COMMITS} {PIN}": commit("a" * 40)} | ({f"{COMMITS} HEAD": commit(newest)} if newest else {})
    (tmp_path / "environments").mkdir()
    file = tmp_path / "environments" / "dev.yaml"
    file.write_text(
        """account: "111122223333"
region: us-west-2
network: {zones: [usw2-az1, usw2-az2]}
instance_groups: {system: {instance_type: ml.m5.4xlarge, count: 2}}
"""
    )
    arguments: Any = SimpleNamespace(project=tmp_path, action="outdated", update=False, source=None, json=False)
    assert charts.run(arguments) == code
    assert words in capsys.readouterr().out
    arguments.json = True
    assert charts.run(arguments) == code
    (row,) = json.loads(capsys.readouterr().out)["charts"]
    assert row["chart"] == HYPERPOD_DEPENDENCIES
    assert row["outdated"] is (newest == "b" * 40)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [file]
