"""What every wait of ours is made of: a function in the VPC that may look, and may invoke itself to look on."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct, IDependable

from ....planning.kubernetes import api_tls, eks_token
from ...common.custom_resource import HandlerFunction

_LONGEST_MINUTES: Final = 60


@dataclass(frozen=True, slots=True)
class KubernetesApiAccess:
    """Where a wait runs: next to the Kubernetes API that it asks."""

    eks_cluster: eks.ICluster
    """The cluster."""
    vpc: ec2.IVpc
    """Its VPC."""
    subnets: tuple[ec2.ISubnet, ...]
    """Subnets from which its API can be reached."""
    security_group: ec2.ISecurityGroup
    """A group that may reach it."""
    key: kms.IKey
    """Encrypts the logs."""


def wait(
    scope: Construct,
    construct_id: str,
    *,
    api_access: KubernetesApiAccess,
    description: str,
    group: str,
    resource_type: str,
    properties: Mapping[str, Any],
    timeout: cdk.Duration | None,
) -> tuple[HandlerFunction, cdk.CustomResource]:
    """A function in `scope` and the resource `construct_id` that exists once what it waits for is ready.

    Args:
        scope: The construct that waits.
        construct_id: Id of the resource.
        api_access: Where the function runs.
        description: What it waits for, for the console.
        group: Kubernetes group that its role belongs to.
        resource_type: Which wait of the handler's.
        properties: What that wait gets beside the cluster and the timeout.
        timeout: How long to wait; 55 minutes when absent, an hour at most.

    Raises:
        ValueError: a timeout of more than an hour.
    """
    timeout = timeout or cdk.Duration.minutes(55)
    if timeout.to_minutes() > _LONGEST_MINUTES:
        raise ValueError(
            f"timeout is {timeout.to_minutes():g} minutes; CloudFormation waits {_LONGEST_MINUTES} at most"
        )
    cluster = api_access.eks_cluster
    function = HandlerFunction(
        scope,
        "Handler",
        folder=Path(__file__).parent / "handler",
        description=description,
        timeout_seconds=900,
        key=api_access.key,
        vpc=api_access.vpc,
        subnets=list(api_access.subnets),
        security_groups=[api_access.security_group],
        planning_files=(api_tls.SHIPPED, eks_token.SHIPPED),
        runtime_files=("response.py", "kubernetes.py"),
    )
    function.role.add_to_principal_policy(
        iam.PolicyStatement(actions=["eks:DescribeCluster"], resources=[cluster.cluster_arn])
    )
    # A policy of its own: the function depends on its role's default policy, which so cannot name the function.
    again = iam.Policy(
        scope,
        "InvokesItself",
        roles=[function.role],
        statements=[iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=[function.function.function_arn])],
    )
    entry = eks.CfnAccessEntry(
        scope,
        "Access",
        cluster_name=cluster.cluster_name,
        principal_arn=function.role.role_arn,
        kubernetes_groups=[group],
    )
    resource = function.resource(
        scope,
        construct_id,
        resource_type=resource_type,
        properties={"EksClusterName": cluster.cluster_name, **properties, "TimeoutSeconds": timeout.to_seconds()},
        wait_seconds=_LONGEST_MINUTES * 60,
    )
    resource.node.add_dependency(again, cast(IDependable, entry))
    return function, resource
