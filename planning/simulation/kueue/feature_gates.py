"""Kueue's feature gates: what they are in a deployment, and which of them make decisions that are not simulated."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ....config.catalog.facts import table

_SWITCH: Final = {True: "on", False: "off"}


def feature_gates(configuration: Mapping[str, Any] | None = None) -> dict[str, bool]:
    """Whether each gate is on, by name, where Kueue's manager has this configuration."""
    own = (configuration or {}).get("featureGates") or {}
    return {row["gate"]: row["default"] == "on" for row in table("kueue_feature_gates")} | own


def is_simulated(gate: str, value: bool) -> bool:
    """Whether decisions with this value of a gate are simulated, or it makes none."""
    row = next((row for row in table("kueue_feature_gates") if row["gate"] == gate), {"simulated": "none"})
    return row["simulated"] in ("either", "none", _SWITCH[value])


def not_simulated(configuration: Mapping[str, Any]) -> Iterator[str]:
    """A sentence for each gate of a manager's configuration by which Kueue decides otherwise than is simulated."""
    for gate, value in (configuration.get("featureGates") or {}).items():
        if not is_simulated(gate, value):
            yield f"feature gate {gate} is {_SWITCH[value]}, and what Kueue decides by that is not simulated"
