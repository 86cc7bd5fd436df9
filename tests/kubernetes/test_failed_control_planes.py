"""Clusters whose control plane is installed and does not start."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from podwright.operations.aws import sandbox_server as server
from podwright.sandbox.control_plane.cache import Cache
from podwright.sandbox.control_plane.pins import pins
from sandbox_network import surroundings
from sandbox_stacks import StackUnderTest
from waiting import until

REGION = "us-west-2"


@pytest.fixture
def aws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Any]]:
    """Clients of a sandbox whose control planes are programs that end at once."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    cache = Cache.of_user()
    for part in pins().parts:
        for name in part.files:
            program = cache.unfinished(part) / name
            program.parent.mkdir(parents=True, exist_ok=True)
            program.write_text("#!/bin/sh\necho no space left on device\nexit 1\n")
            program.chmod(0o755)
        cache.finish(part, 0.1)
    running = server.start(tmp_path, port=0, time_scale=0.1, kubernetes="real")
    session = boto3.Session("sandbox", "sandbox", region_name=REGION)
    yield lambda service: session.client(service, endpoint_url=running.endpoint)
    server.stop(tmp_path)


def test_a_sandbox_that_starts_again_says_whose_control_plane_does_not(
    aws: Callable[[str], Any], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    network = surroundings(aws)
    aws("eks").create_cluster(name="fails", roleArn=network.role, resourcesVpcConfig={"subnetIds": network.subnets})
    until(lambda: aws("eks").describe_cluster(name="fails")["cluster"]["status"] == "FAILED")
    server.stop(tmp_path)
    assert capfd.readouterr().err == ""
    server.start(tmp_path)
    output = capfd.readouterr().err
    assert output.startswith(
        "podwright: the cluster fails has no Kubernetes API: etcd ended at its start:\nno space left"
    )
    assert "    → its log is " in output


def test_a_protected_cluster_that_never_came_up_is_rolled_back(aws: Callable[[str], Any]) -> None:
    stack, network = StackUnderTest(aws("cloudformation")), surroundings(aws)
    properties = {
        "Name": "fails",
        "RoleArn": network.role,
        "DeletionProtection": True,
        "ResourcesVpcConfig": {"SubnetIds": network.subnets},
    }
    for _ in range(2):
        status = stack.create({"Cluster": {"Type": "AWS::EKS::Cluster", "Properties": properties}})
        assert status == "ROLLBACK_COMPLETE", stack.log()
        assert "etcd ended at its start:\nno space left on device" in stack.reasons("Cluster")
        assert aws("eks").list_clusters()["clusters"] == []
        stack.delete()
