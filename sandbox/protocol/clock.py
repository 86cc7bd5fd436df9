"""The clock of the sandbox's services."""

from datetime import UTC, datetime


def now() -> datetime:
    """The time in UTC, to the millisecond, as events carry it."""
    timestamp = datetime.now(UTC)
    return timestamp.replace(microsecond=timestamp.microsecond // 1000 * 1000)
