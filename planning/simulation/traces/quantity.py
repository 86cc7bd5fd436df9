"""Amounts as Kubernetes writes them."""

import re
from typing import Final

from ....config.errors import InvalidValue

_QUANTITY: Final = re.compile(r"(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)([numkMGTPE]|[KMGTPE]i)?")
_FACTORS: Final = {
    "": 1.0,
    "n": 1e-9,
    "u": 1e-6,
    "m": 1e-3,
    "k": 1e3,
    "M": 1e6,
    "G": 1e9,
    "T": 1e12,
    "P": 1e15,
    "E": 1e18,
    **{f"{prefix}i": 1024.0**power for power, prefix in enumerate("KMGTPE", 1)},
}


def parsed_quantity(text: str) -> float:
    """A quantity of Kubernetes, such as `1500m` or `2Gi`, in the unit of its resource. Raises InvalidValue."""
    matched = _QUANTITY.fullmatch(text)
    if not matched:
        raise InvalidValue(f"{text!r} is no quantity of Kubernetes")
    return float(matched[1]) * _FACTORS[matched[2] or ""]
