"""Timestamps and durations as traces write them."""

import re
from datetime import UTC, datetime

from ....config.errors import InvalidValue

NO_ZONE = "timestamps without a time zone are UTC"
"""The assumption of every reader whose form has no zones."""
_DURATION = re.compile(
    r"(?P<sign>-?)(?:(?P<days>\d+)[-d])?(?P<hours>\d+):(?P<minutes>\d\d):(?P<seconds>\d\d(?:\.\d+)?)"
)
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}


def timestamp(text: str) -> float:
    """Seconds since 1970 of `2027-01-04T08:00:00Z`, the same without a zone (UTC), or a number of seconds.

    Raises InvalidValue.
    """
    try:
        return float(text)
    except ValueError:
        pass
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidValue(f"{text!r} is not a time; write 2027-01-04T08:00:00Z, or seconds since 1970") from None
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()


def duration(text: str) -> float:
    """Seconds of `5400`, `90m`, `1.5h`, `30d`, `01:30:00` or `2-01:30:00`. Raises InvalidValue."""
    stripped = text.strip()
    unit = _UNITS.get(stripped[-1:].lower())
    try:
        return float(stripped[:-1]) * unit if unit else float(stripped)
    except ValueError:
        pass
    matched = _DURATION.fullmatch(stripped)
    if not matched:
        raise InvalidValue(f"{text!r} is not a duration; write seconds, 90m, 1.5h, 30d or 1-12:00:00")
    days, hours, minutes = (int(matched[name] or 0) for name in ("days", "hours", "minutes"))
    return (((days * 24 + hours) * 60 + minutes) * 60 + float(matched["seconds"])) * (-1 if matched["sign"] else 1)
