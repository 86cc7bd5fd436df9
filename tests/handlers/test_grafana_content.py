"""The delivery of dashboards, against the sandbox's Grafana, whole and with faults thrown in."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from grafana_world import GrafanaWorld
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
def world(monkeypatch: pytest.MonkeyPatch) -> GrafanaWorld:
    made = GrafanaWorld(monkeypatch, index, api)
    made.put_dashboards(cluster=page("cluster"), teams=page("teams"))
    return made


def request(world: GrafanaWorld, kind: str = "Create", **properties: Any) -> dict[str, Any]:
    return {
        "RequestType": kind,
        "ResourceType": "Custom::PodwrightGrafanaContent",
        "LogicalResourceId": "Content",
        "PhysicalResourceId": f"{world.id}/prod-folder",
        "ResourceProperties": {
            "WorkspaceId": world.id,
            "Endpoint": world.endpoint,
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


def test_folder_source_and_dashboards_are_made_and_no_token_stays(world: GrafanaWorld) -> None:
    answer = index.handle(request(world), CONTEXT)
    assert answer.physical_id == f"{world.id}/prod-folder"
    found = world.workspace
    assert set(found.dashboards) == {"prod-cluster", "prod-teams"}
    assert {item["meta"]["folderUid"] for item in found.dashboards.values()} == {"prod-folder"}
    assert {key: found.sources["prod-metrics"][key] for key in SOURCE} == SOURCE
    [account] = found.accounts.values()
    assert (account.name, account.role, account.tokens) == ("podwright", "ADMIN", {})
    assert not world.client.permissions


def test_carried_out_again_it_changes_nothing_but_versions(world: GrafanaWorld) -> None:
    for _ in range(2):
        index.handle(request(world), CONTEXT)
    assert len(world.workspace.accounts) == 1
    assert set(world.workspace.sources) == {"prod-metrics"}
    assert {item["dashboard"]["version"] for item in world.workspace.dashboards.values()} == {2}


def test_an_update_deletes_the_dashboards_that_are_no_more_and_nothing_else(world: GrafanaWorld) -> None:
    first = request(world)
    index.handle(first, CONTEXT)
    copy = {"uid": "my-copy", "title": "Mine", "tags": [TAG]}
    world.workspace.dashboards["my-copy"] = {"dashboard": copy, "meta": {"folderUid": "prod-folder", "url": ""}}
    world.put_dashboards(cluster=page("cluster", "New"))
    update = request(world, "Update", Dashboards=["prod-cluster"]) | {
        "OldResourceProperties": first["ResourceProperties"]
    }
    index.handle(update, CONTEXT)
    assert set(world.workspace.dashboards) == {"prod-cluster", "my-copy"}
    assert world.workspace.dashboards["prod-cluster"]["dashboard"]["title"] == "New cluster"


def test_a_dashboard_of_somebody_else_is_not_overwritten(world: GrafanaWorld) -> None:
    theirs = {"uid": "prod-teams", "title": "Theirs", "tags": [], "version": 1, "id": 1}
    world.workspace.dashboards["prod-teams"] = {"dashboard": theirs, "meta": {"folderUid": "", "url": ""}}
    with pytest.raises(Refused, match=r"'Theirs' with uid prod-teams that podwright did not make"):
        index.handle(request(world), CONTEXT)
    assert world.workspace.dashboards["prod-teams"]["dashboard"] == theirs
    assert not next(iter(world.workspace.accounts.values())).tokens


def test_delete_takes_what_it_made(world: GrafanaWorld) -> None:
    index.handle(request(world), CONTEXT)
    index.handle(request(world, "Delete"), CONTEXT)
    assert (world.workspace.dashboards, world.workspace.sources, world.workspace.folders) == ({}, {}, {})


def test_delete_leaves_a_folder_in_which_people_keep_something(world: GrafanaWorld) -> None:
    index.handle(request(world), CONTEXT)
    mine = {"dashboard": {"uid": "mine", "title": "Mine"}, "meta": {"folderUid": "prod-folder", "url": ""}}
    world.workspace.dashboards["mine"] = mine
    index.handle(request(world, "Delete"), CONTEXT)
    assert set(world.workspace.dashboards) == {"mine"}
    assert set(world.workspace.folders) == {"prod-folder"}


def test_delete_of_a_create_that_failed_calls_nothing(world: GrafanaWorld) -> None:
    index.handle(request(world, "Delete") | {"PhysicalResourceId": "Content-not-created"}, CONTEXT)
    assert not world.calls


def test_delete_is_done_where_the_workspace_is_gone(world: GrafanaWorld) -> None:
    event = request(world, "Delete")
    world.grafana.delete_workspace("us-west-2", {"workspaceId": world.id})
    index.handle(event, CONTEXT)
    assert not world.calls


@pytest.mark.parametrize(
    "faults", [pytest.param([401, 503, 429], id="a new workspace"), pytest.param([500], id="once")]
)
def test_a_busy_grafana_is_asked_again(world: GrafanaWorld, faults: list[int]) -> None:
    world.faults = faults
    index.handle(request(world), CONTEXT)
    assert set(world.workspace.dashboards) == {"prod-cluster", "prod-teams"}


def test_a_grafana_that_stays_away_is_said_so_and_the_token_goes(world: GrafanaWorld) -> None:
    world.faults = [503] * 50
    with pytest.raises(Refused, match="answers GET /folders/prod-folder with 503: busy"):
        index.handle(request(world), CONTEXT)
    assert not next(iter(world.workspace.accounts.values())).tokens


def test_what_grafana_refuses_is_not_tried_again(world: GrafanaWorld) -> None:
    world.put_dashboards(cluster={"uid": "prod-cluster", "title": "", "tags": [TAG]})
    with pytest.raises(Refused, match="answers POST /dashboards/db with 400"):
        index.handle(request(world), CONTEXT)
    assert world.calls.count("POST /dashboards/db") == 1


def test_groups_get_their_roles_and_lose_those_that_the_file_has_no_more(world: GrafanaWorld) -> None:
    before = request(world, Groups={"ADMIN": [GROUP], "VIEWER": [OTHER]})
    index.handle(before, CONTEXT)
    update = request(world, "Update", Groups={"ADMIN": [GROUP], "EDITOR": [OTHER]})
    index.handle(update | {"OldResourceProperties": before["ResourceProperties"]}, CONTEXT)
    said = [
        (item["action"], item["role"], item["users"][0]["id"])
        for item in world.client.permissions[-1]["updateInstructionBatch"]
    ]
    assert said == [("REVOKE", "VIEWER", OTHER), ("ADD", "ADMIN", GROUP), ("ADD", "EDITOR", OTHER)]


def test_a_group_that_is_not_let_in_stops_the_deployment(world: GrafanaWorld) -> None:
    cause = {"action": "ADD", "role": "ADMIN", "users": [{"id": GROUP, "type": "SSO_GROUP"}]}
    world.client.refused = [{"code": 404, "message": "no such group", "causedBy": cause}]
    with pytest.raises(Refused, match=rf"1 groups were not let in; first {GROUP}: no such group \(404\)"):
        index.handle(request(world, Groups={"ADMIN": [GROUP]}), CONTEXT)


def test_an_endpoint_as_an_address_is_the_same_place(world: GrafanaWorld) -> None:
    index.handle(request(world, Endpoint=f"https://{world.endpoint}"), CONTEXT)
    assert set(world.workspace.dashboards) == {"prod-cluster", "prod-teams"}
