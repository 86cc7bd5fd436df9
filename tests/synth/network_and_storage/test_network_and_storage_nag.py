"""cdk-nag has nothing to say about network and storage that nobody has answered."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import aws_cdk as cdk
import cdk_nag
import pytest

from podwright.config.catalog.names import lifecycle_bucket_name
from podwright.config.settings.network import Network
from podwright.config.settings.storage import Buckets, Lustre, OpenZfs, Storage
from podwright.constructs.network.network import EnvironmentNetwork
from podwright.constructs.storage.buckets import CheckpointBucket, LifecycleBucket
from podwright.constructs.storage.key import EnvironmentKey
from podwright.constructs.storage.lustre import LustreFileSystem
from podwright.constructs.storage.openzfs import OpenZfsHome


def define(stack: cdk.Stack, **network: Any) -> None:
    key = EnvironmentKey(stack, "Key", settings=Storage(), protection="retain").key
    settings = Network.model_validate({"zones": ["usw2-az2", "usw2-az3"], **network})
    made = EnvironmentNetwork(
        stack, "Network", settings=settings, features={"nodes", "lustre"}, protection="retain", key=key
    )
    clients, subnet = made.node_security_group, made.node_subnets["usw2-az2"]
    lustre = Lustre(zone="usw2-az2", capacity_gib=9600, throughput=500, efa=True)
    LustreFileSystem(
        stack, "Lustre", settings=lustre, vpc=made.vpc, subnet=subnet, clients=clients, key=key, protection="retain"
    )
    home = OpenZfs(zone="usw2-az2")
    OpenZfsHome(
        stack, "Home", settings=home, vpc=made.vpc, subnet=subnet, clients=clients, key=key, protection="retain"
    )
    name = lifecycle_bucket_name("prod", "111122223333", "us-west-2")
    LifecycleBucket(stack, "Lifecycle", settings=Buckets(), name=name, key=key, protection="retain")
    CheckpointBucket(stack, "Checkpoints", settings=Buckets(), key=key, protection="retain")


def findings(stack: cdk.Stack) -> list[str]:
    """Rule ids of what is left after the acknowledgements in our constructs."""
    app = cast(cdk.App, cdk.App.of(stack))
    cdk.Validations.of(app).add_plugins(cdk_nag.AwsSolutionsChecks())
    # A finding makes the synthesis fail, after it has written the report.
    with suppress(RuntimeError):
        app.synth()
    report = json.loads((Path(app.outdir) / "validation-report.json").read_text())
    return [str(violation) for plugin in report["pluginReports"] for violation in plugin["violations"]]


@pytest.mark.parametrize("network", [{}, {"endpoints": "closed"}, {"flow_logs_days": 0}], ids=str)
def test_nothing_is_left(stack: cdk.Stack, network: dict[str, Any]) -> None:
    define(stack, **network)
    assert findings(stack) == []


def test_a_finding_would_be_seen(stack: cdk.Stack) -> None:
    define(stack)
    cdk.aws_s3.Bucket(stack, "Careless")
    assert any("AwsSolutions-S10" in finding for finding in findings(stack))
