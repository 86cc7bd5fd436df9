"""The clock of the sandbox's services."""

from datetime import UTC, datetime


def now() -> datetime:
    """Return the time in UTC with milliseconds, the precision of events."""
    timestamp = datetime.now(UTC)
    return timestamp.replace(microsecond=timestamp.microsecond // 1000 * 1000)
