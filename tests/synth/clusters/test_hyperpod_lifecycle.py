"""The publication of lifecycle scripts, by what the template and the asset say."""

import json
from pathlib import Path
from typing import Any, cast

import aws_cdk as cdk
import pytest
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Template

from podwright.config.catalog.instance_types import catalog
from podwright.config.settings.groups import InstanceGroup
from podwright.constructs.hyperpod.lifecycle_publication.construct import LifecyclePublication
from podwright.planning.node.facts import ClusterFacts, FileSystems, LustreMount, NodeFacts, node_facts

KEY = "arn:aws:kms:us-west-2:111122223333:key/01234567-89ab-cdef-0123-456789abcdef"
SYSTEM = InstanceGroup(instance_type="ml.m5.4xlarge", count=2, zone="usw2-az2")


def facts(dns_name: str = "fs-1", groups: dict[str, InstanceGroup] | None = None) -> NodeFacts:
    lustre = LustreMount(dns_name=dns_name, mount_name="abcdefgh", path="/fsx", zone="usw2-az2", efa=True)
    return node_facts(
        cluster=ClusterFacts(
            name="prod",
            orchestrator="eks",
            region="us-west-2",
            dns_suffix="amazonaws.com",
            lifecycle="tolerant",
            setup_uri="",
        ),
        groups=groups or {"system": SYSTEM},
        types=catalog(),
        file_systems=FileSystems(lustre={"lustre": lustre}, home=None),
    )


def publication(stack: cdk.Stack, **options: Any) -> LifecyclePublication:
    bucket = s3.Bucket.from_bucket_name(stack, "Bucket", "sagemaker-test")
    provided = {"bucket": bucket, "prefix": "prod", "node_facts": facts(), "protection": "retain"}
    return LifecyclePublication(stack, "Scripts", **provided | options)


def resource(stack: cdk.Stack) -> dict[str, Any]:
    (values,) = Template.from_stack(stack).find_resources("Custom::PodwrightLifecycle").values()
    return values["Properties"]


def allowed(stack: cdk.Stack) -> set[str]:
    (policy,) = Template.from_stack(stack).find_resources("AWS::IAM::Policy").values()
    statements = policy["Properties"]["PolicyDocument"]["Statement"]
    actions = [statement["Action"] for statement in statements]
    return {action for some in actions for action in (some if isinstance(some, list) else [some])}


def test_hands_the_handler_everything_that_the_prefix_depends_on(stack: cdk.Stack) -> None:
    publication(stack)
    properties = resource(stack)
    assert properties["Bucket"] == "sagemaker-test"
    assert properties["Prefix"] == "prod"
    assert properties["AssetKey"] == f"{properties['AssetDigest']}.zip"
    assert json.loads(properties["NodeFacts"]) == facts().model_dump(mode="json")


def test_values_that_a_deployment_knows_stay_references(stack: cdk.Stack) -> None:
    file_system = cdk.CfnResource(stack, "Lustre", type="AWS::FSx::FileSystem")
    publication(stack, node_facts=facts(file_system.get_att("DNSName").to_string()))
    text = json.dumps(resource(stack)["NodeFacts"])
    assert '{"Fn::GetAtt": ["Lustre", "DNSName"]}' in text
    assert "Token[" not in text


def test_the_uri_is_what_the_handler_answers(stack: cdk.Stack) -> None:
    made = publication(stack)
    (name,) = Template.from_stack(stack).find_resources("Custom::PodwrightLifecycle")
    assert stack.resolve(made.source_uri) == {"Fn::GetAtt": [name, "SourceS3Uri"]}


@pytest.mark.parametrize(("protection", "removes"), [("retain", False), ("destroy", True)])
def test_protection_decides_what_a_delete_may_do(stack: cdk.Stack, protection: str, removes: bool) -> None:
    publication(stack, protection=protection)
    assert resource(stack)["RemoveOnDelete"] == str(removes).lower()
    assert ({"s3:DeleteObject", "s3:DeleteObjectVersion", "s3:ListBucketVersions"} <= allowed(stack)) is removes
    assert any(action.startswith("s3:Delete") for action in allowed(stack)) is removes


def test_uses_the_key_of_the_bucket(stack: cdk.Stack) -> None:
    publication(stack, key=kms.Key.from_key_arn(stack, "Key", KEY))
    assert {"kms:Decrypt", "kms:GenerateDataKey"} <= allowed(stack)
    (logs,) = Template.from_stack(stack).find_resources("AWS::Logs::LogGroup").values()
    assert logs["Properties"]["KmsKeyId"] == KEY


def test_the_function(stack: cdk.Stack) -> None:
    publication(stack)
    (function,) = Template.from_stack(stack).find_resources("AWS::Lambda::Function").values()
    properties = function["Properties"]
    assert properties["Handler"] == "podwright/constructs/hyperpod/lifecycle_publication/handler/index.handler"
    assert properties["Architectures"] == ["arm64"]
    # Long enough for three runs of five minutes and the pauses between them.
    assert int(resource(stack)["ServiceTimeout"]) == 3 * 300 + 180


def assets(stack: cdk.Stack) -> dict[str, set[str]]:
    """Files of each asset by what they are for."""
    app = cast(cdk.App, stack.node.root)
    app.synth()
    actual = {}
    for folder in Path(app.outdir).glob("asset.*"):
        files = {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}
        actual["scripts" if "on_create.sh" in files else "handler"] = files
    return actual


def test_ships_the_scripts_and_a_handler_that_stands_alone(stack: cdk.Stack) -> None:
    publication(stack)
    shipped = assets(stack)
    assert {"on_create.sh", "podwright_node/__main__.py", "podwright_node/storage/container_storage.py"} <= shipped[
        "scripts"
    ]
    assert shipped["handler"] == {
        "podwright/constructs/hyperpod/lifecycle_publication/handler/index.py",
        "podwright/constructs/common/handler_runtime/response.py",
    }


def test_a_folder_of_the_users_own(stack: cdk.Stack, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "on_create.sh").write_text("#!/bin/bash\n")
    publication(stack, scripts=own)
    assert assets(stack)["scripts"] == {"on_create.sh"}


def test_a_missing_folder_is_named(stack: cdk.Stack, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nothing to ship in"):
        publication(stack, scripts=tmp_path / "missing")
