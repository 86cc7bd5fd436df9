"""The route tables of subnets, as EC2 describes them."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

EVERYWHERE: Final = "0.0.0.0/0"


def table_of(tables: Iterable[Mapping[str, Any]], subnet: str) -> Mapping[str, Any] | None:
    """The route table of a subnet: its own, else the VPC's main one; None where `tables` has neither."""
    pairs = [(table, association) for table in tables for association in table.get("Associations", [])]
    own = next((table for table, association in pairs if association.get("SubnetId") == subnet), None)
    # Subnets without a table of their own follow the VPC's main one.
    return own or next((table for table, association in pairs if association.get("Main")), None)


def default_route(table: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The route that everything else takes: longer ones lead to particular networks."""
    return next((route for route in table["Routes"] if route.get("DestinationCidrBlock") == EVERYWHERE), None)


def is_public(route: Mapping[str, Any] | None) -> bool:
    """Whether a default route leads to the internet by itself."""
    return route is not None and route.get("GatewayId", "").startswith("igw-")
