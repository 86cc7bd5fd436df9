"""What training plans are called, and how their moments are written.

Standard library only: this module travels into the Lambda function that buys, beside `plan_purchase`.
"""

from datetime import UTC, datetime


def plan_name(environment: str, plan: str) -> str:
    """What the first generation of a plan is called in AWS."""
    return f"{environment}-{plan}"


def shown(timestamp: datetime) -> str:
    """A moment in UTC as people and files write it: 2027-01-04T11:30Z."""
    return f"{timestamp.astimezone(UTC):%Y-%m-%dT%H:%MZ}"
