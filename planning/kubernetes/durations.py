"""Durations as Kubernetes and Kueue write them."""

import re
from typing import Final

_PART: Final = re.compile(r"([0-9.]+)(h|ms|m|s|µs|ns)")
_UNITS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}


def go_seconds(text: str) -> float:
    """Seconds of a duration as Go writes it, such as `5m34.1s` or `623ms`."""
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
