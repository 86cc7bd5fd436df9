"""The stack of what runs on the nodes beside the work itself: operators of jobs, notebooks, model endpoints."""

from collections.abc import Mapping

import aws_cdk as cdk
from aws_cdk import aws_s3 as s3
from constructs import Construct

from ..cdk8s_charts.training_runtime import torch_runtime
from ..config.catalog.images import Image
from ..config.loading.artifacts import ChartArchive
from ..config.settings.environment import Environment
from ..config.settings.platform import CERT_MANAGER, KUBEFLOW_TRAINER, KUBERAY
from ..constructs.eks.addons import addon
from ..constructs.eks.helm_release import HelmRelease
from ..constructs.eks.manifests import Manifests
from ..planning.helm.chart_values import system_placement
from ..planning.helm.platform_values import cert_manager_values
from ..planning.helm.wanted_charts import wanted_charts
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
        environment: Environment,
        network: NetworkStack,
        storage: StorageStack,
        eks: EksStack,
        cluster: ClusterStack,
        charts: Mapping[str, ChartArchive],
        mirror: Mapping[str, Image],
    ) -> None:
        """Defines the stack of `environment`, which has parts that stand alone.

        Args:
            scope: The stage.
            construct_id: Id within the stage.
            environment: The environment.
            network: Its network.
            storage: Its storage; MLflow keeps files there.
            eks: Its control plane.
            cluster: Its HyperPod cluster.
            charts: The environment's charts by name; those of operators are installed from here.
            mirror: Where mirrored images lie, by the original's name.
        """
        super().__init__(scope, construct_id, description="Operators of jobs, notebooks, endpoints and experiments")
        settings, control_plane = environment.cluster.eks, eks.control_plane.cluster
        name, hyperpod = control_plane.cluster_name, cluster.cluster.cluster_arn
        platform = environment.platform

        place = system_placement(environment.cluster, environment.instance_groups)
        certificates = (
            [addon(self, CERT_MANAGER, settings, name, cert_manager_values(place))] if platform.cert_manager else []
        )
        # Each part is imported only by who has it.
        if platform.training_operator:
            from ..constructs.platform.training_operator import TrainingOperator

            TrainingOperator(
                self,
                "TrainingOperator",
                settings=settings,
                cluster_name=name,
                hyperpod_arn=hyperpod,
                after=certificates,
            )
        if platform.inference:
            from ..constructs.platform.inference_operator import InferenceEndpoints

            InferenceEndpoints(
                self,
                "Inference",
                settings=platform.inference,
                eks=settings,
                cluster_name=name,
                hyperpod_arn=hyperpod,
                after=certificates,
            )
        if platform.spaces:
            from ..constructs.platform.spaces import Spaces

            Spaces(
                self,
                "Spaces",
                settings=settings,
                cluster_name=name,
                hyperpod_arn=hyperpod,
                environment=environment.name,
            )
        if platform.mlflow:
            self._mlflow(environment, network, storage)

        self.releases = {
            wanted.chart.name: HelmRelease(
                self,
                wanted.chart.name,
                cluster=control_plane,
                chart=wanted.chart,
                archive=charts[wanted.chart.name],
                values=wanted.values,
            )
            for wanted in wanted_charts(environment, mirror)
            if wanted.chart.name in (KUBERAY, KUBEFLOW_TRAINER)
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

    def _mlflow(self, environment: Environment, network: NetworkStack, storage: StorageStack) -> None:
        from ..constructs.platform.mlflow import MlflowApp

        settings = environment.platform.mlflow
        assert settings is not None
        name, prefix, key = storage.checkpoint_bucket.bucket_name, "mlflow", network.key
        if settings.artifacts:
            name, _, prefix = settings.artifacts.removeprefix("s3://").partition("/")
            key = None
        MlflowApp(
            self,
            "Mlflow",
            name=environment.name,
            settings=settings,
            # By its name, which the storage stack exports whether anybody uses it or not.
            bucket=s3.Bucket.from_bucket_name(self, "Artifacts", name),
            prefix=prefix.strip("/") or "mlflow",
            key=key,
        )
