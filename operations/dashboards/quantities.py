"""Numbers with units as people read them."""

from typing import Final

from ...planning.monitoring.dashboards.panel import UNITS

_BYTES: Final = (("TiB", 1024.0**4), ("GiB", 1024.0**3), ("MiB", 1024.0**2), ("KiB", 1024.0), ("B", 1.0))
_TIMES: Final = (("d", 86400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0))


def scale(unit: str, largest: float) -> tuple[float, str]:
    """What to multiply values of a unit with, and what to write behind them, where the largest has this size."""
    if unit in ("bytes", "bytes/s"):
        word, size = next((item for item in _BYTES if largest >= item[1]), _BYTES[-1])
        return 1 / size, word + unit.removeprefix("bytes")
    if unit == "seconds":
        word, size = next((item for item in _TIMES if largest >= 2 * item[1]), _TIMES[-1])
        return 1 / size, word
    return UNITS[unit].factor, UNITS[unit].suffix


def written(value: float, unit: str) -> str:
    """A value with its unit, in three digits or as a whole number."""
    factor, suffix = scale(unit, abs(value))
    shown = value * factor
    decimals = 1 if abs(shown) >= 10 else 2
    digits = 0 if abs(shown) >= 100 or shown == int(shown) else decimals
    return f"{shown:,.{digits}f} {suffix}".rstrip()
