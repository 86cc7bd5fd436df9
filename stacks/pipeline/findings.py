"""What cdk-nag says of what the CDK's pipelines make by themselves: accepted where it is, with its reason."""

from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import IConstruct

from ...constructs.common.permission import accept_wildcards

_MADE_BY_THE_CDK: Final = (
    "The CDK writes this policy: actions that begin with these words on the pipeline's own bucket of artifacts and its "
    "key, its own logs, the roles that `cdk bootstrap` made and tagged, and stacks, whose calls name none."
)
_ARTIFACTS: Final = (
    "CodePipeline and its builds alone use this bucket, and CloudTrail records it where an account wants that; a "
    "second bucket would record the same."
)


def acknowledge(pipeline: cdk.Stack) -> None:
    """Accept the findings about roles and buckets of `pipeline` and of its stacks in other regions."""
    app = pipeline.node.root
    for stack in app.node.children:
        if isinstance(stack, cdk.Stack):
            for node in stack.node.find_all():
                _acknowledge(node)


def _acknowledge(node: IConstruct) -> None:
    path = node.node.path
    # Roles of podwright's own have permissions by `allow`, which accepts what it writes.
    if isinstance(node, iam.Role) and any(part in path for part in ("/Line/", "/Promotion/")):
        accept_wildcards(node, _MADE_BY_THE_CDK)
    if isinstance(node, s3.Bucket) and ("/Line/" in path or "ReplicationBucket" in path):
        cdk.Validations.of(node).acknowledge(cdk.Acknowledgment(id="AwsSolutions-S1", reason=_ARTIFACTS))
