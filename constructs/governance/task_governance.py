"""HyperPod task governance on an EKS cluster: the add-on, and the wait until it takes quotas."""

from collections.abc import Iterable, Mapping
from typing import Any

from constructs import Construct

from ...config.catalog.kubernetes_groups import KUEUE_READERS
from ...config.settings.cluster import Eks
from ...config.settings.governance.task_governance import ADDON, CONTROLLER, NAMESPACE
from ...planning.kubernetes.addons import addon_version
from ...planning.rules import check
from ..eks.addons import addon
from ..hyperpod.nodes_ready.deployment import DeploymentReady
from ..hyperpod.nodes_ready.waiter import KubernetesApiAccess


class TaskGovernance(Construct):
    """The task-governance add-on with its Kueue, and a wait until that serves its webhooks.

    It needs nodes to run on, Kubernetes 1.30 or newer, and no other Kueue: quotas of ours and of the service would
    overwrite each other. Conflicts are overwritten, as AWS's own set-up does.

    Upgrades happen in place from v1.5 on; the step from v1.3 to v1.5 does not, because v1.3 stores cohorts in a version
    that v1.5 no longer has (see docs/operator/task-governance.md).
    Source: SageMaker Developer Guide, "Upgrade the task governance add-on", 2026-11.

    Example:
        from podwright.cdk8s_charts.deployment_readers import deployment_readers
        from podwright.constructs.hyperpod.nodes_ready.waiter import KubernetesApiAccess
        access = KubernetesApiAccess(eks_cluster=cluster, vpc=vpc, subnets=tuple(vpc.private_subnets),
                                     security_group=nodes, key=key)
        readers = deployment_readers("kueue", group=KUEUE_READERS, deployment=CONTROLLER)
        TaskGovernance(stack, "TaskGovernance", settings=Eks(), api_access=access, readers=readers)
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: Eks,
        api_access: KubernetesApiAccess,
        readers: Iterable[Mapping[str, Any]],
    ) -> None:
        """Defines the add-on and the wait.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            settings: The control plane's settings; `addons` may hold another version.
            api_access: Where the wait runs.
            readers: Kubernetes objects that let the group `KUEUE_READERS` see the Deployment of Kueue's controller.

        Raises:
            InvalidSettings: settings that cannot be built.
        """
        super().__init__(scope, construct_id)
        check(settings)

        self.addon = addon(self, ADDON, settings, api_access.eks_cluster.cluster_name)
        """The add-on."""
        controller = DeploymentReady(
            self,
            "Kueue",
            api_access=api_access,
            namespace=NAMESPACE,
            deployment=CONTROLLER,
            version=addon_version(ADDON, settings) or "",
            group=KUEUE_READERS,
            readers=readers,
        )
        controller.ready.add_resource_dependency(self.addon)

        self.ready = controller.ready
        """Comes when the add-on takes quotas; they depend on it."""
