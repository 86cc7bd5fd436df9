"""The SDK's session of this shell's credentials, without anything else: for what runs with each command of somebody."""

from typing import Any


def shell_session(region: str) -> Any:
    """A boto3 session in a region, of whatever account the credentials open."""
    import boto3

    return boto3.Session(region_name=region)
