"""Archives beside the lifecycle scripts: in the template, in node.json, and only where nodes install."""

import hashlib
import json
from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Template

from podwright.config.catalog.instance_types import catalog
from podwright.config.loading.artifacts import LockedArchive
from podwright.config.settings.groups import InstanceGroup
from podwright.config.settings.software import NodeSoftware, SoftwareVersions
from podwright.constructs.hyperpod.lifecycle_publication.construct import LifecyclePublication, archives_uri
from podwright.planning.node.archives import Archive, LockedFile
from podwright.planning.node.facts import ClusterFacts, FileSystems, node_facts

CONTENT = b"an installer"
DIGEST = hashlib.sha256(CONTENT).hexdigest()
SOFTWARE = NodeSoftware(install="ensure", versions=SoftwareVersions(efa_installer="1.50.0"))


@pytest.fixture
def file(tmp_path: Path) -> LockedFile:
    path = tmp_path / "efa"
    path.write_bytes(CONTENT)
    address = "https://efa-installer.amazonaws.com/aws-efa-installer-1.50.0.tar.gz"
    locked = LockedArchive(address=address, sha256=DIGEST, bytes=len(CONTENT))
    return LockedFile(Archive("efa_installer", "1.50.0", None, address), path, locked)


def published(stack: cdk.Stack, *files: LockedFile) -> dict[str, object]:
    bucket = s3.Bucket.from_bucket_name(stack, "Bucket", "sagemaker-test")
    facts = node_facts(
        cluster=ClusterFacts(
            name="prod",
            orchestrator="eks",
            region="us-west-2",
            dns_suffix="amazonaws.com",
            lifecycle="tolerant",
            setup_uri="",
        ),
        groups={"h200": InstanceGroup(instance_type="ml.p5en.48xlarge", count=2, zone="usw2-az2")},
        types=catalog(),
        file_systems=FileSystems(lustre={}, home=None),
        software=SOFTWARE,
        archives=files,
        archives_uri=archives_uri(bucket, "prod"),
    )
    LifecyclePublication(
        stack, "Scripts", bucket=bucket, prefix="prod", node_facts=facts, protection="retain", archives=files
    )
    (values,) = Template.from_stack(stack).find_resources("Custom::PodwrightLifecycle").values()
    return values["Properties"]


def test_the_handler_copies_each_archive_to_a_place_that_its_digest_names(stack: cdk.Stack, file: LockedFile) -> None:
    properties = published(stack, file)
    (source,) = properties["Archives"]  # pyrefly: ignore[not-iterable]
    assert source["Name"] == f"archives/{DIGEST}/efa_installer-1.50.0"
    statements = [
        statement
        for policy in Template.from_stack(stack).find_resources("AWS::IAM::Policy").values()
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
    ]
    reads = [statement for statement in statements if statement["Action"] == "s3:GetObject"]
    assert len([statement for statement in reads if source["Key"] in json.dumps(statement["Resource"])]) == 1


def test_nodes_are_told_where_it_is_and_what_it_must_be(stack: cdk.Stack, file: LockedFile) -> None:
    facts = json.loads(str(published(stack, file)["NodeFacts"]))
    assert facts["software"]["archives_uri"] == "s3://sagemaker-test/prod/archives"
    assert facts["software"]["install"] == "ensure"
    component = facts["groups"]["h200"]["software"]["components"]["efa_installer"]
    archive = {"file": f"{DIGEST}/efa_installer-1.50.0", "sha256": DIGEST, "architecture": None}
    assert component == {"version": "1.50.0", "archives": [archive]}
    assert facts["groups"]["h200"]["software"]["kernel_only"] is True


def test_without_archives_the_template_says_nothing_of_them(stack: cdk.Stack) -> None:
    assert "Archives" not in published(stack)
