"""Regions and availability zones as EC2 of the sandbox knows them."""

from typing import Final

from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend

ZONE_IDS: Final[dict[str, tuple[str, ...]]] = {
    region: tuple(sorted(zone.zone_id for zone in zones))
    for region, zones in sorted(RegionsAndZonesBackend.zones.items())
    if zones
}
"""The ids of each region's zones."""


def zones_near(zone_id: str) -> tuple[str, ...]:
    """The zones of the region that a zone's id begins with; those of all regions where none does."""
    near = [ids for ids in ZONE_IDS.values() if ids[0].partition("-")[0] == zone_id.partition("-")[0]]
    return near[0] if near else tuple(zone for ids in ZONE_IDS.values() for zone in ids)
