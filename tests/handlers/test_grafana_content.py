"""The delivery of dashboards, against the sandbox's Grafana, whole and with faults thrown in."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from grafana_account import GrafanaAccount
from podwright.constructs.observability.grafana_content.handler import grafana as api
from podwright.constructs.observability.grafana_content.handler import index
from podwright.constructs.observability.grafana_content.handler.grafana import Refused

CONTEXT = SimpleNamespace(aws_request_id="1")
TAG = "podwright:prod"
SOURCE = {"uid": "prod-metrics", "name": "podwright prod", "type": "prometheus", "access": "proxy", "url": "https://p/"}
GROUP, OTHER = "11111111-2222-3333-4444-555555555555", "11111111-2222-3333-4444-666666666666"


def page(name: str, title: str = "Title") -> dict[str, Any]:
    return {"uid": f"prod-{name}", "title": f"{title} {name}", "tags": ["podwright", TAG], "panels": []}


@pytest.fixture
def grafana(monkeypatch: pytest.MonkeyPatch) -> GrafanaAccount:
    made = GrafanaAccount(monkeypatch, index, api)
    made.put_dashboards(cluster=page("cluster"), teams=page("teams"))
    return made


def request(grafana: GrafanaAccount, kind: str = "Create", **properties: Any) -> dict[str, Any]:
    return {
        "RequestType": kind,
        "ResourceType": "Custom::PodwrightGrafanaContent",
        "LogicalResourceId": "Content",
        "PhysicalResourceId": f"{grafana.id}/prod-folder",
        "ResourceProperties": {
            "WorkspaceId": grafana.id,
            "Endpoint": grafana.endpoint,
            "AssetBucket": "assets",
            "AssetKey": "a.zip",
            "AssetDigest": "0123456789abcdef",
            "Tag": TAG,
            "Dashboards": ["prod-cluster", "prod-teams"],
            "Folder": {"uid": "prod-folder", "title": "podwright prod"},
            "Sources": json.dumps([SOURCE]),
            "Groups": {},
            **properties,
        },
    }


def test_folder_source_and_dashboards_are_made_and_no_token_stays(grafana: GrafanaAccount) -> None:
    answer = index.handle(request(grafana), CONTEXT)
    assert answer.physical_id == f"{grafana.id}/prod-folder"
    actual = grafana.workspace
    assert set(actual.dashboards) == {"prod-cluster", "prod-teams"}
    assert {item["meta"]["folderUid"] for item in actual.dashboards.values()} == {"prod-folder"}
    assert {key: actual.sources["prod-metrics"][key] for key in SOURCE} == SOURCE
    [account] = actual.accounts.values()
    assert (account.name, account.role, account.tokens) == ("podwright", "ADMIN", {})
    assert not grafana.client.permissions


def test_carried_out_again_it_changes_nothing_but_versions(grafana: GrafanaAccount) -> None:
    for _ in range(2):
        index.handle(request(grafana), CONTEXT)
    assert len(grafana.workspace.accounts) == 1
    assert set(grafana.workspace.sources) == {"prod-metrics"}
    assert {item["dashboard"]["version"] for item in grafana.workspace.dashboards.values()} == {2}


def test_an_update_deletes_the_dashboards_that_are_no_more_and_nothing_else(grafana: GrafanaAccount) -> None:
    first = request(grafana)
    index.handle(first, CONTEXT)
    copy = {"uid": "my-copy", "title": "Mine", "tags": [TAG]}
    grafana.workspace.dashboards["my-copy"] = {"dashboard": copy, "meta": {"folderUid": "prod-folder", "url": ""}}
    grafana.put_dashboards(cluster=page("cluster", "New"))
    update = request(grafana, "Update", Dashboards=["prod-cluster"]) | {
        "OldResourceProperties": first["ResourceProperties"]
    }
    index.handle(update, CONTEXT)
    assert set(grafana.workspace.dashboards) == {"prod-cluster", "my-copy"}
    assert grafana.workspace.dashboards["prod-cluster"]["dashboard"]["title"] == "New cluster"


def test_a_dashboard_of_somebody_else_is_not_overwritten(grafana: GrafanaAccount) -> None:
    theirs = {"uid": "prod-teams", "title": "Theirs", "tags": [], "version": 1, "id": 1}
    grafana.workspace.dashboards["prod-teams"] = {"dashboard": theirs, "meta": {"folderUid": "", "url": ""}}
    with pytest.raises(Refused, match=r"'Theirs' with uid prod-teams that podwright did not make"):
        index.handle(request(grafana), CONTEXT)
    assert grafana.workspace.dashboards["prod-teams"]["dashboard"] == theirs
    assert not next(iter(grafana.workspace.accounts.values())).tokens


def test_delete_takes_what_it_made(grafana: GrafanaAccount) -> None:
    index.handle(request(grafana), CONTEXT)
    index.handle(request(grafana, "Delete"), CONTEXT)
    assert (grafana.workspace.dashboards, grafana.workspace.sources, grafana.workspace.folders) == ({}, {}, {})


def test_delete_leaves_a_folder_in_which_people_keep_something(grafana: GrafanaAccount) -> None:
    index.handle(request(grafana), CONTEXT)
    mine = {"dashboard": {"uid": "mine", "title": "Mine"}, "meta": {"folderUid": "prod-folder", "url": ""}}
    grafana.workspace.dashboards["mine"] = mine
    index.handle(request(grafana, "Delete"), CONTEXT)
    assert set(grafana.workspace.dashboards) == {"mine"}
    assert set(grafana.workspace.folders) == {"prod-folder"}


def test_delete_of_a_create_that_failed_calls_nothing(grafana: GrafanaAccount) -> None:
    index.handle(request(grafana, "Delete") | {"PhysicalResourceId": "Content-not-created"}, CONTEXT)
    assert not grafana.calls


def test_delete_is_done_where_the_workspace_is_gone(grafana: GrafanaAccount) -> None:
    event = request(grafana, "Delete")
    grafana.grafana.delete_workspace("us-west-2", {"workspaceId": grafana.id})
    index.handle(event, CONTEXT)
    assert not grafana.calls


@pytest.mark.parametrize(
    "faults", [pytest.param([401, 503, 429], id="a new workspace"), pytest.param([500], id="once")]
)
def test_a_busy_grafana_is_asked_again(grafana: GrafanaAccount, faults: list[int]) -> None:
    grafana.faults = faults
    index.handle(request(grafana), CONTEXT)
    assert set(grafana.workspace.dashboards) == {"prod-cluster", "prod-teams"}


def test_a_grafana_that_stays_away_is_said_so_and_the_token_goes(grafana: GrafanaAccount) -> None:
    grafana.faults = [503] * 50
    with pytest.raises(Refused, match="answers GET /folders/prod-folder with 503: busy"):
        index.handle(request(grafana), CONTEXT)
    assert not next(iter(grafana.workspace.accounts.values())).tokens


def test_what_grafana_refuses_is_not_tried_again(grafana: GrafanaAccount) -> None:
    grafana.put_dashboards(cluster={"uid": "prod-cluster", "title": "", "tags": [TAG]})
    with pytest.raises(Refused, match="answers POST /dashboards/db with 400"):
        index.handle(request(grafana), CONTEXT)
    assert grafana.calls.count("POST /dashboards/db") == 1


def test_groups_get_their_roles_and_lose_those_that_the_file_has_no_more(grafana: GrafanaAccount) -> None:
    before = request(grafana, Groups={"ADMIN": [GROUP], "VIEWER": [OTHER]})
    index.handle(before, CONTEXT)
    update = request(grafana, "Update", Groups={"ADMIN": [GROUP], "EDITOR": [OTHER]})
    index.handle(update | {"OldResourceProperties": before["ResourceProperties"]}, CONTEXT)
    output = [
        (item["action"], item["role"], item["users"][0]["id"])
        for item in grafana.client.permissions[-1]["updateInstructionBatch"]
    ]
    assert output == [("REVOKE", "VIEWER", OTHER), ("ADD", "ADMIN", GROUP), ("ADD", "EDITOR", OTHER)]


def test_a_group_that_is_not_let_in_stops_the_deployment(grafana: GrafanaAccount) -> None:
    cause = {"action": "ADD", "role": "ADMIN", "users": [{"id": GROUP, "type": "SSO_GROUP"}]}
    grafana.client.refused = [{"code": 404, "message": "no such group", "causedBy": cause}]
    with pytest.raises(Refused, match=rf"1 groups were not let in; first {GROUP}: no such group \(404\)"):
        index.handle(request(grafana, Groups={"ADMIN": [GROUP]}), CONTEXT)


def test_an_endpoint_as_an_address_is_the_same_place(grafana: GrafanaAccount) -> None:
    index.handle(request(grafana, Endpoint=f"https://{grafana.endpoint}"), CONTEXT)
    assert set(grafana.workspace.dashboards) == {"prod-cluster", "prod-teams"}
