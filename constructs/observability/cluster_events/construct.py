"""Tells people of what a HyperPod cluster reports by itself: its state, its nodes' health, and what fails."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from constructs import Construct

from ....config.settings.observability import Quarantine
from ....planning.node.quarantine import SHIPPED
from ...common.custom_resource import HandlerFunction
from ...common.permission import allow
from ..alert_topics import AlertTopics
from ..node_quarantine.construct import NodeQuarantine
from .handler.notices import EVENT, HEALTH, STATE

_FOLDER = Path(__file__).parent / "handler"


@dataclass(frozen=True, slots=True)
class QuarantineRule:
    """When a node that fails again and again is taken out of work, how, and where that is written down."""

    settings: Quarantine
    """How many faults in how long a time."""
    marker: NodeQuarantine | None
    """What marks it in Kubernetes; None with Slurm, where people are told to do it: no call of AWS runs a command on a
    HyperPod node."""
    bucket: s3.IBucket
    """Bucket of the lifecycle scripts."""
    prefix: str
    """Where the records lie in it."""


class ClusterEvents(Construct):
    """EventBridge rules for a cluster's events, and the function that makes notices of them.

    These come from SageMaker itself, so they come when no metric does, and with Slurm as well. Decided for you: only
    failures and warnings are passed on; the function asks SageMaker for the failure message, which EventBridge's copy
    of an event lacks; the same notice goes out once an hour, and at most twenty of them in all; what cannot be told
    after three tries arrives on the topic for text as it is. Cluster events are sent only with continuous
    provisioning; the other two kinds always.

    Example:
        from podwright.config.settings.observability import Alerts
        topics = AlertTopics(stack, "Alerts", settings=Alerts())
        arn = "arn:aws:sagemaker:us-west-2:111122223333:cluster/a1b2c3d4e5f6"
        ClusterEvents(stack, "Events", environment="prod", cluster_arn=arn, topics=topics, key=key)
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: str,
        cluster_arn: str,
        topics: AlertTopics,
        key: kms.IKey,
        quarantine: QuarantineRule | None = None,
    ) -> None:
        """Defines rules, function and what it remembers.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            environment: Name of the environment, which notices carry.
            cluster_arn: ARN of the HyperPod cluster; events of others are left alone.
            topics: Where notices go.
            key: Encrypts the logs and what is remembered.
            quarantine: When a node that fails again and again is taken out of work; never when absent.
        """
        super().__init__(scope, construct_id)

        table = dynamodb.CfnTable(
            self,
            "Memory",
            billing_mode="PAY_PER_REQUEST",
            attribute_definitions=[
                dynamodb.CfnTable.AttributeDefinitionProperty(attribute_name="Key", attribute_type="S")
            ],
            key_schema=[dynamodb.CfnTable.KeySchemaProperty(attribute_name="Key", key_type="HASH")],
            sse_specification=dynamodb.CfnTable.SSESpecificationProperty(
                sse_enabled=True, sse_type="KMS", kms_master_key_id=key.key_arn
            ),
            point_in_time_recovery_specification=dynamodb.CfnTable.PointInTimeRecoverySpecificationProperty(
                point_in_time_recovery_enabled=True
            ),
            time_to_live_specification=dynamodb.CfnTable.TimeToLiveSpecificationProperty(
                attribute_name="Expires", enabled=True
            ),
        )
        # It knows for a week what people were told.
        table.apply_removal_policy(cdk.RemovalPolicy.DESTROY)
        tell = HandlerFunction(
            self,
            "Tell",
            folder=_FOLDER,
            description=f"Tells people of events of {environment}'s cluster",
            timeout_seconds=60,
            key=key,
            environment={"TABLE": table.ref, "ENVIRONMENT": environment}
            | {f"{name.upper()}_TOPIC": arn for name, arn in topics.arns.items()}
            | ({"QUARANTINE": self._rule(quarantine)} if quarantine else {}),
            planning_files=(SHIPPED,),
        )
        topics.grant_publish(tell.role)
        allow(tell.role, ["dynamodb:DeleteItem", "dynamodb:PutItem", "dynamodb:UpdateItem"], [table.attr_arn])
        if quarantine:
            self._allow_records(tell.role, quarantine)
        allow(tell.role, ["kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey"], [key.key_arn])
        allow(tell.role, ["sagemaker:DescribeCluster", "sagemaker:DescribeClusterEvent"], [cluster_arn])
        lambda_.CfnEventInvokeConfig(
            self,
            "Retries",
            function_name=tell.function.function_name,
            qualifier="$LATEST",
            maximum_retry_attempts=2,
            destination_config=lambda_.CfnEventInvokeConfig.DestinationConfigProperty(
                on_failure=lambda_.CfnEventInvokeConfig.OnFailureProperty(destination=topics.mail)
            ),
        )
        patterns: dict[str, dict[str, Any]] = {
            "State": {"detail-type": [STATE], "detail": {"ClusterStatus": ["Failed", "RollingBack"]}},
            "Health": {"detail-type": [HEALTH]},
            "Failures": {"detail-type": [EVENT], "detail": {"EventDetails": {"EventLevel": ["Error", "Warn"]}}},
        }
        for name, pattern in patterns.items():
            rule = events.CfnRule(
                self,
                name,
                description=f"{pattern['detail-type'][0]} of {environment}",
                event_pattern={"source": ["aws.sagemaker"], "resources": [cluster_arn], **pattern},
                targets=[events.CfnRule.TargetProperty(id="Tell", arn=tell.function.function_arn)],
            )
            lambda_.CfnPermission(
                self,
                f"{name}Calls",
                action="lambda:InvokeFunction",
                function_name=tell.function.function_arn,
                principal="events.amazonaws.com",
                source_arn=rule.attr_arn,
            )

        self.function = tell.function
        """The function that makes notices."""

    def _rule(self, quarantine: QuarantineRule) -> str:
        """The rule as the function reads it, in JSON."""
        marker = quarantine.marker
        return cdk.Stack.of(self).to_json_string(
            {
                "faults": quarantine.settings.faults,
                "within_hours": quarantine.settings.within_hours,
                "marker": marker.function.function_name if marker else "",
                "eks_cluster": marker.eks_cluster.cluster_name if marker else "",
                "bucket": quarantine.bucket.bucket_name,
                "prefix": quarantine.prefix,
            }
        )

    def _allow_records(self, role: iam.IRole, quarantine: QuarantineRule) -> None:
        if quarantine.marker is None:
            return
        allow(role, ["lambda:InvokeFunction"], [quarantine.marker.function.function_arn])
        reason = "The names of records carry the ids of instances."
        records = quarantine.bucket.arn_for_objects(f"{quarantine.prefix}/*")
        allow(role, ["s3:GetObject", "s3:PutObject"], [records], because=reason)
        # Without it S3 calls what is absent forbidden.
        below = {"StringLike": {"s3:prefix": [f"{quarantine.prefix}/*"]}}
        allow(role, ["s3:ListBucket"], [quarantine.bucket.bucket_arn], only_if=below)
