"""What exporters on nodes cannot know of a cluster, measured once a minute."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from constructs import Construct

from ....config.catalog.kubernetes_groups import NODE_READERS
from ....planning.kubernetes import api_tls, eks_token
from ...common.custom_resource import HandlerFunction
from ...common.permission import allow
from ...hyperpod.nodes_ready.waiter import KubernetesApiAccess
from ..prometheus_workspace import PrometheusWorkspace


@dataclass(frozen=True, slots=True)
class Fleet:
    """The cluster that is measured."""

    name: str
    """Name of the HyperPod cluster."""
    arn: str
    """Its ARN."""
    continuous: bool
    """Whether its provisioning is continuous; only then nodes have logical ids."""
    prices: Mapping[str, float]
    """US dollars an hour by instance type, as far as they are known."""
    plans: Mapping[str, str]
    """ARNs of training plans by their name in the file."""
    budget: int | None
    """US dollars a month."""


class FleetMetrics(Construct):
    """A function that asks SageMaker, and on EKS the Kubernetes API, about a cluster, and writes what it finds.

    Instances and their targets, nodes and what HyperPod thinks of their health, training plans, prices, and the
    results of benchmarks: `docs/metrics.md` names all of it under `podwright`. The add-on's exporters measure none of
    that, and its collector scrapes a fixed set of jobs (awslabs/awsome-distributed-ai, 2026-07), so a scraper of ours
    in the cluster would need one of its own, and on Slurm another.

    Decided for you: once a minute, what is large and rarely new every fourth; on EKS it runs in the VPC, where the
    Kubernetes API is; it may read this cluster, its plans and its benchmark results, see nodes, and write to the
    workspace. A source that it cannot ask becomes a metric, and the others continue.

    Example:
        from podwright.config.settings.observability import Observability
        from podwright.constructs.observability.fleet_metrics.construct import Fleet, FleetMetrics
        from podwright.constructs.observability.prometheus_workspace import PrometheusWorkspace
        metrics = PrometheusWorkspace(stack, "Metrics", settings=Observability(), name="prod", key=key,
                                      protection="retain")
        arn = "arn:aws:sagemaker:us-west-2:111122223333:cluster/abcdefghijkl"
        FleetMetrics(stack, "Fleet", fleet=Fleet("prod", arn, True, {}, {}, None), workspace=metrics, key=key)
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        fleet: Fleet,
        workspace: PrometheusWorkspace,
        key: kms.IKey,
        api_access: KubernetesApiAccess | None = None,
        results: tuple[s3.IBucket, str] | None = None,
    ) -> None:
        """Defines the function and its schedule.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            fleet: The cluster.
            workspace: Where metrics go.
            key: Encrypts logs, and the results of benchmarks.
            api_access: On EKS, where the Kubernetes API can be reached.
            results: Where benchmark results lie: bucket and prefix; None when nodes are not measured.
        """
        super().__init__(scope, construct_id)
        function = HandlerFunction(
            self,
            "Handler",
            folder=Path(__file__).parent / "handler",
            description=f"Measures HyperPod cluster {fleet.name}",
            # The next minute begins the next run.
            timeout_seconds=55,
            memory_mib=512,
            key=key,
            vpc=api_access.vpc if api_access else None,
            subnets=list(api_access.subnets) if api_access else (),
            security_groups=[api_access.security_group] if api_access else (),
            planning_files=(api_tls.SHIPPED, eks_token.SHIPPED),
            runtime_files=("kubernetes.py",),
        )
        allow(function.role, ["sagemaker:DescribeCluster", "sagemaker:ListClusterNodes"], [fleet.arn])
        if fleet.plans:
            allow(function.role, ["sagemaker:DescribeTrainingPlan"], sorted(fleet.plans.values()))
        if results:
            self._allow_results(function.role, *results, key)
        if api_access:
            self._allow_nodes(function.role, api_access.eks_cluster)
        workspace.grant_write(function.role)

        facts = {
            "cluster": fleet.name,
            "continuous": fleet.continuous,
            "prices": dict(fleet.prices),
            "plans": dict(fleet.plans),
            "budget": fleet.budget,
            "eks_cluster": api_access.eks_cluster.cluster_name if api_access else None,
            "results": [results[0].bucket_name, results[1]] if results else None,
            # As the service gives it where the workspace is our own: it is another one in the sandbox.
            "endpoint": workspace.resource.attr_prometheus_endpoint if workspace.resource else workspace.endpoint,
        }
        self._schedule(function.function, facts)
        self.function = function
        """What measures."""

    def _schedule(self, function: lambda_.IFunction, facts: Mapping[str, object]) -> None:
        """Run the function every minute with these facts, and never again for a minute that is over."""
        rule = events.CfnRule(
            self,
            "EveryMinute",
            description="Measures a HyperPod cluster",
            schedule_expression="rate(1 minute)",
            targets=[
                events.CfnRule.TargetProperty(
                    id="Handler",
                    arn=function.function_arn,
                    input=cdk.Stack.of(self).to_json_string(facts),
                    # A measurement of a minute that is over is of no use.
                    retry_policy=events.CfnRule.RetryPolicyProperty(
                        maximum_event_age_in_seconds=60, maximum_retry_attempts=0
                    ),
                )
            ],
        )
        lambda_.CfnPermission(
            self,
            "FromRule",
            action="lambda:InvokeFunction",
            function_name=function.function_arn,
            principal="events.amazonaws.com",
            source_arn=rule.attr_arn,
        )
        lambda_.CfnEventInvokeConfig(
            self,
            "Once",
            function_name=function.function_name,
            qualifier="$LATEST",
            maximum_retry_attempts=0,
            maximum_event_age_in_seconds=60,
        )

    def _allow_results(self, role: iam.IRole, bucket: s3.IBucket, prefix: str, key: kms.IKey) -> None:
        reason = "The names of results carry the ids of instances."
        allow(role, ["s3:GetObject"], [bucket.arn_for_objects(f"{prefix}/results/*")], because=reason)
        below = {"StringLike": {"s3:prefix": [f"{prefix}/results/*"]}}
        allow(role, ["s3:ListBucket"], [bucket.bucket_arn], only_if=below)
        allow(role, ["kms:Decrypt"], [key.key_arn])

    def _allow_nodes(self, role: iam.IRole, cluster: eks.ICluster) -> None:
        allow(role, ["eks:DescribeCluster"], [cluster.cluster_arn])
        eks.CfnAccessEntry(
            self,
            "Access",
            cluster_name=cluster.cluster_name,
            principal_arn=role.role_arn,
            kubernetes_groups=[NODE_READERS],
        )
