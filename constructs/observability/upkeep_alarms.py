"""Alarms on what makes alerts, and on storage: they come from CloudWatch, so they come when nothing else does."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from ...planning.node.setup_record import METRIC, NAMESPACE
from ..common.arguments import checked

_PERIOD_SECONDS: Final = 300
_ALMOST_FULL_PERCENT: Final = 95
_GIB: Final = 1024**3
_Comparison = Literal["GreaterThanThreshold", "LessThanThreshold"]


class UpkeepAlarms(Construct):
    """CloudWatch alarms that reach people as alerts do, without any metric of the cluster's own.

    Decided for you: a function that fails three times in a row, one that should run each minute and does not, an alert
    manager that cannot deliver, a Lustre file system that is 95 % full as FSx itself counts, and a node whose set-up
    left it degraded. Each says in its description what it means and what to do. Source of the metrics: AWS Lambda
    Developer Guide, "Types of metrics"; Amazon Managed Service for Prometheus User Guide, "Use CloudWatch metrics"; FSx
    for Lustre User Guide, "Monitoring with Amazon CloudWatch"; all 2026-11.

    Example:
        topics = ["arn:aws:sns:us-west-2:111122223333:alerts"]
        alarms = UpkeepAlarms(stack, "Upkeep", topics=topics)
        alarms.lustre("lustre", file_system_id="fs-0123456789abcdef0", capacity_gib=38400)
    """

    @checked
    def __init__(self, scope: Construct, construct_id: str, *, topics: Sequence[str]) -> None:
        """Defines no alarm yet.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            topics: ARNs of the topics on which people hear of them.
        """
        super().__init__(scope, construct_id)
        self._topics = list(topics)
        self._stack_name = cdk.Stack.of(self).stack_name

    def function(self, name: str, function: lambda_.IFunction, *, each_minute: bool = False) -> None:
        """Watch a function of ours; with `each_minute` also that it runs."""
        dimensions = {"FunctionName": function.function_name}
        self._alarm(
            f"{name}Fails",
            ("AWS/Lambda", "Errors", "Sum", dimensions),
            "GreaterThanThreshold",
            0,
            f"The function {name} of podwright has failed for 15 minutes. What it measures or tells is missing. Look "
            "into its log group; a refused call names the permission or endpoint that is missing, and a deployment "
            "puts back what was changed by hand.",
        )
        if each_minute:
            self._alarm(
                f"{name}Silent",
                ("AWS/Lambda", "Invocations", "Sum", dimensions),
                "LessThanThreshold",
                1,
                f"The function {name} of podwright has not run for 15 minutes. Is its EventBridge rule enabled, and "
                "has the account concurrency left?",
                missing="breaching",
            )

    def alert_manager(self, workspace_id: str) -> None:
        """Watch that alerts on metrics get out."""
        self._alarm(
            "AlertsUndelivered",
            ("AWS/Prometheus", "AlertManagerNotificationsFailed", "Sum", {"Workspace": workspace_id}),
            "GreaterThanThreshold",
            0,
            "The alert manager could not publish alerts for 15 minutes. The workspace's log group says why; most often "
            "the policy of a topic, or of its key, was changed. Look at firing alerts in Grafana meanwhile.",
        )

    def setups(self, cluster_name: str) -> None:
        """Watch the set-up of a cluster's nodes: a degraded one joins, and nobody would look."""
        self._alarm(
            "NodesDegraded",
            (NAMESPACE, METRIC, "Maximum", {"ClusterName": cluster_name}),
            "GreaterThanThreshold",
            0,
            "The set-up of a node failed in a step that does not cost the node: it has joined, degraded. "
            f"`{METRIC}` in the cluster's log group names group and node, its log the step, what it saw and what to "
            "do. Fix it before more nodes boot.",
            # A node counts once, when its set-up ends.
            periods=1,
        )

    def lustre(self, name: str, *, file_system_id: str, capacity_gib: int) -> None:
        """Watch the free space of a Lustre file system."""
        free = capacity_gib * _GIB * (100 - _ALMOST_FULL_PERCENT) // 100
        self._alarm(
            f"Lustre-{name}-Full",
            ("AWS/FSx", "FreeDataStorageCapacity", "Sum", {"FileSystemId": file_system_id}),
            "LessThanThreshold",
            free,
            f"File system {name} is {_ALMOST_FULL_PERCENT} % full. A full one stops every job that writes. Delete old "
            "checkpoints, and raise its capacity_gib: it grows while in use. `podwright explain LustreFull` has more.",
            # Every server of the file system reports once a minute, and the sum of a minute is the whole.
            period_seconds=60,
        )

    def _alarm(
        self,
        name: str,
        metric: tuple[str, str, str, Mapping[str, str]],
        comparison: _Comparison,
        threshold: float,
        description: str,
        *,
        missing: Literal["notBreaching", "breaching"] = "notBreaching",
        period_seconds: int = _PERIOD_SECONDS,
        periods: int = 3,
    ) -> None:
        """An alarm after some periods beyond the threshold; `metric` is namespace, name, statistic and dimensions."""
        namespace, metric_name, statistic, dimensions = metric
        cloudwatch.CfnAlarm(
            self,
            name,
            alarm_description=f"{self._stack_name}: {description}",
            namespace=namespace,
            metric_name=metric_name,
            dimensions=[
                cloudwatch.CfnAlarm.DimensionProperty(name=key, value=value) for key, value in dimensions.items()
            ],
            statistic=statistic,
            period=period_seconds,
            evaluation_periods=periods,
            datapoints_to_alarm=periods,
            comparison_operator=comparison,
            threshold=threshold,
            treat_missing_data=missing,
            alarm_actions=self._topics,
            ok_actions=self._topics,
        )
