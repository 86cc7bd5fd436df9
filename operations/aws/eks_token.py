"""Tokens that the Kubernetes APIs of EKS clusters accept."""

import base64
from typing import Any, cast


def token(session: Any, cluster: str) -> str:
    """A token that EKS accepts: a signed GetCallerIdentity request that names the cluster. Signing is local.

    Source: Amazon EKS API server authentication, aws-iam-authenticator's README, 2026-11.
    """
    from botocore.signers import RequestSigner

    sts = session.client("sts")
    region = sts.meta.region_name
    signer = RequestSigner(
        sts.meta.service_model.service_id, region, "sts", "v4", session.get_credentials(), session.events
    )
    request = {
        "method": "GET",
        "url": f"{sts.meta.endpoint_url}/?Action=GetCallerIdentity&Version=2011-06-15",
        "body": {},
        "headers": {"x-k8s-aws-id": cluster},
        "context": {},
    }
    url = cast(str, signer.generate_presigned_url(request, region_name=region, expires_in=60, operation_name=""))
    return "k8s-aws-v1." + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")
