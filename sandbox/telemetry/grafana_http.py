"""What runs in a workspace of Managed Grafana, as far as content is delivered: data sources, folders, dashboards.

It stores and draws nothing; a data source answers no query. Words and status codes of refusals are those of Grafana
10.4's HTTP API (Grafana documentation, "HTTP API": data source, folder, dashboard, folder/dashboard search).
"""

import json
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from werkzeug.wrappers import Request, Response

from ..protocol.json_objects import JsonObject, picked
from .grafana import PREFIX, Workspace

_WRITERS = {"sources": ("ADMIN",), "folders": ("ADMIN", "EDITOR"), "dashboards": ("ADMIN", "EDITOR")}


class _Refusal(Exception):
    def __init__(self, code: int, message: str, **more: str) -> None:
        super().__init__(message)
        self.code, self.more = code, more


class GrafanaHttp:
    """A WSGI application for everything below PREFIX; `find` has the workspaces by their ids."""

    def __init__(self, find: Callable[[str], Workspace | None]) -> None:
        self.find = find

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Serve one request."""
        request = Request(environ)
        identifier, _, path = request.path.removeprefix(PREFIX).partition("/")
        try:
            workspace = self.find(identifier)
            if workspace is None:
                raise _Refusal(404, "there is no such workspace (sandbox)")
            answer = self._serve(request, workspace, [part for part in path.split("/") if part])
            status = 200
        except _Refusal as error:
            status, answer = error.code, {"message": str(error), **error.more}
        return Response(json.dumps(answer), status, content_type="application/json")(environ, start_response)

    def _serve(self, request: Request, workspace: Workspace, path: list[str]) -> Any:
        """Answer a request to Grafana's HTTP API for whoever the token stands for."""
        if path == ["api", "health"]:
            return {"database": "ok", "version": workspace.description["grafanaVersion"]}
        role = workspace.role_of(request.headers.get("Authorization", "").removeprefix("Bearer "))
        # Also before the path is looked at: who has no token learns nothing about what is there.
        if role is None:
            raise _Refusal(401, "Unauthorized", messageId="session.token.rotate")
        body: JsonObject = request.get_json(force=True) if request.get_data() else {}
        match (request.method, *path[1:]) if path[:1] == ["api"] else ():
            case ("GET", "org"):
                return {"id": 1, "name": "Main Org."}
            case ("GET", "search"):
                return _search(workspace, request.args)
            case (method, "datasources", *rest):
                self._may_write(role, method, "sources")
                return _sources(workspace.sources, method, rest, body)
            case (method, "folders", *rest):
                self._may_write(role, method, "folders")
                return _folders(workspace, method, rest, body)
            case (method, "dashboards", *rest):
                self._may_write(role, method, "dashboards")
                return _dashboards(workspace, method, rest, body)
            case _:
                raise _Refusal(404, "Not found")

    def _may_write(self, role: str, method: str, what: str) -> None:
        if method != "GET" and role not in _WRITERS[what]:
            raise _Refusal(403, f"You'll need additional permissions to perform this action. Role {role} (sandbox)")


def _sources(sources: dict[str, JsonObject], method: str, rest: list[str], body: JsonObject) -> Any:
    """Data sources: list, add, read, change and delete."""

    def named(name: Any) -> str | None:
        return next((uid for uid, item in sources.items() if item["name"] == name), None)

    match (method, *rest):
        case ("GET",):
            return list(sources.values())
        case ("POST",):
            if named(body.get("name")) or body.get("uid") in sources:
                raise _Refusal(409, "data source with the same name already exists", messageId="datasources.conflict")
            return _put_source(sources, body.get("uid") or uuid.uuid4().hex[:9], body)
        case ("GET", "name", name) if uid := named(name):
            return sources[uid]
        case (_, "uid", uid) if uid in sources:
            if method == "GET":
                return sources[uid]
            if method == "PUT":
                if named(body.get("name")) not in (None, uid):
                    raise _Refusal(409, "data source with the same name already exists")
                return _put_source(sources, uid, body)
            if method == "DELETE":
                del sources[uid]
                return {"message": "Data source deleted"}
            raise _Refusal(404, "Not found")
        case _:
            raise _Refusal(404, "Data source not found")


def _put_source(sources: dict[str, JsonObject], uid: str, body: JsonObject) -> JsonObject:
    missing = [key for key in ("name", "type", "access") if not body.get(key)]
    if missing:
        raise _Refusal(400, f"bad request data: {', '.join(missing)} is required")
    known = sources.get(uid, {"id": len(sources) + 1, "version": 0})
    # Grafana takes secrets and never shows them again.
    shown = {key: value for key, value in body.items() if key != "secureJsonData"}
    sources[uid] = {**shown, "uid": uid, "id": known["id"], "version": known["version"] + 1}
    if body.get("isDefault"):
        # There is one default at most: the newest takes the place of the former one.
        for other in sources:
            sources[other]["isDefault"] = other == uid
    return {"id": known["id"], "name": body["name"], "message": "Datasource added", "datasource": sources[uid]}


def _folders(workspace: Workspace, method: str, rest: list[str], body: JsonObject) -> Any:
    """Folders: list, add, read, change and delete with their dashboards."""
    folders = workspace.folders
    if method == "GET" and not rest:
        return [picked(item, "id", "uid", "title") for item in folders.values()]
    if method == "POST" and not rest:
        uid = body.get("uid") or uuid.uuid4().hex[:9]
        if uid in folders:
            raise _Refusal(409, "a folder with the same uid already exists")
        if not body.get("title"):
            raise _Refusal(400, "folder title cannot be empty")
        if any(item["title"] == body["title"] for item in folders.values()):
            raise _Refusal(409, "a folder with the same name already exists in the current location")
        folders[uid] = {"id": len(folders) + 1, "uid": uid, "title": body["title"], "version": 1}
        return folders[uid]
    if not rest or rest[0] not in folders:
        raise _Refusal(404, "folder not found", status="not-found")
    if method == "PUT":
        if not body.get("overwrite") and body.get("version") != folders[rest[0]]["version"]:
            raise _Refusal(412, "the folder has been changed by someone else", status="version-mismatch")
        folders[rest[0]] |= {"title": body["title"], "version": folders[rest[0]]["version"] + 1}
    if method == "DELETE":
        for uid in [uid for uid, item in workspace.dashboards.items() if item["meta"]["folderUid"] == rest[0]]:
            del workspace.dashboards[uid]
        return {"message": f"Folder {folders.pop(rest[0])['title']} deleted"}
    return folders[rest[0]]


def _dashboards(workspace: Workspace, method: str, rest: list[str], body: JsonObject) -> Any:
    dashboards = workspace.dashboards
    if (method, rest) == ("POST", ["db"]):
        return _save(workspace, body)
    if len(rest) != 2 or rest[0] != "uid" or rest[1] not in dashboards:
        raise _Refusal(404, "Dashboard not found")
    if method == "DELETE":
        title = dashboards.pop(rest[1])["dashboard"]["title"]
        return {"title": title, "message": f"Dashboard {title} deleted"}
    return dashboards[rest[1]]


def _save(workspace: Workspace, body: JsonObject) -> JsonObject:
    """Save a dashboard. Refused when its version is not the last one."""
    dashboard, folder = dict(body.get("dashboard") or {}), body.get("folderUid") or ""
    if not dashboard.get("title"):
        raise _Refusal(400, "Dashboard title cannot be empty", status="empty-name")
    if folder and folder not in workspace.folders:
        raise _Refusal(400, "folder not found")
    uid = dashboard.get("uid") or uuid.uuid4().hex[:9]
    known, overwrite = workspace.dashboards.get(uid), body.get("overwrite")
    if known and not overwrite and dashboard.get("version") != known["dashboard"]["version"]:
        raise _Refusal(412, "The dashboard has been changed by someone else", status="version-mismatch")
    version = known["dashboard"]["version"] + 1 if known else 1
    number = known["dashboard"]["id"] if known else len(workspace.dashboards) + 1
    dashboard |= {"uid": uid, "version": version, "id": number}
    slug = "-".join(dashboard["title"].lower().split())
    meta = {"folderUid": folder, "slug": slug, "url": f"/d/{uid}/{slug}", "version": version}
    workspace.dashboards[uid] = {"dashboard": dashboard, "meta": meta}
    return {"id": number, "uid": uid, "url": meta["url"], "status": "success", "version": version, "slug": slug}


def _search(workspace: Workspace, requested: Mapping[str, str]) -> list[JsonObject]:
    """All dashboards and folders, or the dashboards of some folders (`folderUIDs`)."""
    dashboards = [
        {
            "uid": uid,
            "title": item["dashboard"]["title"],
            "type": "dash-db",
            "url": item["meta"]["url"],
            "tags": item["dashboard"].get("tags", []),
            "folderUid": item["meta"]["folderUid"],
        }
        for uid, item in workspace.dashboards.items()
    ]
    if "folderUIDs" in requested:
        return [item for item in dashboards if item["folderUid"] in requested["folderUIDs"].split(",")]
    return [{**item, "type": "dash-folder"} for item in workspace.folders.values()] + dashboards
