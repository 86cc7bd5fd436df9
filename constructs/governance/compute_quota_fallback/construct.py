"""Compute quotas and scheduler configurations without CloudFormation's own types."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import aws_cdk as cdk
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_kms as kms
from constructs import Construct

from ....config.findings import listed
from ...common.custom_resource import HandlerFunction
from ...common.permission import allow

TYPES: Final = {
    "AWS::SageMaker::ComputeQuota": "Custom::PodwrightComputeQuota",
    "AWS::SageMaker::ClusterSchedulerConfig": "Custom::PodwrightSchedulerConfig",
}
"""What stands for which type of CloudFormation."""
_ACCESS: Final = (
    "AssociateAccessPolicy",
    "DescribeAccessEntry",
    "DisassociateAccessPolicy",
    "ListAssociatedAccessPolicies",
)
_NOT_SETTINGS: Final = ("Name", "ClusterArn", "Tags")


class ComputeQuotaFallback(Construct):
    """Makes through SageMaker's API what a region's CloudFormation has no resource type for.

    An object carries the tag `podwright:resource`, by which a repeated request finds its own; one that somebody else
    made is never taken over. Whoever goes from one way to the other deletes the objects in between, because the API
    takes no two of a name.

    Decided for you: one function for all objects of a stack, outside the VPC; its role may change quotas and scheduler
    configurations of its account and region, and access policies of the one EKS cluster, because SageMaker gives its
    own role access there in the name of whoever asks for a quota.
    Source: permissions of the handlers in both CloudFormation schemas, 2026-10-20.

    Example:
        from podwright.constructs.governance.compute_quota_fallback.construct import ComputeQuotaFallback
        arn = "arn:aws:sagemaker:us-west-2:111122223333:cluster/abcdefghijkl"
        fallback = ComputeQuotaFallback(stack, "Fallback", cluster_arn=arn, eks_cluster=cluster, key=key)
        fallback.resource(stack, "Policy", resource_type="AWS::SageMaker::ClusterSchedulerConfig",
                          properties={"Name": "prod", "ClusterArn": arn, "SchedulerConfig": {"FairShare": "Enabled"}})
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_arn: str,
        eks_cluster: eks.ICluster,
        key: kms.IKey | None = None,
    ) -> None:
        """Defines the function.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            cluster_arn: ARN of the HyperPod cluster.
            eks_cluster: EKS cluster that orchestrates it.
            key: Encrypts the logs.
        """
        super().__init__(scope, construct_id)

        self._function = HandlerFunction(
            self,
            "Handler",
            folder=Path(__file__).parent / "handler",
            description="Makes compute quotas through the API of SageMaker",
            timeout_seconds=600,
            key=key,
        )
        stack = cdk.Stack.of(self)
        arns = [
            f"arn:{stack.partition}:sagemaker:{stack.region}:{stack.account}:{kind}/*"
            for kind in ("compute-quota", "cluster-scheduler-config")
        ]
        nouns = ("ComputeQuota", "ClusterSchedulerConfig")
        verbs = ("Create", "Describe", "Update", "Delete")
        allow(
            self._function.role,
            [
                *(f"sagemaker:{verb}{noun}" for noun in nouns for verb in verbs),
                "sagemaker:AddTags",
                "sagemaker:ListTags",
            ],
            arns,
            because="SageMaker chooses the ids of what it makes.",
        )
        allow(self._function.role, ["sagemaker:DescribeCluster"], [cluster_arn])
        allow(self._function.role, ["eks:DescribeCluster"], [eks_cluster.cluster_arn])
        entries = f"arn:{stack.partition}:eks:{stack.region}:{stack.account}:access-entry/{eks_cluster.cluster_name}/*"
        allow(
            self._function.role,
            [f"eks:{action}" for action in _ACCESS],
            [entries],
            because="EKS chooses the end of an access entry's ARN.",
        )
        allow(
            self._function.role,
            [f"sagemaker:List{noun}s" for noun in nouns],
            ["*"],
            because="The calls support no resource (Service Authorization Reference, Amazon SageMaker, 2026-11).",
        )

    def resource(
        self, scope: Construct, construct_id: str, *, resource_type: str, properties: Mapping[str, Any]
    ) -> cdk.CfnResource:
        """A custom resource that stands for one of type `resource_type` with the same properties.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            resource_type: Type of CloudFormation.
            properties: As that type takes them.

        Raises:
            ValueError: a type that the function does not make.
        """
        if resource_type not in TYPES:
            raise ValueError(f"nothing stands for {resource_type}; this makes {listed(TYPES, 'and')}")
        # As text, because CloudFormation turns every number of a custom resource's property into a string.
        settings = {name: value for name, value in properties.items() if name not in _NOT_SETTINGS}
        made = self._function.resource(
            scope,
            construct_id,
            resource_type=TYPES[resource_type],
            properties={
                **{name: properties[name] for name in _NOT_SETTINGS if name in properties},
                "Settings": cdk.Stack.of(self).to_json_string(settings),
            },
        )
        return made.node.default_child  # pyrefly: ignore[bad-return]
