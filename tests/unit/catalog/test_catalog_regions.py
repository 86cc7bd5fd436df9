from datetime import date

import pytest

from podwright.config.catalog.eks_versions import eks_versions
from podwright.config.catalog.instance_types import catalog
from podwright.config.catalog.regions import (
    InvalidZoneId,
    UnknownRegion,
    offered,
    offering_regions,
    region,
    regions,
    zone,
)


@pytest.mark.parametrize(
    ("zone_id", "region_name", "kind", "location"),
    [
        ("usw2-az2", "us-west-2", "availability", ""),
        ("use1-az6", "us-east-1", "availability", ""),
        ("apne1-az4", "ap-northeast-1", "availability", ""),
        ("usgw1-az1", "us-gov-west-1", "availability", ""),
        ("cnnw1-az1", "cn-northwest-1", "availability", ""),
        ("usw2-phx2-az1", "us-west-2", "local", "phx2"),
        ("use1-dfw2-az1", "us-east-1", "local", "dfw2"),
        ("xyz9-az1", None, "availability", ""),
    ],
)
def test_zone_ids_tell_region_and_kind(zone_id, region_name, kind, location):
    position = zone(zone_id)
    assert (position.id, position.region, position.kind, position.location) == (zone_id, region_name, kind, location)


@pytest.mark.parametrize("name", ["us-west-2a", "us-west-2-phx-2a", "us-gov-west-1b"])
def test_a_zone_name_is_refused_with_the_reason(name):
    with pytest.raises(InvalidZoneId, match="is a zone name, which means another zone in each account"):
        zone(name)


@pytest.mark.parametrize("text", ["", "us-west-2", "usw2", "usw2-az", "USW2-az1", "usw2-az1 ", "usw2-wl1-las-wlz1"])
def test_other_text_is_not_a_zone_id(text):
    with pytest.raises(InvalidZoneId, match="is not a zone id; ids look like usw2-az2"):
        zone(text)


def test_every_zone_prefix_belongs_to_one_region():
    prefixes = [row.zone_prefix for row in regions().values() if row.zone_prefix]
    assert len(prefixes) == len(set(prefixes))


@pytest.mark.parametrize(
    ("name", "partition"),
    [("us-west-2", "aws"), ("cn-north-1", "aws-cn"), ("us-gov-east-1", "aws-us-gov"), ("eusc-de-east-1", "aws-eusc")],
)
def test_partitions(name, partition):
    assert region(name).partition == partition


def test_an_unknown_region_names_the_closest():
    with pytest.raises(UnknownRegion, match="us-west-22 is not a region; did you mean us-west-2 or") as error:
        region("us-west-22")
    assert error.value.close[0] == "us-west-2"


def test_what_the_lists_say_of_a_type_in_a_region():
    assert offered("ml.p6-b300.48xlarge", "us-west-2") is True
    assert offered("ml.trn2.48xlarge", "us-west-2") is False
    assert offered("ml.p5e.48xlarge", "us-west-2") is None, "no list shows the type"
    assert offered("ml.m5.large", "me-central-1") is None, "no list shows the region"
    assert offering_regions("ml.trn2.48xlarge") == ("us-east-2",)
    assert offering_regions("ml.p5e.48xlarge") == ()


def test_the_lists_name_known_types_and_regions():
    for row in catalog():
        assert set(offering_regions(row.name)) <= set(regions())


def test_eks_versions_are_in_order_with_dates_and_sources():
    versions = list(eks_versions().values())

    assert [row.version for row in versions] == [f"1.{minor}" for minor in range(28, 38)]
    assert {row.version: row.hyperpod for row in versions if row.hyperpod != "documented"} == {
        "1.35": "seen",
        "1.36": "unknown",
        "1.37": "unknown",
    }
    for row in versions:
        assert row.sources
        if row.standard_until and row.extended_until:
            assert date.fromisoformat(row.standard_until) < date.fromisoformat(row.extended_until)
