"""kubectl processes of one command use one token that the command signs itself."""

import base64
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from podwright.operations.aws.account import Account
from podwright.operations.kubernetes import kubectl, signed_in
from podwright.operations.kubernetes.kubectl import Kubectl, Refused
from podwright.operations.kubernetes.signed_in import SignIn
from podwright.sandbox.kubernetes.certificates import Authority

ACCOUNT = Account("111122223333", "us-west-2", "http://localhost:9", {})


class Api(ThreadingHTTPServer):
    """Answers every request, the first with other codes than 200, and keeps who asked."""

    def __init__(self, authority: Authority) -> None:
        self.callers: list[str] = []
        self.first_codes: list[int] = []
        super().__init__(("127.0.0.1", 0), Handler)
        pair = authority.server("api")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.certificate, pair.key)
        self.socket = context.wrap_socket(self.socket, server_side=True)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Api)
        self.server.callers.append(self.headers.get("Authorization", ""))
        self.send_response(self.server.first_codes.pop(0) if self.server.first_codes else 200)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *arguments: object) -> None:
        """Keep the output of tests clean."""


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority.open(tmp_path / "keys")


@pytest.fixture
def api(authority: Authority) -> Iterator[Api]:
    with Api(authority) as server:
        threading.Thread(target=server.serve_forever).start()
        yield server
        server.shutdown()


@pytest.fixture
def kubeconfig(api: Api, authority: Authority, tmp_path: Path) -> Path:
    """One whose own user fails: its plugin would take half a second."""
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never", "command": "false"}}
    cluster = {"server": f"https://127.0.0.1:{api.server_port}", "certificate-authority": str(authority.file)}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "prod",
        "clusters": [{"name": "prod", "cluster": cluster}],
        "contexts": [{"name": "prod", "context": {"cluster": "prod", "user": "prod"}}],
        "users": [{"name": "prod", "user": user}],
    }
    file = tmp_path / "prod"
    file.write_text(json.dumps(config))
    return file


def test_one_signature_serves_many_processes(api: Api, kubeconfig: Path) -> None:
    way = Kubectl(kubeconfig, True, sign_in=SignIn(ACCOUNT, "prod-1a2b"))
    lines: list[str] = []
    assert way.run("get", "--raw", "/version") == "{}"
    way.stream(lines.append, "get", "--raw", "/version")
    assert lines == ["{}"]
    first, second = api.callers
    assert first == second
    token = first.removeprefix("Bearer k8s-aws-v1.")
    assert "x-k8s-aws-id" in base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()


@pytest.mark.parametrize(
    ("codes", "requests", "message"),
    [([503, 503], 3, None), ([503, 503, 503], 3, "unable to handle the request"), ([403], 1, "Forbidden")],
)
def test_kubectl_runs_again_if_the_server_is_too_busy(
    api: Api, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch, codes: list[int], requests: int, message: str | None
) -> None:
    monkeypatch.setattr(kubectl, "_PAUSES", (0.0, 0.0))
    api.first_codes = codes
    way = Kubectl(kubeconfig, True, sign_in=SignIn(ACCOUNT, "prod-1a2b"))
    with pytest.raises(Refused, match=message) if message else nullcontext():
        assert way.run("get", "--raw", "/version") == "{}"
    assert len(api.callers) == requests


def test_a_change_that_must_not_happen_twice_runs_once(api: Api, kubeconfig: Path) -> None:
    api.first_codes = [503]
    with pytest.raises(Refused, match="unable to handle the request"):
        Kubectl(kubeconfig, True, sign_in=SignIn(ACCOUNT, "prod-1a2b")).run("get", "--raw", "/", repeatable=False)
    assert len(api.callers) == 1


def test_without_it_the_user_of_the_kubeconfig_signs_in(api: Api, kubeconfig: Path) -> None:
    with pytest.raises(Refused, match="exec"):
        Kubectl(kubeconfig, True).run("get", "--raw", "/version")
    assert api.callers == []


def test_a_signature_is_made_again_before_it_expires(kubeconfig: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = iter(["first", "second"])
    monkeypatch.setattr(signed_in, "exec_credential", lambda *_: next(made))
    now = 0.0
    monkeypatch.setattr(signed_in.time, "monotonic", lambda: now)
    sign_in = SignIn(ACCOUNT, "prod")

    def credential() -> str:
        return sign_in.variables(kubeconfig)["PODWRIGHT_EXEC_CREDENTIAL"]

    assert credential() == "first"
    now = 599.0
    assert credential() == "first"
    now = 840.0
    assert credential() == "second"
