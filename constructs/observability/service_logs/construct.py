"""Retention and encryption of log groups that other services make."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from constructs import Construct

from ...common.custom_resource import HandlerFunction
from ...common.permission import allow

RESOURCE_TYPE: Final = "Custom::PodwrightServiceLogs"


class ServiceLogs(Construct):
    """Log groups that HyperPod and EKS write into, kept for some days and encrypted with our key.

    Their names hold ids that are known only after the cluster is there, and the services make them themselves, for
    ever and with CloudWatch's own key. A group stays when the construct goes: it holds what a failed cluster leaves.
    Nothing encrypted can be read from the moment on that its key is to be deleted, so a key that goes before the groups
    do is no key for them. Source: KMS Developer Guide, "Deleting AWS KMS keys", 2026-11.

    Example:
        from podwright.constructs.observability.service_logs.construct import ServiceLogs
        ServiceLogs(stack, "Logs", groups={"HyperPod": "/aws/sagemaker/Clusters/prod/abcdefghijkl"},
                    patterns=["/aws/sagemaker/Clusters/prod/*"], days=90, key=key, logs_key=key)
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        groups: Mapping[str, str],
        patterns: Sequence[str],
        days: int,
        key: kms.IKey | None,
        logs_key: kms.IKey,
    ) -> None:
        """Defines the handler and a resource for each group.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            groups: Names of the groups by an id within this construct.
            patterns: What the handler may change: the names, or what covers those that hold an id.
            days: Days that records are kept, one of the periods of CloudWatch Logs.
            key: Encrypts the groups, lets CloudWatch Logs use it and outlives them; None leaves CloudWatch's own key.
            logs_key: Encrypts the logs of the handler, which go before it.
        """
        super().__init__(scope, construct_id)
        function = HandlerFunction(
            self,
            "Handler",
            folder=Path(__file__).parent / "handler",
            description="Sets retention and encryption of logs of HyperPod and EKS",
            key=logs_key,
        )
        stack = cdk.Stack.of(self)
        arns = [
            stack.format_arn(
                service="logs",
                resource="log-group",
                resource_name=f"{name}{rest}",
                arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
            )
            for name in patterns
            for rest in ("", ":*")
        ]
        encrypting = "logs:AssociateKmsKey" if key else "logs:DisassociateKmsKey"
        calls = [encrypting, "logs:CreateLogGroup", "logs:PutRetentionPolicy"]
        allow(
            function.role,
            calls,
            arns,
            because="The API names a group with and without its streams; HyperPod puts an id into the name.",
        )
        if key:
            # CloudWatch Logs asks for it on behalf of the caller to see that the key works.
            allow(function.role, ["kms:DescribeKey"], [key.key_arn])

        encryption = {"KmsKeyArn": key.key_arn} if key else {}
        self.resources = {
            construct_id: function.resource(
                self,
                construct_id,
                resource_type=RESOURCE_TYPE,
                properties={"LogGroup": name, "RetentionDays": days, **encryption},
            )
            for construct_id, name in groups.items()
        }
        """The resources by the ids of their groups."""
