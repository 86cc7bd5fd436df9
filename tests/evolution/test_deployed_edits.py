"""Day two in the sandbox: a deployed environment is edited and deployed again, and what holds data stays as it is.

`test_edits.py` compares templates. Here podwright deploys the first, with its assets; CloudFormation gets the others
from this process, in the order of the CDK CLI, and the physical ids are read back.
"""

import json
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import boto3
import pytest

from cloudformation_cdk import podwright
from podwright.operations.aws import sandbox_server as server
from sandbox_stacks import StackUnderTest
from synthesis import STATEFUL, environment_of, synthesize

FILE = """
account: "123456789012"
region: us-west-2
protection: destroy
network: {{zones: {zones}}}
storage: {{lustre: {{zone: usw2-az1}}}}
cluster: {{name: {name}, zones: [usw2-az1, usw2-az2]}}
instance_groups:
  workers: {{instance_type: ml.c5.4xlarge, count: {count}, zone: {zone}}}
  system: {{instance_type: ml.m5.4xlarge, count: 2}}
"""
BASE = {"zones": "[usw2-az1, usw2-az2]", "name": "alpha", "count": "1", "zone": "usw2-az1"}
STACKS = ("network", "storage", "eks", "cluster")
ASSETS = "cdk-hnb659fds-assets-123456789012-us-west-2"
Ids = dict[str, set[str]]


class Deployed:
    """The environment in a sandbox of its own."""

    def __init__(self, project: Path, endpoint: str) -> None:
        session = boto3.Session("sandbox", "sandbox", region_name="us-west-2")
        self._client = cache(partial(session.client, endpoint_url=endpoint))
        (project / "environments").mkdir()
        (project / "environments" / "sandbox.yaml").write_text(FILE.format(**BASE))
        podwright(project, "deploy", "--json")

    def edit(self, refused: str | None = None, **changes: str) -> Ids:
        """Deploy with these changes to the first file. Gives the physical ids afterwards."""
        synthesis = synthesize(environment_of(FILE.format(**BASE | changes), "sandbox"))
        # The first stack that fails is the last one that is tried.
        output = next(filter(None, (self._update(name, synthesis.templates[name]) for name in STACKS)), "")
        assert refused in output if refused else not output, output
        return self.ids()

    def _update(self, name: str, template: dict[str, Any]) -> str:
        """Update one stack. Gives why it was rolled back, or nothing."""
        stack = StackUnderTest(self._client("cloudformation"), f"sandbox-{name}")
        self._client("s3").put_object(Bucket=ASSETS, Key=f"{name}.json", Body=json.dumps(template).encode())
        url = f"https://{ASSETS}.s3.us-west-2.amazonaws.com/{name}.json"
        try:
            stack.client.update_stack(StackName=stack.name, TemplateURL=url, Capabilities=["CAPABILITY_NAMED_IAM"])
        except stack.client.exceptions.ClientError as error:
            if "No updates are to be performed" not in str(error):
                raise
            return ""
        if stack.wait() == "UPDATE_COMPLETE":
            return ""
        return "\n".join(event.get("ResourceStatusReason", "") for event in stack.events())

    def ids(self) -> Ids:
        """The physical ids of stateful resources by kind."""
        actual: Ids = {kind: set() for kind in STATEFUL.values()}
        for stack in STACKS:
            described = self._client("cloudformation").describe_stack_resources(StackName=f"sandbox-{stack}")
            for resource in described["StackResources"]:
                if kind := STATEFUL.get(resource["ResourceType"]):
                    actual[kind].add(resource["PhysicalResourceId"])
        return actual

    def published(self) -> set[str]:
        """The prefixes of the lifecycle bucket, versions and delete markers included."""
        pages = (
            self._client("s3")
            .get_paginator("list_object_versions")
            .paginate(Bucket="sagemaker-sandbox-123456789012-us-west-2")
        )
        objects = [one for page in pages for one in [*page.get("Versions", []), *page.get("DeleteMarkers", [])]]
        return {one["Key"].partition("/")[0] for one in objects}


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    project = tmp_path_factory.mktemp("evolution")
    running = server.start(project, port=0, time_scale=0.25)
    yield Deployed(project, running.endpoint)
    server.stop(project)


def without(kind: str, ids: Ids) -> Ids:
    return {other: actual for other, actual in ids.items() if other != kind}


def test_what_holds_data_survives_every_edit(deployed: Deployed) -> None:
    wide = "[usw2-az3, usw2-az2, usw2-az1]"
    first = deployed.ids()
    assert all(first[kind] for kind in ("vpc", "subnet", "eks", "file system", "bucket", "key", "cluster"))

    moved = deployed.edit(zones=wide, zone="usw2-az3", count="2")
    assert moved["subnet"] > first["subnet"]
    assert without("subnet", moved) == without("subnet", first)

    # The zone goes in a second step: until its groups have left, the cluster stack imports its subnet.
    assert deployed.edit(refused="in use by sandbox-cluster", count="2") == moved

    # A new name would replace the cluster, but an EKS cluster takes only one: refused, rolled back, nothing lost.
    assert deployed.edit(refused="already belongs to HyperPod", zones=wide, count="2", name="beta") == moved
    assert deployed.published() == {"alpha"}, "what was published under the other name is left, so the bucket stays"

    assert deployed.edit(zones=wide, count="2") == moved
    assert deployed.edit(count="2") == first
