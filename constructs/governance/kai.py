"""KAI on an EKS cluster: its release, the wait until it takes queues, and the queues."""

from collections.abc import Iterable, Mapping
from typing import Any

from constructs import Construct

from ...config.catalog.charts import KAI, chart
from ...config.catalog.kubernetes_groups import KAI_CONTROLLER, KAI_READERS
from ...config.loading.artifacts import ChartArchive
from ..eks.helm_release import HelmRelease
from ..eks.manifests import Manifests
from ..hyperpod.nodes_ready.deployment import DeploymentReady
from ..hyperpod.nodes_ready.waiter import KubernetesApiAccess


class Kai(Construct):
    """KAI, NVIDIA's scheduler, with the queues of a quota policy.

    It needs nodes to run on. It schedules the pods that name it and no others, so it stands beside Kubernetes' own
    scheduler. Queues come once the controller that checks them answers, parents before their children.

    Example:
        from podwright.config.loading.artifacts import stand_in_archive
        from podwright.constructs.hyperpod.nodes_ready.waiter import KubernetesApiAccess
        (folder / "Chart.yaml").write_text("{apiVersion: v2, name: mine, version: 0.1.0}")
        access = KubernetesApiAccess(eks_cluster=cluster, vpc=vpc, subnets=tuple(vpc.private_subnets),
                                     security_group=nodes, key=key)
        queue = {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "h200"}, "spec": {}}
        Kai(stack, "Kai", api_access=access, archive=stand_in_archive("kai-scheduler", folder), values={}, readers=[],
            objects=[queue])
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        api_access: KubernetesApiAccess,
        archive: ChartArchive,
        values: Mapping[str, Any],
        readers: Iterable[Mapping[str, Any]],
        objects: Iterable[Mapping[str, Any]],
    ) -> None:
        """Defines release, wait and queues.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            api_access: The cluster, and where the wait runs.
            archive: KAI's chart.
            values: Its values; see `config.wanted_charts`.
            readers: Kubernetes objects that let the group `KAI_READERS` see the Deployment `KAI_CONTROLLER`.
            objects: What KAI has to know; see `cdk8s_charts.kai`.

        Raises:
            ValueError: an archive of another chart, or two objects of one name.
        """
        super().__init__(scope, construct_id)
        kai, cluster = chart(KAI), api_access.eks_cluster

        release = HelmRelease(self, "Release", cluster=cluster, chart=kai, archive=archive, values=values)
        controller = DeploymentReady(
            self,
            "QueueController",
            api_access=api_access,
            namespace=kai.namespace,
            deployment=KAI_CONTROLLER,
            version=kai.version,
            group=KAI_READERS,
            readers=readers,
        )
        controller.ready.add_resource_dependency(release.release)
        queues = Manifests(self, "Queues", cluster=cluster, objects=objects, after=[controller.ready])

        self.release = release.release
        """The release."""
        self.applied = queues.applied
        """Comes when every queue is there; what needs the quotas depends on it."""
