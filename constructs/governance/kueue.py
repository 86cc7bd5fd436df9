"""Kueue of one's own on an EKS cluster: its release, and the queues of a quota policy."""

from collections.abc import Iterable, Mapping
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_eks_v2 as eks
from constructs import Construct

from ...config.catalog.charts import KUEUE, chart
from ...config.loading.artifacts import ChartArchive
from ..eks.helm_release import HelmRelease
from ..eks.manifests import Manifests


class KueueQueues(Construct):
    """Kueue with the queues of a quota policy.

    It needs nodes to run on, and no other Kueue on the cluster: HyperPod task governance brings one, whose objects it
    would share. The release is there once Kueue's webhooks answer, since its readiness probe asks them, and queues come
    after it. What is removed goes the other way round: queues, then Kueue with its custom resource definitions.

    Example:
        from podwright.config.loading.artifacts import stand_in_archive
        (folder / "Chart.yaml").write_text("{apiVersion: v2, name: mine, version: 0.1.0}")
        flavor = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "h200"}}
        KueueQueues(stack, "Kueue", cluster=cluster, archive=stand_in_archive("kueue", folder), values={},
                    objects=[flavor])
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: eks.ICluster,
        archive: ChartArchive,
        values: Mapping[str, Any],
        objects: Iterable[Mapping[str, Any]],
        after: Iterable[cdk.CfnResource] = (),
    ) -> None:
        """Defines release and queues.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            cluster: EKS cluster with a kubectl provider.
            archive: Kueue's chart.
            values: Its values; see `config.wanted_charts`.
            objects: What Kueue has to know; see `cdk8s_charts.kueue`.
            after: What queues need besides: the teams' namespaces.

        Raises:
            ValueError: an archive of another chart, or two objects of one name.
        """
        super().__init__(scope, construct_id)

        release = HelmRelease(self, "Release", cluster=cluster, chart=chart(KUEUE), archive=archive, values=values)
        queues = Manifests(self, "Queues", cluster=cluster, objects=objects, after=[release.release, *after])

        self.release = release.release
        """The release."""
        self.applied = queues.applied
        """Comes when every queue is there; what needs the quotas depends on it."""
