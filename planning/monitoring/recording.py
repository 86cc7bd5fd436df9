"""What a recording rule is."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Recording:
    """One recording rule."""

    name: str
    expression: str
    """PromQL with `$cluster` and `$rate`."""
    labels: tuple[str, ...]
    """What its series are told apart by, besides `cluster_name`."""
    unit: str
    """Unit of its values, as metrics name them."""
    says: str
    """What it is, in a sentence."""
