"""Shares of a queue of training jobs: the same teams as on a cluster, in the words of AWS Batch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ...config.settings.governance.teams import Sharing, Team
from ...config.settings.platform import TrainingJobQueue

STRATEGIES: Final[dict[Sharing, str]] = {"lend_and_borrow": "LEND_AND_BORROW", "lend": "LEND", "dont_lend": "RESERVE"}
"""How Batch calls what a team does with idle capacity."""


@dataclass(frozen=True, slots=True)
class Share:
    """What a team has of a queue."""

    capacity: dict[str, int]
    """Instances by type, in the order of their names."""
    strategy: str
    """RESERVE, LEND or LEND_AND_BORROW."""
    borrow_limit: int | None
    """Percent of its capacity that it may borrow; None where it borrows nothing."""
    preempts: bool
    """Whether its own work of higher priority may stop its own work of lower priority."""


def queue_shares(queue: TrainingJobQueue, teams: Mapping[str, Team]) -> dict[str, Share]:
    """The shares of a queue by team, for the teams that it has and that are in `teams`.

    Batch has no weights (borrowers are served first come, first served), no limits by type (one percentage holds for
    all) and no priority classes (a job carries a number); rules speak where a team has any.
    """
    return {
        name: Share(
            dict(sorted(capacity.items())),
            STRATEGIES[teams[name].share],
            teams[name].borrow_limit_percent if teams[name].share == "lend_and_borrow" else None,
            teams[name].preempt == "lower_priority",
        )
        for name, capacity in sorted(queue.quota.items())
        if name in teams
    }
