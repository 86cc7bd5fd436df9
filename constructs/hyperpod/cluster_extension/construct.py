"""Software that HyperPod itself installs on the nodes of a Slurm cluster."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from constructs import Construct

from ...common.custom_resource import HandlerFunction
from ...common.permission import allow

RESOURCE_TYPE: Final = "Custom::PodwrightClusterExtension"
_CALLS: Final = ("Create", "Delete", "Describe", "Update")


class ClusterExtension(Construct):
    """An extension of a Slurm cluster with continuous provisioning, such as `sagemaker-observability`.

    It is there for nodes that come later, too. An extension of the same name that somebody else installed is left
    alone, and the deployment says so. Decided for you: a deployment waits up to 14 minutes for the nodes that are
    there; what is missing then HyperPod continues with.

    Example:
        from podwright.constructs.hyperpod.cluster_extension.construct import ClusterExtension
        ClusterExtension(stack, "Metrics", name="sagemaker-observability", settings={}, key=key,
                         cluster_arn="arn:aws:sagemaker:us-west-2:111122223333:cluster/abcdefghijkl")
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_arn: str,
        name: str,
        settings: Mapping[str, Any],
        key: kms.IKey,
        version: str | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        """Defines the handler and the extension.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            cluster_arn: ARN of the HyperPod cluster.
            name: Name of the extension.
            settings: Its settings; what is left out has its default.
            key: Encrypts the handler's logs.
            version: Its version; the latest at the installation when absent.
            tags: Tags of it.
        """
        super().__init__(scope, construct_id)
        function = HandlerFunction(
            self,
            "Handler",
            folder=Path(__file__).parent / "handler",
            description=f"Installs {name} on the nodes of a Slurm cluster",
            timeout_seconds=900,
            key=key,
        )
        allow(
            function.role,
            [*(f"sagemaker:{call}ClusterExtension" for call in _CALLS), "sagemaker:ListClusterExtensions"],
            ["*"],
            because="No source says what the ARNs of extensions look like (Service Authorization Reference, 2026-11).",
        )
        tagging = ["sagemaker:AddTags", "sagemaker:ListTags"]
        allow(function.role, tagging, ["*"], because="The tags are an extension's, whose ARN no source describes.")
        policy = function.role.node.find_child("DefaultPolicy").node.default_child
        # The linter's list of actions is a month older than these calls.
        cast(cdk.CfnResource, policy).add_metadata("cfn-lint", {"config": {"ignore_checks": ["W3037"]}})

        self.resource = function.resource(
            self,
            "Extension",
            resource_type=RESOURCE_TYPE,
            properties={
                "ClusterArn": cluster_arn,
                "Name": name,
                "Settings": json.dumps(settings, sort_keys=True),
                **({"Version": version} if version else {}),
                "Tags": [{"Key": key, "Value": value} for key, value in sorted((tags or {}).items())],
            },
        )
        """The extension; attributes `Arn` and `Status`."""
        self.function = function
        """What carries it out."""
