"""`podwright dashboards`: files for any Grafana, and what is said when there is nothing to show."""

import io
import json
import urllib.error
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.credentials import Credentials

from podwright.config.errors import CommandError
from podwright.operations.aws.account import Account
from podwright.operations.cli import main
from podwright.operations.dashboards import sources
from podwright.operations.programs.prometheus import QueryError

ENVIRONMENTS = Path(__file__).parents[3] / "environments"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "environments").mkdir()
    text = (ENVIRONMENTS / "sandbox.yaml").read_text()
    (tmp_path / "environments" / "sandbox.yaml").write_text(text)
    plain = text.partition("\nobservability:")[0]
    for name, more in (("plain", ""), ("off", "observability: {metrics: 'off'}")):
        named = plain.replace("name: sandbox", f"name: {name}", 1)
        (tmp_path / "environments" / f"{name}.yaml").write_text(f"{named}\n{more}\n")
    return tmp_path


def run(project: Path, *arguments: str) -> int:
    return main(["dashboards", *arguments, "--project", str(project)])


def test_export_writes_a_file_for_each_dashboard(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(project, "export", "sandbox", "--out", str(project / "out"), "--source", "mine") == 0
    files = sorted(path.name for path in (project / "out").iterdir())
    assert "sandbox-cluster.json" in files
    assert len(capsys.readouterr().out.splitlines()) == len(files)
    page = json.loads((project / "out" / "sandbox-cluster.json").read_text())
    assert {item["datasource"]["uid"] for item in page["panels"] if item["type"] != "row"} == {"mine"}


@pytest.mark.parametrize(
    ("arguments", "code", "output"),
    [
        pytest.param(("export", "plain"), 1, "plain has no observability", id="not observed"),
        pytest.param(("export", "off"), 1, "off measures nothing that could be shown", id="metrics off"),
        pytest.param(("preview", "sandbox", "--days", "0"), 2, "--days is 0", id="no time"),
        pytest.param(("preview", "sandbox", "--fault", "flood"), 2, "no fault is called flood", id="unknown fault"),
    ],
)
def test_what_cannot_be_shown_is_said(
    project: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], code: int, output: str
) -> None:
    assert run(project, *arguments) == code
    assert output in capsys.readouterr().err


def workspace(monkeypatch: pytest.MonkeyPatch, code: int, body: Any) -> tuple[sources.Workspace, list[Any]]:
    asked: list[Any] = []

    def answer(request: Any) -> Any:
        asked.append(request)
        content = io.BytesIO(json.dumps(body).encode())
        if code != 200:
            raise urllib.error.HTTPError(request.full_url, code, "", {}, content)
        return content

    monkeypatch.setattr(sources, "urlopen", answer)
    session = SimpleNamespace(get_credentials=lambda: Credentials("key", "secret"))
    account = SimpleNamespace(session=lambda: session, region="us-west-2")
    return sources.Workspace("https://aps.test/workspaces/ws-1", account), asked


def test_the_workspace_is_asked_with_a_signature(monkeypatch: pytest.MonkeyPatch) -> None:
    server, asked = workspace(monkeypatch, 200, {"data": {"result": [{"metric": {}, "value": [0, "1"]}]}})
    assert server.instant("up", 0) == [{"metric": {}, "value": [0, "1"]}]
    assert "/us-west-2/aps/aws4_request" in asked[0].get_header("Authorization")
    assert asked[0].data == b"query=up&time=0"


def test_who_may_not_ask_is_told_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    server, _ = workspace(monkeypatch, 403, {"message": "no"})
    with pytest.raises(CommandError, match="you may not ask") as stopped:
        server.instant("up", 0)
    assert "aps:QueryMetrics" in stopped.value.hint


def test_a_refused_query_is_prometheus_own_words(monkeypatch: pytest.MonkeyPatch) -> None:
    server, _ = workspace(monkeypatch, 400, {"error": "parse error"})
    with pytest.raises(QueryError, match=r"^parse error$"):
        server.instant("up{", 0)


def test_the_workspace_of_a_sandbox_is_asked_there() -> None:
    environment: Any = SimpleNamespace(name="sandbox")
    settings: Any = SimpleNamespace(workspace="ws-1")
    account = Account("123456789012", "us-west-2", "http://localhost:1", {})
    assert sources.workspace(environment, settings, account).url == "http://localhost:1/workspaces/ws-1"
