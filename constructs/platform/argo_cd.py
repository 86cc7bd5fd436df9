"""Argo CD as a capability of an EKS cluster."""

from collections.abc import Iterable
from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct

from ...config.settings.argo_cd import ArgoCd

_NAME = "argocd"


class ArgoCdCapability(Construct):
    """Argo CD that AWS runs beside the control plane.

    EKS gives the role an access entry by itself. Which of the cluster's objects Argo CD may write, and which
    repositories it reads, is granted to that role; podwright grants nothing. Deleting the capability leaves what Argo
    CD applied. Sources: CloudFormation schema AWS::EKS::Capability, 2026-10; Amazon EKS User Guide, "Amazon EKS
    capability IAM role", 2026-11.

    Example:
        from podwright.config.settings.argo_cd import ArgoCd
        settings = ArgoCd(identity_center="arn:aws:sso:::instance/ssoins-0123456789abcdef")
        ArgoCdCapability(stack, "ArgoCd", settings=settings, cluster_name="prod")
    """

    def __init__(self, scope: Construct, construct_id: str, *, settings: ArgoCd, cluster_name: str) -> None:
        """Defines the capability.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            settings: Who may use it.
            cluster_name: Name of the EKS cluster.
        """
        super().__init__(scope, construct_id)
        capability, role = eks.CfnCapability, settings.role
        if role is None:
            service = cast(iam.IPrincipal, iam.ServicePrincipal("capabilities.eks.amazonaws.com"))
            trusted = cast(iam.IPrincipal, iam.SessionTagsPrincipal(service))
            role = iam.Role(self, "Role", assumed_by=trusted, description="Argo CD of an EKS cluster").role_arn
        rights = {"ADMIN": settings.admins, "EDITOR": settings.editors, "VIEWER": settings.viewers}
        mappings = [
            capability.ArgoCdRoleMappingProperty(role=right, identities=_identities(groups))
            for right, groups in rights.items()
            if groups
        ]
        center = capability.AwsIdcProperty(
            idc_instance_arn=settings.identity_center,
            idc_region=settings.identity_center_region or cdk.Stack.of(self).region,
        )
        access = capability.NetworkAccessProperty(vpce_ids=list(settings.vpc_endpoints))
        argo = capability.ArgoCdProperty(
            aws_idc=center,
            namespace=settings.namespace,
            network_access=access if settings.vpc_endpoints else None,
            rbac_role_mappings=mappings or None,
        )

        self.resource = capability(
            self,
            "Resource",
            capability_name=_NAME,
            cluster_name=cluster_name,
            type="ARGOCD",
            role_arn=role,
            delete_propagation_policy="RETAIN",
            configuration=capability.CapabilityConfigurationProperty(argo_cd=argo),
        )
        """The capability."""
        self.role_arn = role
        """The role that Argo CD acts with."""


def _identities(groups: Iterable[str]) -> list[eks.CfnCapability.SsoIdentityProperty]:
    return [eks.CfnCapability.SsoIdentityProperty(id=group, type="SSO_GROUP") for group in groups]
