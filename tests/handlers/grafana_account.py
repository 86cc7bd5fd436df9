"""A workspace of Managed Grafana for handlers: the sandbox's own, reached without a network."""

import io
import json
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError
from werkzeug.test import Client

from modelled_client import ModelledClient
from podwright.sandbox.protocol.service import Refusal
from podwright.sandbox.telemetry.grafana import PREFIX, Grafana, Workspace
from podwright.sandbox.telemetry.grafana_http import GrafanaHttp

REGION = "us-west-2"


class GrafanaClient:
    """What boto3's client of Grafana is to the handler; `refused` is what the next change of permissions answers."""

    def __init__(self, grafana: Grafana) -> None:
        self.grafana = grafana
        self.permissions: list[dict[str, Any]] = []
        self.refused: list[dict[str, Any]] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(**provided: Any) -> Any:
            try:
                return getattr(self.grafana, name)(REGION, provided)
            except Refusal as refusal:
                raise ClientError({"Error": {"Code": refusal.code, "Message": str(refusal)}}, name) from None

        return call

    def get_paginator(self, name: str) -> Any:
        client = self

        class Paginator:
            def paginate(self, **specified: Any) -> list[Any]:
                return [getattr(client, name)(**specified)]

        return Paginator()

    def update_permissions(self, **specified: Any) -> dict[str, Any]:
        self.permissions.append(specified)
        return {"errors": self.refused}


class GrafanaAccount:
    """A workspace, the handler's clients for it, and faults on the way to its Grafana."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, index: Any, api: Any) -> None:
        self.grafana = Grafana("grafana.test")
        created = self.grafana.create_workspace(
            REGION,
            {"accountAccessType": "CURRENT_ACCOUNT", "authenticationProviders": ["AWS_SSO"],
             "permissionType": "CUSTOMER_MANAGED"},
        )  # fmt: skip
        self.id: str = created["workspace"]["id"]
        self.client = GrafanaClient(self.grafana)
        self.http = Client(GrafanaHttp(self.grafana.anywhere))
        self.faults: list[int] = []
        self.calls: list[str] = []
        self.objects: dict[str, bytes] = {}
        clients = {"grafana": ModelledClient("grafana", self.client), "s3": ModelledClient("s3", self)}
        monkeypatch.setattr(index, "aws", clients.__getitem__)
        monkeypatch.setattr(api.urllib.request, "urlopen", self._open)
        monkeypatch.setattr(api.time, "sleep", lambda _: None)

    @property
    def workspace(self) -> Workspace:
        return self.grafana.find(REGION, self.id)

    @property
    def endpoint(self) -> str:
        return f"grafana.test{PREFIX}{self.id}"

    def get_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:
        return {"Body": io.BytesIO(self.objects[f"{Bucket}/{Key}"])}

    def put_dashboards(self, **dashboards: dict[str, Any]) -> None:
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            for name, page in dashboards.items():
                archive.writestr(f"{name}.json", json.dumps(page))
        self.objects["assets/a.zip"] = content.getvalue()

    def _open(self, request: urllib.request.Request, timeout: float) -> Any:
        path = request.full_url.removeprefix("https://grafana.test")
        self.calls.append(f"{request.get_method()} {path.partition('/api')[2]}")
        if self.faults:
            raise urllib.error.HTTPError(request.full_url, self.faults.pop(0), "", {}, io.BytesIO(b"busy"))
        answer = self.http.open(
            path, method=request.get_method(), data=request.data, headers=list(request.headers.items())
        )
        if answer.status_code >= 400:
            body = io.BytesIO(answer.data)
            raise urllib.error.HTTPError(request.full_url, answer.status_code, "", {}, body)
        return io.BytesIO(answer.data)
