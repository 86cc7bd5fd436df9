"""Day two in the sandbox: a deployed environment is edited and deployed again, and what holds data stays as it is.

`test_edits.py` compares templates; here the real CDK CLI deploys them, and the physical ids are read back.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import boto3
import pytest

from podwright.operations.sandbox import server
from synthesis import STATEFUL

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
Ids = dict[str, set[str]]


@pytest.fixture(scope="module")
def deploy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Ids]]:
    """Deploys the file with these changes, and gives the physical ids of stateful resources by kind."""
    project = tmp_path_factory.mktemp("evolution")
    (project / "environments").mkdir()
    running = server.start(project, port=0, time_scale=0.25)

    def run(refused: str | None = None, **changes: str) -> Ids:
        (project / "environments" / "sandbox.yaml").write_text(FILE.format(**BASE | changes))
        bare = {
            "PATH": os.environ["PATH"],
            "HOME": os.environ["HOME"],
            "CDK_HOME": str(project),
            "CDK_VALIDATION": "false",
        }
        command = [sys.executable, "-P", "-m", "podwright.operations.cli", "deploy", "--json"]
        done = subprocess.run(command, cwd=project, env=bare, capture_output=True, text=True, timeout=400)
        assert done.returncode == (1 if refused else 0), done.stdout + done.stderr
        assert (refused or "") in done.stderr
        session = boto3.Session("sandbox", "sandbox", region_name="us-west-2")
        client = session.client("cloudformation", endpoint_url=running.endpoint)
        found: Ids = {kind: set() for kind in STATEFUL.values()}
        for stack in ("network", "storage", "eks", "cluster"):
            for resource in client.describe_stack_resources(StackName=f"sandbox-{stack}")["StackResources"]:
                if kind := STATEFUL.get(resource["ResourceType"]):
                    found[kind].add(resource["PhysicalResourceId"])
        return found

    yield run
    server.stop(project)


def without(kind: str, ids: Ids) -> Ids:
    return {other: found for other, found in ids.items() if other != kind}


def test_what_holds_data_survives_every_edit(deploy: Callable[..., Ids]) -> None:
    wide = "[usw2-az3, usw2-az2, usw2-az1]"
    first = deploy()

    moved = deploy(zones=wide, zone="usw2-az3", count="2")
    assert moved["subnet"] > first["subnet"]
    assert without("subnet", moved) == without("subnet", first)

    # The zone goes in a second step: until its groups have left, the cluster stack imports its subnet.
    assert deploy(refused="in use by sandbox-cluster", count="2") == moved

    # A new name would replace the cluster, but an EKS cluster takes only one: refused, rolled back, nothing lost.
    assert deploy(refused="delete the cluster stack first", zones=wide, count="2", name="beta") == moved

    assert deploy(zones=wide, count="2") == moved
    assert deploy(count="2") == first
