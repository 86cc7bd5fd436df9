"""Zones by id: which of them are Local Zones, and which can hold EKS control-plane interfaces."""

import re
from functools import cache

from .facts import Citation, cited, table

_LOCAL = re.compile(r"-[a-z]{3}[0-9]-az[0-9]+$")


def is_local(zone_id: str) -> bool:
    """Whether the zone is a Local Zone, such as usw2-phx2-az1."""
    return _LOCAL.search(zone_id) is not None


def takes_control_plane(zone_id: str) -> bool:
    """Whether EKS accepts a control-plane subnet there: in no Local Zone, nor where `data/zones.csv` says so."""
    return not is_local(zone_id) and zone_id not in without_control_plane()


@cache
def without_control_plane() -> dict[str, tuple[Citation, ...]]:
    """The Availability Zones whose subnets EKS refuses for its control plane, each with the source."""
    return {row["zone"]: cited(row["source"]) for row in table("zones") if row["control_plane"] == "no"}
