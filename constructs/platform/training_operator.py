"""HyperPod's training operator on an EKS cluster."""

from collections.abc import Iterable

import aws_cdk as cdk
from constructs import Construct

from ...config.settings.cluster import Eks
from ...config.settings.platform import TRAINING_OPERATOR
from ...planning.rules import check
from ..common.permission import allow
from ..eks.addons import addon
from ..eks.pod_role import PodRole


class TrainingOperator(Construct):
    """The training-operator add-on, with the role that it asks SageMaker about nodes with.

    It needs nodes to run on and cert-manager for its webhooks. Its role may do what AWS's managed policy
    AmazonSageMakerHyperPodTrainingOperatorAccess allows (version 3: describe nodes), but on this cluster only; the
    managed policy covers every cluster of the account that is tagged SageMaker = true. The role comes first and by an
    association of its own, because version 1.2.1 refuses the add-on's inline form.

    Example:
        from podwright.config.settings.cluster import Eks
        TrainingOperator(stack, "Operator", settings=Eks(), cluster_name="prod",
                         hyperpod_arn="arn:aws:sagemaker:us-west-2:111122223333:cluster/abcdefghijkl")
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: Eks,
        cluster_name: str,
        hyperpod_arn: str,
        after: Iterable[cdk.CfnResource] = (),
    ) -> None:
        """Defines role and add-on.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            settings: The control plane's settings; `addons` may hold another version.
            cluster_name: Name of the EKS cluster.
            hyperpod_arn: ARN of the HyperPod cluster.
            after: What has to be there first: cert-manager.

        Raises:
            InvalidSettings: settings that cannot be built.
        """
        super().__init__(scope, construct_id)
        check(settings)

        identity = PodRole(
            self,
            "Pods",
            cluster_name=cluster_name,
            namespace="aws-hyperpod",
            service_account="hp-training-operator-controller-manager",
            description="HyperPod training operator",
        )
        allow(identity.role, ["sagemaker:DescribeClusterNode"], [hyperpod_arn])

        self.addon = addon(self, TRAINING_OPERATOR, settings, cluster_name)
        """The add-on; what uses HyperPodPyTorchJob depends on it."""
        for resource in (identity.association, *after):
            self.addon.node.add_dependency(resource)
        self.role = identity.role
        """What the operator may."""
