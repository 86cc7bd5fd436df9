"""A resource that exists once a Deployment has its replicas."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

import aws_cdk as cdk
from constructs import Construct

from ...eks.manifests import Manifests
from .waiter import KubernetesApiAccess, wait

RESOURCE_TYPE: Final = "Custom::PodwrightDeploymentReady"


class DeploymentReady(Construct):
    """Waits until every replica of a Deployment's current revision is ready.

    For what answers only once its pods run, such as the webhooks of a controller that an add-on installs: objects that
    it checks are refused until then. An update of the version that runs waits again when `version` changes with it.

    Decided for you: the handler runs in the control plane's subnets; its role may describe the EKS cluster and, in
    Kubernetes, what `group` may: to get that one Deployment is enough, which `readers` let it
    (`cdk8s_charts.deployment_readers`). Needs endpoints or routes for EKS, Lambda and S3.

    Example:
        from podwright.cdk8s_charts.deployment_readers import deployment_readers
        from podwright.constructs.hyperpod.nodes_ready.deployment import DeploymentReady
        from podwright.constructs.hyperpod.nodes_ready.waiter import KubernetesApiAccess
        access = KubernetesApiAccess(eks_cluster=cluster, vpc=vpc, subnets=tuple(vpc.private_subnets),
                                     security_group=nodes, key=key)
        readers = deployment_readers("dns", group="dns-readers", deployment="coredns")
        DeploymentReady(stack, "Dns", api_access=access, namespace="kube-system", deployment="coredns", version="v1",
                        group="dns-readers", readers=readers)
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        api_access: KubernetesApiAccess,
        namespace: str,
        deployment: str,
        version: str,
        group: str,
        readers: Iterable[Mapping[str, Any]],
        timeout: cdk.Duration | None = None,
    ) -> None:
        """Defines the handler and the resource.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            api_access: Where the handler runs.
            namespace: Namespace of the Deployment.
            deployment: Its name.
            version: Of what installs it; a change makes the next deployment wait again.
            group: Kubernetes group that may get the Deployment.
            readers: Kubernetes objects that let it; applied first.
            timeout: How long to wait; 55 minutes when absent, an hour at most.

        Raises:
            ValueError: a timeout of more than an hour.
        """
        super().__init__(scope, construct_id)

        access = Manifests(self, "Readers", cluster=api_access.eks_cluster, objects=readers)
        self.function, resource = wait(
            self,
            "Deployment",
            api_access=api_access,
            description=f"Waits for {deployment} in {namespace}",
            group=group,
            resource_type=RESOURCE_TYPE,
            properties={"Namespace": namespace, "Deployment": deployment, "Version": version},
            timeout=timeout,
        )
        self.ready = cast(cdk.CfnResource, resource.node.default_child)
        """Comes when the Deployment is ready; what needs it depends on this."""
        self.ready.add_resource_dependency(access.applied)
