"""The stack of what runs on the nodes beside the work itself: operators of jobs, notebooks, model endpoints."""

import aws_cdk as cdk
from aws_cdk import aws_s3 as s3
from constructs import Construct

from ..cdk8s_charts.training_runtime import torch_runtime
from ..config.settings.platform import CERT_MANAGER, KUBEFLOW_TRAINER, KUBERAY, LEADER_WORKER_SET, Mlflow
from ..constructs.eks.addons import addon
from ..constructs.eks.helm_release import HelmRelease
from ..constructs.eks.manifests import Manifests
from ..constructs.platform.inference_operator import InferenceEndpoints
from ..constructs.platform.mlflow import MlflowApp
from ..constructs.platform.spaces import Spaces
from ..constructs.platform.training_operator import TrainingOperator
from ..planning.helm.chart_values import system_placement
from ..planning.helm.platform_values import cert_manager_values
from ..planning.jobs.models import model_buckets
from ..planning.kubernetes.deployed_values import OUTPUT_DESCRIPTION
from ..planning.resolved import ResolvedEnvironment
from .cluster import ClusterStack
from .eks import EksStack
from .network import NetworkStack
from .storage import StorageStack


class PlatformStack(cdk.Stack):
    """cert-manager, then operators as add-ons and charts. Stateless, but for the records of an MLflow app.

    It comes after the first nodes, on which all of it runs. The GPU operator is not here: it is a part of HyperPod's
    own chart, which comes before the nodes.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        resolved: ResolvedEnvironment,
        network: NetworkStack,
        storage: StorageStack,
        eks: EksStack,
        cluster: ClusterStack,
    ) -> None:
        """Defines the stack of an environment with parts that stand alone; MLflow keeps files in `storage`."""
        super().__init__(scope, construct_id, description="Operators of jobs, notebooks, endpoints and experiments")
        self.add_stack_dependency(cluster, "operators run on its nodes")
        environment, platform = resolved.environment, resolved.environment.platform
        settings, control_plane = environment.cluster.eks, eks.control_plane.cluster
        name, hyperpod = control_plane.cluster_name, cluster.cluster.cluster_arn

        webhooks = []  # first: they want certificates when operators start
        if platform.cert_manager:
            values = cert_manager_values(system_placement(environment.cluster, environment.instance_groups))
            webhooks = [addon(self, CERT_MANAGER, settings, name, values)]
        if platform.training_operator:
            TrainingOperator(
                self, "TrainingOperator", settings=settings, cluster_name=name, hyperpod_arn=hyperpod, after=webhooks
            )
        if platform.inference:
            InferenceEndpoints(
                self,
                "Inference",
                settings=platform.inference,
                eks=settings,
                cluster_name=name,
                hyperpod_arn=hyperpod,
                issuer=eks.control_plane.issuer,
                environment=environment.name,
                models=[storage.checkpoint_bucket.bucket_name, *model_buckets(environment)],
                key=network.key,
                protection=environment.protection,
                after=webhooks,
            )
        if platform.spaces:
            where = environment.name
            Spaces(self, "Spaces", settings=settings, cluster_name=name, hyperpod_arn=hyperpod, environment=where)
        self.mlflow_arn: str | None = None
        """ARN of the MLflow app, if there is one."""
        if platform.mlflow:
            self.mlflow_arn = self._mlflow(environment.name, platform.mlflow, network, storage)
            # Teams come and go, and a stack refuses to drop an export that another one imports.
            self.export_value(self.mlflow_arn, description=f"{OUTPUT_DESCRIPTION}mlflow")

        names = (KUBERAY, KUBEFLOW_TRAINER, LEADER_WORKER_SET)
        desired = [resolved.charts[name] for name in names if name in resolved.charts]
        self.releases = {
            item.chart.name: HelmRelease(
                self, item.chart.name, cluster=control_plane, chart=item.chart, archive=item.archive, values=item.values
            )
            for item in desired
        }
        """The releases of charts by name."""
        if KUBEFLOW_TRAINER in self.releases:
            Manifests(
                self,
                "TrainingRuntimes",
                cluster=control_plane,
                objects=[torch_runtime()],
                after=[self.releases[KUBEFLOW_TRAINER].release],
            )

    def _mlflow(self, name: str, settings: Mlflow, network: NetworkStack, storage: StorageStack) -> str:
        """The tracking server; it keeps files in the bucket for checkpoints, or in one of yours. Returns its ARN."""
        bucket, _, prefix = (settings.artifacts or "").removeprefix("s3://").partition("/")
        made = MlflowApp(
            self,
            "Mlflow",
            name=name,
            settings=settings,
            # By its name, which the storage stack exports whether anybody uses it or not.
            bucket=s3.Bucket.from_bucket_name(self, "Artifacts", bucket or storage.checkpoint_bucket.bucket_name),
            prefix=prefix.strip("/") or "mlflow",
            key=None if settings.artifacts else network.key,
        )
        return made.app.attr_arn
