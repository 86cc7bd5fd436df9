"""Makes compute quotas and scheduler configurations through SageMaker's API, where CloudFormation lacks their types.

The API has no client token and refuses a second object of a name, so an object carries a tag that says for which
resource of which stack it was made: a request that is carried out again finds what the first run made, and an object of
somebody else is never taken over. An update names the version that it is about, and is tried again with the next one
when somebody was faster.

Sources: botocore 1.44.5, service model of SageMaker; schemas AWS::SageMaker::ComputeQuota and
AWS::SageMaker::ClusterSchedulerConfig, 2026-10-20.
"""

import json
import logging
import re
import time
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from ....common.handler_runtime.response import Answer, answering
from .kinds import KINDS, Kind

OWNER_TAG: Final = "podwright:resource"
_POLL_SECONDS: Final = 5
_ATTEMPTS: Final = 5
_ID: Final = re.compile(r"[a-z0-9]{12}")
_RETRIES: Final = Config(retries={"mode": "standard", "max_attempts": 8}, connect_timeout=5, read_timeout=20)

logger = logging.getLogger()


class Refused(Exception):
    """SageMaker did not make what was asked for, or it is not ours to change."""


def handle(event: dict[str, Any], _: Any) -> Answer:
    """Carry out one request."""
    scheduler = Scheduler(event)
    match event["RequestType"]:
        case "Create":
            result = scheduler.create()
        case "Update":
            result = scheduler.update(event["PhysicalResourceId"])
        case _:
            scheduler.delete(event["PhysicalResourceId"])
            return Answer(event["PhysicalResourceId"])
    return Answer(scheduler.kind.id_of(result), {"Arn": scheduler.kind.arn_of(result)})


class Scheduler:
    """What one request is about, and the calls that carry it out."""

    def __init__(self, event: dict[str, Any]) -> None:
        properties = event["ResourceProperties"]
        self.kind: Kind = KINDS[event["ResourceType"]]
        self.name: str = properties["Name"]
        self.cluster: str = properties["ClusterArn"]
        # As text, because CloudFormation turns every number of a property into a string.
        self.settings: dict[str, Any] = json.loads(properties["Settings"])
        # The id of the stack and not its name: a stack that is deleted and made again is another owner.
        self.owner = f"{event['StackId'].rpartition('/')[2]}/{event['LogicalResourceId']}"
        self.tags = [*properties.get("Tags", []), {"Key": OWNER_TAG, "Value": self.owner}]
        self.client = boto3.Session().client("sagemaker", config=_RETRIES)

    def create(self) -> dict[str, Any]:
        """Make the object, or find what an earlier run of this request made; returns it once it is in force."""
        try:
            made = self._call("create", Name=self.name, ClusterArn=self.cluster, Tags=self.tags, **self.settings)
            return self._in_force(self.kind.id_of(made))
        except ClientError as error:
            # The API has no client token: one of this name may be what a lost answer left behind, or a stranger's.
            if _code(error) != "ConflictException":
                raise
            mine = self._mine()
            if mine is None:
                raise Refused(
                    f"{self.name} exists on {self.cluster} and this stack did not make it; delete it, or give another "
                    f"name. SageMaker: {error.response['Error']['Message']}"
                ) from error
            return self._in_force(mine)

    def update(self, identifier: str) -> dict[str, Any]:
        """Change the object. One that is gone, or has another name, cluster or team, is another object and made."""
        for attempt in range(1, _ATTEMPTS + 1):
            # SageMaker refuses to change an object while it is being created or updated.
            current = self._at_rest(identifier)
            if current is None or self._is_other(current):
                # A new id in the answer has CloudFormation delete the object of the old id once the update has
                # succeeded.
                return self.create()
            if current["Status"] in ("Created", "Updated") and _says(current, self.settings):
                break
            try:
                # The version is a lock: SageMaker refuses the change when somebody else was faster.
                version = self.kind.version_of(current)
                self._call("update", **self._address(identifier), TargetVersion=version, **self.settings)
                break
            except ClientError as error:
                if _code(error) != "ConflictException" or attempt == _ATTEMPTS:
                    raise
                logger.warning("somebody else changed %s meanwhile: %s", self.name, error)
                time.sleep(_POLL_SECONDS)
        result = self._in_force(identifier)
        # An update takes no tags, unlike a creation.
        self.client.add_tags(ResourceArn=self.kind.arn_of(result), Tags=self.tags)
        return result

    def delete(self, identifier: str) -> None:
        """Delete the object and wait until it is gone; nothing when there is none."""
        # A failed creation has an id of our own making, which SageMaker does not know; its tag finds what it left.
        result = identifier if _ID.fullmatch(identifier) else self._mine()
        if result is None or self._at_rest(result) is None:
            return
        # Anything that still happens to the object had ended by then; SageMaker refuses to delete one that is changing.
        self._call("delete", **self._address(result))
        left = self._at_rest(result)
        if left is not None and left["Status"] != "Deleted":
            raise self._refused(left)

    def _is_other(self, before: dict[str, Any]) -> bool:
        return (before["Name"], before.get("ClusterArn"), _team(before)) != (
            self.name,
            self.cluster,
            _team(self.settings),
        )

    def _mine(self) -> str | None:
        """The id of the object that this resource made, if there is one."""
        pages = self.client.get_paginator(f"list_{self.kind.noun}s").paginate(
            # NameContains is a part of the name, so others come along.
            ClusterArn=self.cluster,
            NameContains=self.name,
        )
        for item in (item for page in pages for item in page[f"{self.kind.member}Summaries"]):
            if item["Name"] == self.name:
                tags = self.client.list_tags(ResourceArn=self.kind.arn_of(item))["Tags"]
                if {"Key": OWNER_TAG, "Value": self.owner} in tags:
                    return self.kind.id_of(item)
        return None

    def _in_force(self, identifier: str) -> dict[str, Any]:
        """The object once it holds. Raises Refused when it does not."""
        result = self._at_rest(identifier)
        if result is None:
            raise Refused(f"{self.name} was deleted while it was waited for")
        if result["Status"] not in ("Created", "Updated"):
            raise self._refused(result)
        return result

    def _at_rest(self, identifier: str) -> dict[str, Any] | None:
        """The object once nothing happens to it any more; None when there is none."""
        while True:
            try:
                result = self._call("describe", **self._address(identifier))
            except ClientError as error:
                if _code(error) != "ResourceNotFound":
                    raise
                return None
            if not result["Status"].endswith("ing"):
                return result
            time.sleep(_POLL_SECONDS)

    def _refused(self, result: dict[str, Any]) -> Refused:
        return Refused(
            f"{self.name} is {result['Status']}: {result.get('FailureReason') or 'SageMaker gives no reason'}"
        )

    def _address(self, identifier: str) -> dict[str, str]:
        return {f"{self.kind.member}Id": identifier}

    def _call(self, verb: str, **arguments: Any) -> dict[str, Any]:
        return getattr(self.client, f"{verb}_{self.kind.noun}")(**arguments)


def _team(settings: dict[str, Any]) -> str | None:
    return settings.get("ComputeQuotaTarget", {}).get("TeamName")


def _says(result: Any, desired: Any) -> bool:
    """Whether what is there says what is wanted; the service may say more."""
    if isinstance(desired, dict):
        return isinstance(result, dict) and all(_says(result.get(name), value) for name, value in desired.items())
    if isinstance(desired, list):
        same = isinstance(result, list) and len(result) == len(desired)
        return same and all(map(_says, result, desired))
    return result == desired


def _code(error: ClientError) -> str:
    return error.response["Error"]["Code"]


handler = answering(handle)
