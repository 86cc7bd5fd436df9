"""Argo CD as a capability of the EKS cluster: AWS runs it, and it applies what a Git repository holds."""

from typing import Annotated

from pydantic import Field, StringConstraints

from .base import Region, RoleArn, Settings

# Source: Identity Store API, ids of groups; IAM Identity Center API, ARNs of instances.
GroupId = Annotated[
    str, StringConstraints(pattern=r"^([0-9a-f]{10}-)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", max_length=47)
]
InstanceArn = Annotated[
    str, StringConstraints(pattern=r"^arn:aws[a-z-]*:sso:::instance/(ssoins|sso-ins)-[0-9a-z]{16}$")
]
VpcEndpointId = Annotated[str, StringConstraints(pattern=r"^vpce-[0-9a-f]{8,17}$")]


class ArgoCd(Settings):
    """Argo CD, with people of IAM Identity Center; it knows no other."""

    identity_center: InstanceArn
    """The instance of IAM Identity Center. A change replaces the capability."""
    identity_center_region: Region | None = None
    """Region of that instance. Default: the environment's. A change replaces the capability."""
    admins: tuple[GroupId, ...] = ()
    """Groups of Identity Center that may do everything in Argo CD."""
    editors: tuple[GroupId, ...] = ()
    """Groups that may change applications."""
    viewers: tuple[GroupId, ...] = ()
    """Groups that may look."""
    namespace: Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)] = "argocd"
    """Namespace of its applications. A change replaces the capability."""
    vpc_endpoints: tuple[VpcEndpointId, ...] = Field(default=(), max_length=20)
    """Interface endpoints that its own API is reached through; public when absent."""
    role: RoleArn | None = None
    """Existing role that it acts with, for instance to read repositories; one without permissions is made when
    absent."""
