"""ARNs of the sandbox's resources."""

from typing import Final

PARTITION: Final = "aws"


def account_of(arn: str) -> str:
    """The account in an ARN."""
    return arn.split(":")[4]
