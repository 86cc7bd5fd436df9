"""YuniKorn on an EKS cluster: its release, unless the cluster has it, and its queues."""

from collections.abc import Iterable, Mapping
from typing import Any

from aws_cdk import aws_eks_v2 as eks
from constructs import Construct

from ...config.catalog.charts import YUNIKORN, chart
from ...config.loading.artifacts import ChartArchive
from ..eks.helm_release import HelmRelease
from ..eks.manifests import Manifests


class YuniKorn(Construct):
    """Apache YuniKorn with the queues of a quota policy.

    It needs nodes to run on. Its admission controller gives it the pods of the namespaces that `values` name, and
    checks the queues when they are applied: a configuration that YuniKorn would not take fails the deployment.

    Example:
        queues = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"queues.yaml": "{partitions: []}"},
                  "metadata": {"name": "yunikorn-configs", "namespace": "batch"}}
        YuniKorn(stack, "YuniKorn", cluster=cluster, archive=None, values={}, objects=[queues])
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: eks.ICluster,
        archive: ChartArchive | None,
        values: Mapping[str, Any],
        objects: Iterable[Mapping[str, Any]],
    ) -> None:
        """Defines release and queues.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            cluster: EKS cluster with a kubectl provider.
            archive: YuniKorn's chart; None where the cluster runs YuniKorn already.
            values: The chart's values; see `config.wanted_charts`.
            objects: What YuniKorn has to know; see `cdk8s_charts.yunikorn`.

        Raises:
            ValueError: an archive of another chart, or two objects of one name.
        """
        super().__init__(scope, construct_id)

        release = (
            HelmRelease(self, "Release", cluster=cluster, chart=chart(YUNIKORN), archive=archive, values=values)
            if archive
            else None
        )
        after = [release.release] if release else []
        queues = Manifests(self, "Queues", cluster=cluster, objects=objects, after=after)

        self.release = release.release if release else None
        """The release, if it is ours."""
        self.applied = queues.applied
        """Comes when the queues are there; what needs the quotas depends on it."""
