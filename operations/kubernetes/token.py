"""Print an EKS token as kubectl's credential plugins do, without the AWS CLI and without a long-lived secret."""

import argparse
import base64
import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

_LIFETIME = timedelta(minutes=14)


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


def main(arguments: Sequence[str] | None = None) -> int:
    """Print an ExecCredential. Returns 1, with a reason, when there are no credentials."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cluster", required=True)
    parser.add_argument("--region", required=True)
    args = parser.parse_args(arguments)
    import boto3
    from botocore.exceptions import BotoCoreError

    try:
        bearer = token(boto3.Session(region_name=args.region), args.cluster)
    except BotoCoreError as error:
        print(f"podwright: {error}; sign in to AWS again", file=sys.stderr)
        return 1
    # EKS takes the signature for 15 minutes.
    expires = (datetime.now(UTC) + _LIFETIME).strftime("%Y-%m-%dT%H:%M:%SZ")
    print(
        json.dumps(
            {
                "apiVersion": "client.authentication.k8s.io/v1",
                "kind": "ExecCredential",
                "status": {"token": bearer, "expirationTimestamp": expires},
            }
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
