"""What the stacks of one environment tell Kubernetes objects about themselves."""

from ..planning.kubernetes.deployed_values import DeployedValues
from .cluster import ClusterStack
from .eks import EksStack
from .platform import PlatformStack
from .storage import StorageStack


def deployed_values(
    storage: StorageStack, eks: EksStack, cluster: ClusterStack, platform: PlatformStack | None
) -> DeployedValues:
    """The values as tokens, for objects that `cdk deploy` applies.

    Roles of service accounts are left out: no object that a deployment applies names one, and the stack that makes them
    comes later.
    """
    return DeployedValues(
        cluster_arn=cluster.cluster.cluster_arn,
        eks_cluster_name=eks.control_plane.cluster.cluster_name,
        checkpoint_bucket=storage.checkpoint_bucket.bucket_name,
        lustre=storage.lustre_values,
        roles={},
        mlflow=(platform.mlflow_arn if platform else None) or "",
    )
