"""How a node that is taken out of work is marked, and what is written down of it.

Standard library only: the module travels into the Lambda functions that do the same by rule.
"""

from typing import Final

SHIPPED: Final = "planning/node/quarantine.py"
"""This module, for functions that ship it, by its path in the package."""
MARK: Final = "podwright/quarantine"
"""Key of the label and of the taint. No pod of ours but those of DaemonSets tolerates the taint, and Kueue's
topology-aware scheduling counts nodes with taints that a job does not tolerate as full."""
MARKED: Final = "true"
"""Value of both."""
REASON: Final = "podwright/quarantine-reason"
BY: Final = "podwright/quarantined-by"
SINCE: Final = "podwright/quarantined-since"


def annotations(reason: str, by: str, since: str) -> dict[str, str]:
    """What a marked node says of its quarantine."""
    return {REASON: reason, BY: by, SINCE: since}


def record_key(prefix: str, instance: str) -> str:
    """Where in the bucket of lifecycle scripts the record of a node's quarantine lies."""
    return f"{prefix}/{instance}.json"


def record(instance: str, reason: str, by: str, since: str) -> dict[str, str]:
    """The record of a quarantine; `since` is in ISO 8601."""
    return {"node": instance, "reason": reason, "by": by, "since": since}
