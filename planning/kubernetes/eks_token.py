"""The token by which a caller signs in to an EKS cluster, as `aws eks get-token` makes it.

Standard library only: the module travels into the Lambda functions that ask Kubernetes. The command line uses it too.
"""

import base64
from typing import Any, Final

SHIPPED: Final = "planning/kubernetes/eks_token.py"
"""This module, for functions that ship it, by its path in the package."""


def eks_token(session: Any, cluster: str) -> str:
    """A signed GetCallerIdentity request that names the cluster, good for a minute. Signing is local.

    Source: Amazon EKS API server authentication, aws-iam-authenticator's README, 2026-11.

    Args:
        session: A session of boto3.
        cluster: Name of the EKS cluster.
    """
    # A client of its own, since from here on whatever it signs names the cluster.
    sts = session.client("sts")

    def name_cluster(request: Any, **_: Any) -> None:
        request.headers["x-k8s-aws-id"] = cluster

    sts.meta.events.register("before-sign.sts.GetCallerIdentity", name_cluster)
    url = sts.generate_presigned_url("get_caller_identity", ExpiresIn=60, HttpMethod="GET")
    return "k8s-aws-v1." + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")
