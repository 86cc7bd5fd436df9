"""Rules of security groups, as EC2 describes them."""

from collections.abc import Mapping
from typing import Any


def names_group(rule: Mapping[str, Any], group: str) -> bool:
    """Whether a rule is for traffic of a security group, rather than of a range of addresses."""
    return any(pair.get("GroupId") == group for pair in rule.get("UserIdGroupPairs") or ())


def allows_itself(group: Mapping[str, Any], direction: str) -> bool:
    """Whether a security group has a rule for all its own traffic; `direction` as EC2 has it, such as IpPermissions."""
    rules = group.get(direction) or ()
    return any(rule.get("IpProtocol") == "-1" and names_group(rule, group.get("GroupId", "")) for rule in rules)
