"""What `protection` of an environment means for one resource."""

from typing import Literal

import aws_cdk as cdk

Protection = Literal["retain", "destroy"]
"""retain: networks and data survive their stacks. destroy: for sandboxes."""

# Plain RETAIN would also keep what a failed first deployment had made; its names and addresses would block the next.
_POLICIES = {"retain": cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE, "destroy": cdk.RemovalPolicy.DESTROY}


def removal_policy(protection: Protection) -> cdk.RemovalPolicy:
    """The removal policy of what holds data or addresses. What only costs money goes with its stack either way."""
    return _POLICIES[protection]
