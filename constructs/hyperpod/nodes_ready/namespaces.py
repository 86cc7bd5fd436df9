"""A resource that exists once namespaces are there that somebody else makes."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

import aws_cdk as cdk
from constructs import Construct

from ...eks.manifests import Manifests
from .waiter import KubernetesApiAccess, wait

RESOURCE_TYPE: Final = "Custom::PodwrightNamespacesReady"


class NamespacesReady(Construct):
    """Waits until namespaces are there and none of them is being deleted.

    For the namespaces of teams under task governance: SageMaker makes them after it has answered that a quota is there,
    so an object that is applied next may find none. After a deployment that was rolled back, the former one may still
    be going. It waits again when a name or one of `made_by` changes.

    Decided for you: the handler runs in the control plane's subnets; its role may describe the EKS cluster and, in
    Kubernetes, what `group` may: to get these namespaces is enough, which `readers` let it
    (`cdk8s_charts.namespace_readers`). Needs endpoints or routes for EKS, Lambda and S3.

    Example:
        from podwright.cdk8s_charts.namespace_readers import namespace_readers
        from podwright.constructs.hyperpod.nodes_ready.namespaces import NamespacesReady
        from podwright.constructs.hyperpod.nodes_ready.waiter import KubernetesApiAccess
        access = KubernetesApiAccess(eks_cluster=cluster, vpc=vpc, subnets=tuple(vpc.private_subnets),
                                     security_group=nodes, key=key)
        readers = namespace_readers("teams", group="team-readers", namespaces=["hyperpod-ns-llm"])
        NamespacesReady(stack, "Teams", api_access=access, namespaces=["hyperpod-ns-llm"], made_by=[],
                        group="team-readers", readers=readers)
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        api_access: KubernetesApiAccess,
        namespaces: Sequence[str],
        made_by: Iterable[cdk.CfnResource],
        group: str,
        readers: Iterable[Mapping[str, Any]],
        timeout: cdk.Duration | None = None,
    ) -> None:
        """Defines the handler and the resource.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            api_access: Where the handler runs.
            namespaces: Their names.
            made_by: Resources with which they come; the wait begins after these, and anew when one is replaced.
            group: Kubernetes group that may get the namespaces.
            readers: Kubernetes objects that let it; applied first.
            timeout: How long to wait; 30 minutes when absent, an hour at most.

        Raises:
            ValueError: a timeout of more than an hour, or nothing to wait for.
        """
        super().__init__(scope, construct_id)
        if not namespaces:
            raise ValueError("namespaces is empty; there is nothing to wait for")

        access = Manifests(self, "Readers", cluster=api_access.eks_cluster, objects=readers)
        makers = list(made_by)
        self.function, resource = wait(
            self,
            "Namespaces",
            api_access=api_access,
            description="Waits for namespaces of teams",
            group=group,
            resource_type=RESOURCE_TYPE,
            properties={"Namespaces": list(namespaces), "MadeBy": [maker.ref for maker in makers]},
            timeout=timeout or cdk.Duration.minutes(30),
        )
        self.ready = cast(cdk.CfnResource, resource.node.default_child)
        """Comes when the namespaces are there; what lies in them depends on this."""
        for before in (access.applied, *makers):
            self.ready.add_resource_dependency(before)
