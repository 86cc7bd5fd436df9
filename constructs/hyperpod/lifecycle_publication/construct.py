"""Lifecycle scripts and node.json in S3, where HyperPod nodes read them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_s3_assets as s3_assets
from constructs import Construct

from ....planning.node.archives import LockedFile
from ....planning.node.facts import NodeFacts
from ....planning.node.software_facts import published_name
from ...common.arguments import checked
from ...common.assets import folder_asset, shipped_files
from ...common.custom_resource import HandlerFunction
from ...common.permission import allow
from ...common.protection import Protection

SCRIPTS: Final = Path(__file__).resolve().parents[3] / "lifecycle_scripts"
"""podwright's own lifecycle scripts."""
RESOURCE_TYPE: Final = "Custom::PodwrightLifecycle"
ARCHIVES: Final = "archives"
"""Name of the prefix of archives beside the prefixes of scripts, whose names are digests."""


class LifecyclePublication(Construct):
    """Publishes a folder of lifecycle scripts, and node.json beside them, to `s3://BUCKET/PREFIX/DIGEST/`.

    The digest covers the scripts and node.json with the values that only a deployment knows, so a prefix never changes:
    a new content gets a new prefix, `source_uri` moves to it, and the older ones stay while the stack exists. Nodes
    read a new prefix when they are created, replaced or get new software. With protection `destroy` everything below
    PREFIX goes with the stack, and with another PREFIX; with `retain` it stays. In an existing bucket the function has
    rights below PREFIX alone: there, what an earlier PREFIX held stays.

    Archives that nodes install from lie in `archives_uri(bucket, PREFIX)`, outside of what HyperPod copies to every
    node: a node takes the one it needs.

    Example:
        from podwright.config.catalog.instance_types import catalog
        from podwright.planning.node.facts import ClusterFacts, FileSystems, node_facts
        from podwright.constructs.hyperpod.lifecycle_publication.construct import LifecyclePublication
        cluster = ClusterFacts(name="prod", orchestrator="eks", region=stack.region, dns_suffix=stack.url_suffix,
                               lifecycle="tolerant", setup_uri="")
        facts = node_facts(cluster=cluster, groups=environment.instance_groups, types=catalog(),
                           file_systems=FileSystems(lustre={}, home=None))
        scripts = LifecyclePublication(stack, "Scripts", bucket=bucket, prefix="prod", node_facts=facts,
                                       protection="retain", key=key)
        uri = scripts.source_uri
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        bucket: s3.IBucket,
        prefix: str,
        node_facts: NodeFacts,
        protection: Protection,
        key: kms.IKey | None = None,
        scripts: Path = SCRIPTS,
        archives: Sequence[LockedFile] = (),
        provisioning_parameters: Mapping[str, Any] | None = None,
    ) -> None:
        """Defines the publication.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            bucket: Where to; its name begins with sagemaker-.
            prefix: Below which, such as the cluster's name. Nothing else may write there, but for nodes their results.
            node_facts: What becomes node.json.
            protection: Whether what was published survives the stack.
            key: The KMS key of the bucket.
            scripts: The folder; its `on_create.sh` is what HyperPod runs.
            archives: What nodes install from.
            provisioning_parameters: What becomes provisioning_parameters.json, if Slurm is configured by it.

        Raises:
            FileNotFoundError: the folder is missing or empty.
        """
        super().__init__(scope, construct_id)
        removes = protection == "destroy"

        asset = folder_asset(self, "Files", shipped_files(scripts))
        files = {
            file: s3_assets.Asset(
                self, f"Archive-{file.archive.name}", path=str(file.path), asset_hash=file.locked.sha256
            )
            for file in archives
        }
        function = HandlerFunction(
            self,
            "Handler",
            folder=Path(__file__).parent / "handler",
            description=f"Publishes lifecycle scripts to {prefix}",
            memory_mib=512,
            key=key,
        )
        below = bucket.arn_for_objects(f"{prefix}/*")
        reason = "Names below the prefix carry a digest that only a deployment knows."
        objects, lists = ["s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload"], ["s3:ListBucket"]
        only_below = {"StringLike": {"s3:prefix": f"{prefix}/*"}}
        # A bucket can be deleted only when it is empty, so what was published goes before it.
        removals, list_versions = ["s3:DeleteObject", "s3:DeleteObjectVersion"], ["s3:ListBucketVersions"]
        if removes and isinstance(bucket, s3.Bucket):
            # Of the whole bucket, which is the stack's own: when the prefix has changed, the clean-up removes the other
            # one, after a rollback too, and the policy names only one of them by then.
            allow(
                function.role,
                removals,
                [bucket.arn_for_objects("*")],
                because="A prefix of an earlier name is removed as well.",
            )
            allow(function.role, list_versions, [bucket.bucket_arn])
        elif removes:
            objects += removals
            lists += list_versions
        allow(function.role, objects, [below], because=reason)
        allow(function.role, lists, [bucket.bucket_arn], only_if=only_below)
        allow(function.role, ["s3:GetObject"], [asset.bucket.arn_for_objects(asset.s3_object_key)])
        for file in files.values():
            allow(function.role, ["s3:GetObject"], [file.bucket.arn_for_objects(file.s3_object_key)])
        if key is not None:
            allow(function.role, ["kms:Decrypt", "kms:GenerateDataKey"], [key.key_arn])
        self.resource = function.resource(
            self,
            "Resource",
            resource_type=RESOURCE_TYPE,
            properties={
                "Bucket": bucket.bucket_name,
                "Prefix": prefix,
                "AssetBucket": asset.s3_bucket_name,
                "AssetKey": asset.s3_object_key,
                "AssetDigest": asset.asset_hash,
                # Not `to_json_string`: on the way to it jsii loses every null, which readers of node.json rely on.
                "NodeFacts": node_facts.model_dump_json(),
                **({"ProvisioningParameters": json.dumps(provisioning_parameters)} if provisioning_parameters else {}),
                "RemoveOnDelete": str(removes).lower(),
                **({"Archives": [_source(file, asset) for file, asset in files.items()]} if files else {}),
            },
        )
        """The custom resource; what reads the scripts depends on it."""
        self.source_uri: str = self.resource.get_att_string("SourceS3Uri")
        """S3 URI of the current prefix, for `LifeCycleConfig`."""

    def set_node_facts(self, node_facts: NodeFacts) -> None:
        """Publish another node.json."""
        resource = cast(cdk.CfnResource, self.resource.node.default_child)
        resource.add_property_override("NodeFacts", node_facts.model_dump_json())


def archives_uri(bucket: s3.IBucket, prefix: str) -> str:
    """S3 URI of the prefix under which a publication to `prefix` puts archives."""
    return f"s3://{bucket.bucket_name}/{prefix}/{ARCHIVES}"


def _source(file: LockedFile, asset: s3_assets.Asset) -> dict[str, str]:
    return {"Bucket": asset.s3_bucket_name, "Key": asset.s3_object_key, "Name": f"{ARCHIVES}/{published_name(file)}"}
