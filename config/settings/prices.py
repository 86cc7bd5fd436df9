"""Prices of one's own, which replace those of the package's lists."""

from datetime import date
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, StringConstraints

from .base import Settings

PriceName = Annotated[str, StringConstraints(pattern=r"^(ml\.[a-z0-9-]+\.[a-z0-9]+|[a-z0-9_]+)$", max_length=64)]
Usd = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class OwnPrice(Settings):
    """What one unit costs: an amount, or a mapping with the day of the list that it comes from."""

    usd: Usd
    """US dollars for an hour of an instance, or for a unit of what `podwright cost` prints."""
    as_of: date | None = None
    """Day of AWS's list that `podwright prices fetch` found it in; nothing for a price that somebody wrote down."""


def _amount(value: Any) -> Any:
    return value if isinstance(value, dict | OwnPrice) else {"usd": value}


OwnPrices = dict[PriceName, Annotated[OwnPrice, BeforeValidator(_amount, json_schema_input_type=Usd | OwnPrice)]]
