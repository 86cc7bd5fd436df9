"""A Helm release of a chart whose archive the project holds."""

from collections.abc import Mapping
from typing import Any, cast

import aws_cdk as cdk
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3_assets as s3_assets
from constructs import Construct

from ...config.catalog.charts import HYPERPOD_DEPENDENCIES, Chart
from ...config.loading.artifacts import ChartArchive
from ..common.assets import folder_asset, shipped_files

_SYSTEM_NAMESPACE = "kube-system"


class HelmRelease(Construct):
    """A chart, installed from an archive that the project holds.

    Decided for you: the release is called as the chart is; its namespace is created unless it is kube-system; and Helm
    waits ten minutes for its pods, after which the deployment fails. It does not wait for HyperPod's dependencies:
    CreateCluster fails with "Amazon EKS orchestrator cluster is missing required dependencies" where these are missing,
    so they come before there are nodes to run them.

    Example:
        from podwright.config.loading.artifacts import stand_in_archive
        from podwright.config.catalog.charts import HYPERPOD_DEPENDENCIES, chart
        (folder / "Chart.yaml").write_text("{apiVersion: v2, name: mine, version: 0.1.0}")
        archive = stand_in_archive(HYPERPOD_DEPENDENCIES, folder)
        HelmRelease(stack, "Dependencies", cluster=cluster, chart=chart(HYPERPOD_DEPENDENCIES),
                    archive=archive, values={"mpi-operator": {"enabled": False}})
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: eks.ICluster,
        chart: Chart,
        archive: ChartArchive,
        values: Mapping[str, Any],
    ) -> None:
        """Defines the release.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            cluster: EKS cluster with a kubectl provider.
            chart: Which chart it is.
            archive: The chart itself.
            values: Its values; see `config.wanted_charts`.

        Raises:
            ValueError: an archive of another chart.
        """
        super().__init__(scope, construct_id)
        if archive.name != chart.name:
            raise ValueError(f"the archive holds {archive.name}, expected {chart.name}")

        # The kubectl provider unpacks a zip, so a folder and a zip of it are one to it.
        asset = (
            folder_asset(self, "Chart", shipped_files(archive.path))
            if archive.path.is_dir()
            else s3_assets.Asset(self, "Chart", path=str(archive.path))
        )
        release = eks.HelmChart(
            self,
            "Release",
            cluster=cluster,
            chart_asset=asset,
            release=chart.name,
            namespace=chart.namespace,
            create_namespace=chart.namespace != _SYSTEM_NAMESPACE,
            values=dict(values),
            wait=chart.name != HYPERPOD_DEPENDENCIES,
            timeout=cdk.Duration.minutes(10),
        )
        provider = cast(eks.IKubectlProvider, cluster.kubectl_provider)
        # Resolved, as cdk-nag names the resource by what stands in the finished template.
        objects = cdk.Stack.of(self).resolve(asset.bucket.arn_for_objects("*"))
        wildcards = ("Action::s3:GetBucket*", "Action::s3:GetObject*", "Action::s3:List*", f"Resource::{objects}")
        cdk.Validations.of(cast(iam.IRole, provider.role)).acknowledge(
            *(
                cdk.Acknowledgment(
                    id=f"AwsSolutions::AwsSolutions-IAM5[{wildcard}]",
                    reason="The CDK lets its kubectl provider read the bucket of assets, where the chart lies.",
                )
                for wildcard in wildcards
            )
        )
        resource = cast(cdk.CfnResource, release.node.find_child("Resource").node.default_child)
        # In the template, where whoever looks at a deployment sees it.
        if archive.stand_in:
            resource.add_metadata("podwright:stand-in", f"takes the place of the real {chart.name}; not for AWS")

        self.release = resource
        """The custom resource of the release; what needs the chart depends on it."""
        self.asset = asset
        """The chart as an asset."""
        self._values = resource

    def set_values(self, values: Mapping[str, Any]) -> None:
        """Install with other values."""
        # As text, which is what the handler reads: numbers of a property would arrive as text.
        self._values.add_property_override("Values", cdk.Stack.of(self).to_json_string(dict(values)))
