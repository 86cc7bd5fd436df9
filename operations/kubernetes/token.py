"""Print an EKS token as kubectl's credential plugins do, without the AWS CLI and without a long-lived secret."""

import argparse
import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from ...config.errors import CommandError
from ...planning.kubernetes.eks_token import eks_token
from ..aws.shell_session import shell_session
from ..output.console import write_error, write_text

# A minute less than EKS takes it for, as clocks differ.
_LIFETIME = timedelta(minutes=14)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print an ExecCredential. Returns 1, with a reason, when there are no credentials."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cluster", required=True)
    parser.add_argument("--region", required=True)
    args = parser.parse_args(arguments)
    from botocore.exceptions import BotoCoreError

    try:
        write_text(exec_credential(shell_session(args.region), args.cluster))
    except BotoCoreError as error:
        write_error(CommandError(str(error), "sign in to AWS again"))
        return 1
    return 0


def exec_credential(session: Any, cluster: str) -> str:
    """What a credential plugin prints, with a token for an EKS cluster. Raises BotoCoreError without credentials.

    Args:
        session: A session of boto3.
        cluster: Name of the EKS cluster.
    """
    bearer = eks_token(session, cluster)
    # EKS takes the signature for 15 minutes.
    expires = (datetime.now(UTC) + _LIFETIME).strftime("%Y-%m-%dT%H:%M:%SZ")
    return json.dumps(
        {
            "apiVersion": "client.authentication.k8s.io/v1",
            "kind": "ExecCredential",
            "status": {"token": bearer, "expirationTimestamp": expires},
        }
    )


if __name__ == "__main__":
    sys.exit(main())
