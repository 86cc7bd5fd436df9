"""The path of IAM roles and managed policies."""

import aws_cdk as cdk
import jsii
from aws_cdk import aws_iam as iam
from constructs import IConstruct


@jsii.implements(cdk.IAspect)
class RolePath:
    """Puts every IAM role and managed policy below `path`, which some organisations require of new ones."""

    def __init__(self, path: str) -> None:
        self._path = path

    def visit(self, node: IConstruct) -> None:
        """Called by the CDK for each construct."""
        if isinstance(node, iam.CfnRole | iam.CfnManagedPolicy | iam.CfnInstanceProfile):
            node.path = self._path
