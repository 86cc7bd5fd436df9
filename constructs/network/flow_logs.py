"""Records of who talked to whom in a VPC."""

from typing import cast

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct

from ..common.protection import Protection, removal_policy


class FlowLogs(Construct):
    """VPC flow logs in CloudWatch Logs.

    Decided for you: accepted and rejected traffic, one record of each flow in ten minutes.

    Example:
        vpc = ec2.CfnVPC(stack, "Vpc", cidr_block="10.0.0.0/16")
        FlowLogs(stack, "FlowLogs", vpc_id=vpc.ref, days=90, key=None, protection="retain")
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc_id: str,
        days: int,
        key: kms.IKey | None,
        protection: Protection,
    ) -> None:
        """Defines the log group and what fills it.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            vpc_id: The VPC.
            days: Days that records are kept, one of the periods of CloudWatch Logs.
            key: Encrypts the log group, and lets CloudWatch Logs use it; the service's own key when None.
            protection: Whether the records survive their stack.
        """
        super().__init__(scope, construct_id)

        group = logs.CfnLogGroup(
            self, "Group", retention_in_days=days, kms_key_id=key.key_arn if key is not None else None
        )
        group.apply_removal_policy(removal_policy(protection))
        service = cast(iam.IPrincipal, iam.ServicePrincipal("vpc-flow-logs.amazonaws.com"))
        # The group exists, so the service needs neither to create nor to look for one.
        write = iam.PolicyStatement(
            actions=["logs:CreateLogStream", "logs:PutLogEvents", "logs:DescribeLogStreams"], resources=[group.attr_arn]
        )
        role = iam.Role(
            self,
            "Role",
            assumed_by=service,
            description="Writes VPC flow logs",
            # Inline, so that the records have where to go as soon as the role is there.
            inline_policies={"Write": iam.PolicyDocument(statements=[write])},
        )
        ec2.CfnFlowLog(
            self,
            "Resource",
            resource_id=vpc_id,
            resource_type="VPC",
            traffic_type="ALL",
            # The longest interval, as records are billed by volume.
            max_aggregation_interval=600,
            log_destination_type="cloud-watch-logs",
            log_group_name=group.ref,
            deliver_logs_permission_arn=role.role_arn,
        )
