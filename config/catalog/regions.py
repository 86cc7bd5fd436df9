"""Regions, zone ids, and where HyperPod offers which instance type by the public lists.

The lists lag behind AWS and disagree with each other, so they warn and never refuse.
"""

import difflib
import re
from functools import cache
from typing import Literal, NamedTuple

from ..errors import InvalidValue, UnknownName
from .facts import Citation, cited, table


class UnknownRegion(UnknownName):
    """A region name that no list holds; `close` are the names most like it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.close = tuple(difflib.get_close_matches(name, list(regions()), 3))
        hint = f"did you mean {' or '.join(self.close)}?" if self.close else "region names look like us-west-2."
        super().__init__(f"{name} is not a region; {hint}")


class InvalidZoneId(InvalidValue):
    """Text that is not a zone id, a zone name for instance."""


class Region(NamedTuple):
    """A region and what the public lists say of it."""

    name: str
    partition: str
    """aws, aws-cn, aws-us-gov or another, as in `arn:<partition>:…`."""
    zone_prefix: str | None
    """What its zone ids begin with, such as usw2; None where no list says."""
    cluster: bool
    """Whether CloudFormation lists AWS::SageMaker::Cluster there."""
    compute_quota: bool
    """Whether CloudFormation lists AWS::SageMaker::ComputeQuota there."""
    scheduler_config: bool
    """Whether CloudFormation lists AWS::SageMaker::ClusterSchedulerConfig there."""
    sources: tuple[Citation, ...]


class Zone(NamedTuple):
    """A zone id, taken apart."""

    id: str
    region: str | None
    """None when no region is known to use its prefix."""
    kind: Literal["availability", "local"]
    location: str
    """Of a Local Zone, such as phx2 in usw2-phx2-az1; empty for an Availability Zone."""


@cache
def regions() -> dict[str, Region]:
    """All regions by name."""
    return {
        row["region"]: Region(
            row["region"],
            row["partition"],
            row["zone_prefix"] or None,
            row["cluster"] == "yes",
            row["compute_quota"] == "yes",
            row["scheduler_config"] == "yes",
            cited(row["source"]),
        )
        for row in table("regions")
    }


def region(name: str) -> Region:
    """The region of that name. Raises UnknownRegion, which carries the closest names."""
    if name not in regions():
        raise UnknownRegion(name)
    return regions()[name]


_ZONE_ID = re.compile(r"([a-z]{3,5}[0-9])-(?:([a-z]{3,4}[0-9]{1,2})-)?az[0-9]{1,2}")
_ZONE_NAME = re.compile(r"[a-z]{2}(-[a-z]+)+-[0-9](-[a-z]{3,4}-[0-9]{1,2})?[a-z]")


def zone(zone_id: str) -> Zone:
    """The zone id taken apart: usw2-az2 of a region, usw2-phx2-az1 of a Local Zone.

    Raises:
        InvalidZoneId: not a zone id. Zone names (us-west-2a) mean another zone in each account, and are refused.
    """
    match = _ZONE_ID.fullmatch(zone_id)
    if match is None:
        hint = (
            f"{zone_id} is a zone name, which means another zone in each account; "
            "`aws ec2 describe-availability-zones` prints its ZoneId"
            if _ZONE_NAME.fullmatch(zone_id)
            else f"{zone_id} is not a zone id"
        )
        raise InvalidZoneId(f"{hint}; ids look like usw2-az2, or usw2-phx2-az1 in a Local Zone")
    prefix, location = match[1], match[2] or ""
    return Zone(zone_id, _by_prefix().get(prefix), "local" if location else "availability", location)


@cache
def _by_prefix() -> dict[str, str]:
    return {row.zone_prefix: row.name for row in regions().values() if row.zone_prefix}


@cache
def _offers() -> dict[str, tuple[str, ...]]:
    return {row["type"]: tuple(row["regions"].split()) for row in table("region_availability")}


def offering_regions(instance_type: str) -> tuple[str, ...]:
    """Regions in which the price lists show the type for HyperPod; empty when they do not show it at all."""
    return _offers().get(instance_type, ())


def offered(instance_type: str, region_name: str) -> bool | None:
    """Whether the price lists show the type for HyperPod in the region.

    None when they say nothing of the type or of the region. False is a reason to warn: the lists lag behind AWS.
    """
    listed = {name for names in _offers().values() for name in names}
    if instance_type not in _offers() or region_name not in listed:
        return None
    return region_name in _offers()[instance_type]
