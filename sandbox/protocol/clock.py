"""The clock of the sandbox's services."""

from datetime import UTC, datetime


def now() -> datetime:
    """The time in UTC, to the millisecond, as events carry it."""
    moment = datetime.now(UTC)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)
