"""Puts a data source, a folder and dashboards into a workspace of Amazon Managed Grafana, and lets people in.

CloudFormation makes the workspace and nothing in it. A service account of the workspace does the work, with a token
that ends after minutes and is deleted before that; the account stays for the next deployment. All things have uids of
ours, so a request that is carried out again finds what the first run made. Whatever else lies in the workspace is never
changed: a dashboard under one of our uids that does not carry our tag stops the deployment, and a folder in which
people keep something of their own stays.

Sources: botocore 1.44.5, service model of Grafana; Amazon Managed Grafana User Guide, "Service accounts", 2026-11.
"""

import io
import json
import logging
import uuid
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final

import boto3
from botocore.exceptions import ClientError

from ....common.handler_runtime.response import Answer, answering, was_not_created
from .grafana import Grafana, Refused

ACCOUNT: Final = "podwright"
_TOKEN_SECONDS: Final = 900

logger = logging.getLogger()


@cache
def aws(service: str) -> Any:
    """boto3's client of a service, made when it is first needed."""
    session: Any = boto3.Session()
    return session.client(service)


def handle(event: dict[str, Any], _: Any) -> Answer:
    """Carry out one request."""
    properties = event["ResourceProperties"]
    before = event.get("OldResourceProperties", {})
    workspace = properties["WorkspaceId"]
    if event["RequestType"] == "Delete":
        _delete(event, properties)
        return Answer(event["PhysicalResourceId"])
    with _signed_in(properties) as api:
        _folder(api, properties["Folder"])
        for source in json.loads(properties["Sources"]):
            _source(api, source)
        for page in _pages(properties):
            _dashboard(api, page, properties)
        # In another workspace or folder the uids of before belong to what was deleted with it.
        if before.get("WorkspaceId") == workspace and before["Folder"]["uid"] == properties["Folder"]["uid"]:
            for uid in sorted(set(before["Dashboards"]) - set(properties["Dashboards"])):
                api.delete(f"/dashboards/uid/{uid}")
    _let_in(workspace, before.get("Groups", {}) if before.get("WorkspaceId") == workspace else {}, properties["Groups"])
    return Answer(f"{workspace}/{properties['Folder']['uid']}")


handler = answering(handle)


def _delete(event: dict[str, Any], properties: dict[str, Any]) -> None:
    """Delete dashboards, sources and the folder, as far as they are there."""
    # Of a creation that failed nothing is there that could be deleted.
    if was_not_created(event):
        return
    try:
        with _signed_in(properties) as api:
            for uid in properties["Dashboards"]:
                api.delete(f"/dashboards/uid/{uid}")
            for source in json.loads(properties["Sources"]):
                api.delete(f"/datasources/uid/{source['uid']}")
            _leave_folder(api, properties["Folder"]["uid"])
    except ClientError as error:
        if error.response["Error"]["Code"] != "ResourceNotFoundException":
            raise
        logger.info("the workspace is gone, and with it everything in it")


def _leave_folder(api: Grafana, folder: str) -> None:
    if others := api.search(folderUIDs=folder):
        logger.warning("the folder stays: it holds %s", ", ".join(item["title"] for item in others))
        return
    try:
        api.delete(f"/folders/{folder}")
    except Refused as refused:
        # A search does not see alert rules, with which Grafana deletes no folder.
        logger.warning("the folder stays: %s", refused)


@contextmanager
def _signed_in(properties: dict[str, Any]) -> Iterator[Grafana]:
    """The workspace's API, with a token that does not outlive the block."""
    where = {"workspaceId": properties["WorkspaceId"], "serviceAccountId": _account(properties["WorkspaceId"])}
    _tidy(where)
    # A run that was cut off left its token, and with it the name.
    # Names of tokens are unique in a workspace.
    name = f"podwright-{uuid.uuid4()}"
    made = aws("grafana").create_workspace_service_account_token(**where, name=name, secondsToLive=_TOKEN_SECONDS)
    token = made["serviceAccountToken"]
    try:
        yield Grafana(properties["Endpoint"], token["key"])
    finally:
        aws("grafana").delete_workspace_service_account_token(**where, tokenId=token["id"])


def _account(workspace: str) -> str:
    """The id of our service account, which is made when there is none. Data sources take an administrator."""
    pages = aws("grafana").get_paginator("list_workspace_service_accounts").paginate(workspaceId=workspace)
    for account in (account for page in pages for account in page["serviceAccounts"]):
        if account["name"] == ACCOUNT:
            return account["id"]
    return aws("grafana").create_workspace_service_account(workspaceId=workspace, name=ACCOUNT, grafanaRole="ADMIN")[
        "id"
    ]


def _tidy(where: dict[str, str]) -> None:
    """Delete tokens that have ended: Grafana keeps them, and counts them."""
    pages = aws("grafana").get_paginator("list_workspace_service_account_tokens").paginate(**where)
    for token in [token for page in pages for token in page["serviceAccountTokens"]]:
        if token["expiresAt"] < datetime.now(UTC):
            aws("grafana").delete_workspace_service_account_token(**where, tokenId=token["id"])


def _folder(api: Grafana, folder: dict[str, str]) -> None:
    result = api.find(f"/folders/{folder['uid']}")
    if result is None:
        api.post("/folders", folder)
    elif result["title"] != folder["title"]:
        # Without overwrite Grafana wants the version that it has.
        api.put(f"/folders/{folder['uid']}", {"title": folder["title"], "overwrite": True})


def _source(api: Grafana, source: dict[str, Any]) -> None:
    if api.find(f"/datasources/uid/{source['uid']}") is None:
        api.post("/datasources", source)
    else:
        api.put(f"/datasources/uid/{source['uid']}", source)


def _pages(properties: dict[str, Any]) -> list[dict[str, Any]]:
    content = aws("s3").get_object(Bucket=properties["AssetBucket"], Key=properties["AssetKey"])["Body"].read()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return [json.loads(archive.read(name)) for name in sorted(archive.namelist())]


def _dashboard(api: Grafana, page: dict[str, Any], properties: dict[str, Any]) -> None:
    result = api.find(f"/dashboards/uid/{page['uid']}")
    if result is not None and properties["Tag"] not in result["dashboard"].get("tags", []):
        raise Refused(
            f"the workspace has a dashboard {result['dashboard'].get('title')!r} with uid {page['uid']} that podwright "
            "did not make; save it under another name, or delete it"
        )
    message = f"podwright {properties['AssetDigest'][:12]}"
    # A dashboard that has an id is updated by that id, which is another one in each workspace; the uid alone is ours.
    body = {"dashboard": page | {"id": None}, "folderUid": properties["Folder"]["uid"], "overwrite": True}
    api.post("/dashboards/db", body | {"message": message})


def _let_in(workspace: str, before: dict[str, list[str]], groups: dict[str, list[str]]) -> None:
    """Give groups of IAM Identity Center their roles, and take those that the last deployment gave and this one not."""
    had = {(role, group) for role, ids in before.items() for group in ids}
    has = {(role, group) for role, ids in groups.items() for group in ids}
    # Those that are in already are added again: somebody may have taken them out by hand.
    changes = [("REVOKE", *item) for item in sorted(had - has)] + [("ADD", *item) for item in sorted(has)]
    if not changes:
        return
    answer = aws("grafana").update_permissions(
        workspaceId=workspace,
        updateInstructionBatch=[
            {"action": action, "role": role, "users": [{"id": group, "type": "SSO_GROUP"}]}
            for action, role, group in changes
        ],
    )
    # The call succeeds when single groups were refused; it lists them.
    if errors := answer["errors"]:
        first = errors[0]
        group = first["causedBy"]["users"][0]["id"]
        raise Refused(f"{len(errors)} groups were not let in; first {group}: {first['message']} ({first['code']})")
