"""ARNs of the sandbox's resources."""

from typing import Final

PARTITION: Final = "aws"


def account_of(arn: str) -> str:
    """Return the account in an ARN."""
    return arn.split(":")[4]
