"""Argo CD as a capability: who may use it, and the role that it acts with."""

import aws_cdk as cdk
from aws_cdk.assertions import Match, Template

from podwright.config.settings.argo_cd import ArgoCd
from podwright.constructs.platform.argo_cd import ArgoCdCapability

CENTER = "arn:aws:sso:::instance/ssoins-0123456789abcdef"
GROUP = "01234567-89ab-cdef-0123-456789abcdef"


def test_people_come_from_identity_center_and_the_role_may_do_nothing(stack: cdk.Stack) -> None:
    settings = ArgoCd(identity_center=CENTER, admins=(GROUP,), vpc_endpoints=("vpce-0123456789abcdef0",))
    ArgoCdCapability(stack, "ArgoCd", settings=settings, cluster_name="prod")
    template = Template.from_stack(stack)
    mapping = {"Role": "ADMIN", "Identities": [{"Id": GROUP, "Type": "SSO_GROUP"}]}
    argo = {
        "AwsIdc": {"IdcInstanceArn": CENTER, "IdcRegion": "us-west-2"},
        "Namespace": "argocd",
        "NetworkAccess": {"VpceIds": ["vpce-0123456789abcdef0"]},
        "RbacRoleMappings": [mapping],
    }
    template.has_resource_properties(
        "AWS::EKS::Capability",
        {"Type": "ARGOCD", "DeletePropagationPolicy": "RETAIN", "Configuration": {"ArgoCd": argo}},
    )
    service = {"Service": "capabilities.eks.amazonaws.com"}
    trust = Match.object_like({"Principal": service, "Action": ["sts:AssumeRole", "sts:TagSession"]})
    template.has_resource_properties("AWS::IAM::Role", {"AssumeRolePolicyDocument": {"Statement": [trust]}})
    template.resource_count_is("AWS::IAM::Policy", 0)


def test_an_existing_role_is_taken_as_it_is(stack: cdk.Stack) -> None:
    settings = ArgoCd(identity_center=CENTER, role="arn:aws:iam::111122223333:role/ArgoCd")
    ArgoCdCapability(stack, "ArgoCd", settings=settings, cluster_name="prod")
    template = Template.from_stack(stack)
    template.resource_count_is("AWS::IAM::Role", 0)
    template.has_resource_properties("AWS::EKS::Capability", {"RoleArn": "arn:aws:iam::111122223333:role/ArgoCd"})
