"""Regions and availability zones as EC2 of the sandbox knows them."""

import itertools
from typing import Final

from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend


def _ids(region: str) -> tuple[str, ...]:
    return tuple(sorted(zone.zone_id for zone in RegionsAndZonesBackend.zones[region]))


ZONE_IDS: Final[dict[str, tuple[str, ...]]] = {
    region: _ids(region) for region in sorted(RegionsAndZonesBackend.zones) if RegionsAndZonesBackend.zones[region]
}
"""The ids of each region's zones."""


def zones_near(zone_id: str) -> tuple[str, ...]:
    """The zones of the region that a zone's id begins with; those of all regions where none does."""
    prefix = zone_id.partition("-")[0]
    near = [ids for ids in ZONE_IDS.values() if ids[0].startswith(f"{prefix}-")]
    return near[0] if near else tuple(itertools.chain.from_iterable(ZONE_IDS.values()))
