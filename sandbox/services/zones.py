"""Regions and availability zones of the sandbox's EC2."""

import itertools
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend
from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS
from moto.utilities.utils import load_resource

_REGIONS_AT_HAND: Final = 4


def _ids(region: str) -> tuple[str, ...]:
    return tuple(sorted(zone.zone_id for zone in RegionsAndZonesBackend.zones[region]))


ZONE_IDS: Final[dict[str, tuple[str, ...]]] = {
    region: _ids(region) for region in sorted(RegionsAndZonesBackend.zones) if RegionsAndZonesBackend.zones[region]
}
"""The ids of each region's zones."""


def zones_near(zone_id: str) -> tuple[str, ...]:
    """Return the zones of the region whose prefix a zone's id has; those of all regions if the prefix is unknown."""
    prefix = zone_id.partition("-")[0]
    near = [ids for ids in ZONE_IDS.values() if ids[0].startswith(f"{prefix}-")]
    return near[0] if near else tuple(itertools.chain.from_iterable(ZONE_IDS.values()))


class _Offerings(Mapping[str, list[dict[str, str]]]):
    """The offered instance types by region, each read at its first use; all together take 40 MB."""

    def __init__(self, location_type: str, regions: frozenset[str]):
        self.location_type, self.regions = location_type, regions

    def __getitem__(self, region: str) -> list[dict[str, str]]:
        if region not in self.regions:
            raise KeyError(region)
        return _offered(self.location_type, region)

    def __iter__(self) -> Iterator[str]:
        return iter(self.regions)

    def __len__(self) -> int:
        return len(self.regions)


@lru_cache(maxsize=_REGIONS_AT_HAND)
def _offered(location_type: str, region: str) -> list[dict[str, str]]:
    rows = load_resource(f"ec2/resources/instance_type_offerings/{location_type}/{region}.json")
    return [{**row, "LocationType": location_type} for row in rows]


def mount() -> None:
    """Replace moto's offers."""
    for location_type, regions in INSTANCE_TYPE_OFFERINGS.items():
        INSTANCE_TYPE_OFFERINGS[location_type] = _Offerings(location_type, frozenset(regions))
