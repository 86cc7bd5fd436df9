"""Installs, changes and removes an extension of a Slurm cluster through SageMaker's API: CloudFormation has no type.

A cluster has one extension of a name. Ours carries a tag that says for which resource of which stack it was made, so
that a request that runs again finds it, and one that somebody else installed is never taken over. A change of settings
names those that are gone as null, which gives them their defaults back; an earlier version means a new installation.

HyperPod installs on every node by and by. A request is answered once all have it, at once when it failed, and after
some minutes in any case: a node that comes later must not hold up a deployment, and `podwright doctor` says what lacks.

Lambda's own SDK may be older than these calls, which botocore has from 1.43.127 (2026-11-09) on: `models` brings what
an older one lacks. A creation that failed before its first change says so by its id, and its deletion calls nobody.

Sources: botocore 1.44.5, service model of SageMaker; SageMaker API Reference, UpdateClusterExtension, 2026-11.
"""

import json
import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError
from botocore.session import get_session

from ....common.handler_runtime.response import Answer, answering, was_not_created

_MODELS: Final = Path(__file__).parent / "models"
OWNER_TAG: Final = "podwright:resource"
_POLL_SECONDS: Final = 10
# Left of Lambda's time, so that the answer to CloudFormation is sent before Lambda ends the process.
_MARGIN_SECONDS: Final = 60
# Two calls name this case differently in SageMaker's model, and a token that SageMaker has forgotten makes it possible.
_EXISTS: Final = ("ConflictException", "ResourceInUse")
_FAILED: Final = ("CreateFailed", "UpdateFailed", "DeleteFailed")
_RETRIES: Final = Config(retries={"mode": "standard", "max_attempts": 8}, connect_timeout=5, read_timeout=20)

logger = logging.getLogger()


class Refused(Exception):
    """SageMaker did not install what was asked for, or it is not ours to change."""


def handle(event: dict[str, Any], context: Any) -> Answer:
    """Carry out one request."""
    if was_not_created(event):
        return Answer(event["PhysicalResourceId"])
    extension = Extension(event, context)
    if event["RequestType"] == "Delete":
        extension.delete()
        return Answer(event["PhysicalResourceId"])
    return extension.install()


def session_with_models() -> boto3.Session:
    """A session whose SageMaker has the calls for extensions, whichever botocore Lambda has."""
    core = get_session()
    # First, because botocore takes one file of a name. The next client reads it: nothing has been loaded yet.
    core.get_component("data_loader").search_paths.insert(0, str(_MODELS))
    return boto3.Session(botocore_session=core)


class Extension:
    """What one request is about, and the calls that carry it out."""

    def __init__(self, event: dict[str, Any], context: Any) -> None:
        properties = event["ResourceProperties"]
        self.cluster: str = properties["ClusterArn"]
        self.name: str = properties["Name"]
        self.version: str | None = properties.get("Version") or None
        # As text, because CloudFormation turns every number of a property into a string.
        self.settings: dict[str, Any] = json.loads(properties["Settings"])
        # The id of the stack and not its name: a stack that is deleted and made again is another owner.
        self.owner = f"{event['StackId'].rpartition('/')[2]}/{event['LogicalResourceId']}"
        self.tags = [*properties.get("Tags", []), {"Key": OWNER_TAG, "Value": self.owner}]
        # The same for every retry of a request, so that a repeated call makes no second installation.
        self.token: str = event["RequestId"]
        self.event, self.context = event, context
        self.client = session_with_models().client("sagemaker", config=_RETRIES)

    def install(self) -> Answer:
        """Install the extension, or bring the one that is there to the wanted version and settings."""
        result = self._find()
        # Made of what identifies the extension: an update keeps it, so CloudFormation deletes nothing after one.
        # From here on a failure may leave something behind, which this id lets a deletion look for.
        self.event["PhysicalResourceId"] = f"{self.cluster}/{self.name}"
        # SageMaker updates an extension to later versions only.
        if result is not None and self._earlier(result["ExtensionVersion"]):
            self._remove(result["ExtensionArn"])
            result = None
        arn = self._create() if result is None else self._change(result["ExtensionArn"])
        status = self._settled(arn)
        return Answer(self.event["PhysicalResourceId"], {"Arn": arn, "Status": status})

    def delete(self) -> None:
        """Remove the extension, if there is one of ours."""
        try:
            result = self._find()
        except Refused as error:
            # A creation that was refused for it is being rolled back.
            logger.info("left alone: %s", error)
            return
        if result is not None:
            self._remove(result["ExtensionArn"])

    def _find(self) -> dict[str, Any] | None:
        """Ours. Raises Refused for one that somebody else installed; None when there is none, nor a cluster."""
        try:
            pages = self.client.get_paginator("list_cluster_extensions").paginate(ClusterArn=self.cluster)
            items = [item for page in pages for item in page["Extensions"] if item["ExtensionName"] == self.name]
        except ClientError as error:
            if _code(error) == "ResourceNotFound":
                return None
            raise
        if not items:
            return None
        tags = self.client.list_tags(ResourceArn=items[0]["ExtensionArn"])["Tags"]
        if {"Key": OWNER_TAG, "Value": self.owner} not in tags:
            raise Refused(
                f"{self.cluster} has an extension {self.name} that this stack did not install; delete it, or write "
                f"`metrics: off` under observability"
            )
        return items[0]

    def _create(self) -> str:
        """Create the extension, or take over the one that an earlier try made. Its ARN."""
        desired: dict[str, Any] = {"ExtensionVersion": self.version} if self.version else {}
        try:
            return self.client.create_cluster_extension(
                ClusterArn=self.cluster,
                ExtensionName=self.name,
                ConfigurationValues=json.dumps(self.settings),
                Tags=self.tags,
                ClientToken=self.token,
                **desired,
            )["ExtensionArn"]
        except ClientError as error:
            mine = self._find() if _code(error) in _EXISTS else None
            if mine is None:
                raise
            return mine["ExtensionArn"]

    def _change(self, arn: str) -> str:
        details = self._describe(arn)["ExtensionDetails"]
        now = json.loads(details.get("ConfigurationValues") or "{}")
        desired: dict[str, Any] = {}
        if self.version and self.version != details["ExtensionVersion"]:
            desired["ExtensionVersion"] = self.version
        if now != self.settings:
            desired["ConfigurationValues"] = json.dumps(_change(now, self.settings))
        # The same request once more is how SageMaker tries again on nodes where it failed.
        if desired or details["Status"] in _FAILED:
            self.client.update_cluster_extension(
                ClusterArn=self.cluster, ExtensionArn=arn, ClientToken=self.token, **desired
            )
        return arn

    def _remove(self, arn: str) -> None:
        try:
            self.client.delete_cluster_extension(ClusterArn=self.cluster, ExtensionArn=arn)
            # DescribeClusterExtension ends the loop by answering ResourceNotFound.
            while self._in_time():
                self._describe(arn)
                time.sleep(_POLL_SECONDS)
        except ClientError as error:
            if _code(error) != "ResourceNotFound":
                raise

    def _settled(self, arn: str) -> str:
        """The status once nothing is in progress, or when time is up. Raises Refused when the installation failed."""
        while True:
            observed = self._describe(arn)
            status: str = observed["ExtensionDetails"]["Status"]
            logger.info("%s is %s on %s", self.name, status, observed.get("NodeSummary"))
            if status in _FAILED:
                raise Refused(f"{self.name} is {status}: {_issues(observed) or 'SageMaker gives no reason'}")
            if status not in ("Creating", "Updating") or not self._in_time():
                return status
            time.sleep(_POLL_SECONDS)

    def _describe(self, arn: str) -> dict[str, Any]:
        return self.client.describe_cluster_extension(ClusterArn=self.cluster, ExtensionArn=arn)

    def _in_time(self) -> bool:
        return self.context.get_remaining_time_in_millis() / 1000 > _MARGIN_SECONDS + _POLL_SECONDS

    def _earlier(self, installed: str) -> bool:
        return self.version is not None and _parts(self.version) < _parts(installed)


def _change(now: Mapping[str, Any], desired: Mapping[str, Any]) -> dict[str, Any]:
    """What turns the settings `now` into `desired`, which leaves out what is to have its default."""
    # A key that is null gets its default back; one that is left out would keep its value.
    change: dict[str, Any] = dict.fromkeys(now.keys() - desired.keys())
    for key, value in desired.items():
        before = now.get(key)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            if inner := _change(before, value):
                change[key] = inner
        elif value != before:
            change[key] = value
    return change


def _issues(observed: Mapping[str, Any]) -> str:
    issues = observed.get("Health", {}).get("Issues", [])
    return "; ".join(f"{item['Code']} on {item['NodeCount']} nodes: {item['Message']}" for item in issues)


def _parts(version: str) -> tuple[int, ...]:
    # By number, as text 1.10 would come before 1.9.
    return tuple(int(part) for part in version.split("."))


def _code(error: ClientError) -> str:
    return str(error.response["Error"]["Code"])


handler = answering(handle)
