"""Subnet ranges: right, disjoint, and stable under every edit of the list of zones."""

from ipaddress import IPv4Network
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podwright.config.catalog.zones import takes_control_plane, without_control_plane
from podwright.config.settings.network import Network
from podwright.planning.network.cidrs import Subnet, all_subnets, collisions, nat_zones, plan, slot, strays, usable

VPCS = st.builds(
    lambda second, third, prefix: str(IPv4Network((f"10.{second}.{third}.0", prefix), strict=False)),
    st.integers(0, 255),
    st.integers(0, 255),
    st.integers(16, 20),
)
REGULAR = st.integers(1, 6).map(lambda number: f"usw2-az{number}")
LOCAL_ZONES = ["usw2-phx2-az1", "usw2-lax1-az1", "usw2-lax1-az2", "usw2-las1-az1", "usw2-den1-az1"]
LOCAL = st.sampled_from(LOCAL_ZONES)
ZONES = st.lists(REGULAR | LOCAL, min_size=1, max_size=8, unique=True)
SHAPES: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"endpoints": st.sampled_from(["standard", "closed"]), "nat": st.sampled_from(["per_zone", "single"])}
)


def network(zones: list[str], **settings: Any) -> Network:
    return Network(zones=tuple(zones), **settings)


def test_the_slot_of_a_16() -> None:
    ranges = plan(network(["usw2-az2"]))
    assert {role: str(block) for (_, role), block in ranges.items()} == {
        "public": "10.16.64.0/24",
        "control_plane": "10.16.65.0/24",
        "nodes": "10.16.80.0/20",
    }
    assert usable(ranges["usw2-az2", "nodes"]) == 4091


def test_the_slot_of_a_20_ends_at_the_smallest_subnet() -> None:
    """AWS takes subnets from /16 to /28."""
    ranges = plan(network(["usw2-az2"], cidr="10.0.0.0/20"))
    assert str(ranges["usw2-az2", "control_plane"]) == "10.0.4.16/28"
    assert usable(ranges["usw2-az2", "control_plane"]) == 11


@given(cidr=VPCS, zones=ZONES, shape=SHAPES, data=st.data())
def test_no_edit_of_the_zones_moves_a_subnet(cidr: str, zones: list[str], shape: Any, data: st.DataObject) -> None:
    before = plan(network(zones, cidr=cidr, **shape))
    edited = data.draw(st.lists(REGULAR | LOCAL, max_size=3)) + data.draw(st.permutations(zones).map(list))
    retained = list(dict.fromkeys(edited))[:8]
    retained = retained[data.draw(st.integers(0, len(retained) - 1)) :]
    after = plan(network(retained, cidr=cidr, **shape))
    assert {key: after[key] for key in before.keys() & after.keys()} == {
        key: before[key] for key in before.keys() & after.keys()
    }
    assert {zone for zone, role in after if role == "nodes"} == set(retained)


@given(cidr=VPCS, zones=ZONES, shape=SHAPES)
def test_subnets_lie_in_the_vpc_and_apart(cidr: str, zones: list[str], shape: Any) -> None:
    settings = network(zones, cidr=cidr, **shape)
    ranges = plan(settings)
    assert strays(settings) == []
    overlapping = [(one, other) for (one, a), (other, b) in combinations(ranges.items(), 2) if a.overlaps(b)]
    assert [(one[:2], other[:2]) for one, other in collisions(settings)] == overlapping
    assert all({one[0], other[0]} <= set(LOCAL_ZONES) for one, other in overlapping)
    assert all(block.prefixlen <= 28 for block in ranges.values())


@given(cidr=VPCS, zones=st.lists(REGULAR, min_size=1, max_size=6, unique=True), shape=SHAPES)
def test_availability_zones_never_collide(cidr: str, zones: list[str], shape: Any) -> None:
    assert collisions(network(zones, cidr=cidr, **shape)) == []


@given(zones=ZONES, shape=SHAPES, data=st.data())
def test_the_order_of_zones_means_nothing(zones: list[str], shape: Any, data: st.DataObject) -> None:
    """Except that the first one holds the single NAT gateway."""
    shape = shape | {"nat": "per_zone"}
    shuffled = data.draw(st.permutations(zones))
    assert list(plan(network(zones, **shape)).items()) == list(plan(network(shuffled, **shape)).items())


@given(number=st.integers(1, 99))
def test_a_slot_follows_from_the_zones_own_number(number: int) -> None:
    assert slot(f"use1-az{number}") == slot(f"apne1-az{number}") == number % 8


def test_local_zones_use_the_slots_that_no_availability_zone_has() -> None:
    assert {slot(zone) for zone in LOCAL_ZONES} == {0, 7}


def test_two_local_zones_in_one_slot_are_found_and_resolved_by_hand() -> None:
    sharing = [zone for zone in LOCAL_ZONES if slot(zone) == slot(LOCAL_ZONES[0])][:2]
    zones = ["usw2-az1", *sharing]
    assert [{one[0], other[0]} for one, other in collisions(network(zones))] == [set(sharing)]
    assert collisions(network(zones, subnets={sharing[1]: {"nodes": "10.16.0.0/20"}})) == []


def test_an_override_replaces_one_range_only() -> None:
    free = plan(network(["usw2-az1", "usw2-az2"]))
    provided = plan(network(["usw2-az1", "usw2-az2"], subnets={"usw2-az1": {"nodes": "100.64.0.0/18"}}))
    assert provided == free | {("usw2-az1", "nodes"): IPv4Network("100.64.0.0/18")}


def test_further_nodes_subnets_move_no_other_and_have_no_order() -> None:
    one = {"usw2-az1": {"more_nodes": ["100.65.0.0/16", "100.64.0.0/16"]}}
    secondary = ("100.64.0.0/16", "100.65.0.0/16")
    before, after = network(["usw2-az1", "usw2-az2"]), network(["usw2-az1", "usw2-az2"], subnets=one)
    assert plan(after) == plan(before)
    blocks = [subnet.block for subnet in all_subnets(after) if subnet.further]
    assert blocks == [IPv4Network(text) for text in secondary]
    # Neither range belongs to the VPC, until it has both.
    assert [subnet.block for subnet in strays(after)] == blocks
    assert strays(network(["usw2-az1", "usw2-az2"], subnets=one, secondary_cidrs=secondary)) == []


def test_further_nodes_subnets_that_overlap_are_found() -> None:
    same = {zone: {"more_nodes": ["100.64.0.0/16"]} for zone in ("usw2-az1", "usw2-az2")}
    ((one, other),) = collisions(network(["usw2-az1", "usw2-az2"], subnets=same))
    assert (one.zone, other.zone) == ("usw2-az1", "usw2-az2")


def test_an_override_outside_every_range_is_found() -> None:
    settings: dict[str, Any] = {"subnets": {"usw2-az1": {"nodes": "100.64.0.0/18"}}}
    assert strays(network(["usw2-az1"], **settings)) == [Subnet("usw2-az1", "nodes", IPv4Network("100.64.0.0/18"))]
    assert strays(network(["usw2-az1"], secondary_cidrs=("100.64.0.0/16",), **settings)) == []


@pytest.mark.parametrize(
    ("settings", "zones"),
    [
        ({}, ("usw2-az3", "usw2-az1")),
        ({"nat": "single"}, ("usw2-az3",)),
        ({"endpoints": "closed"}, ()),
        ({"endpoints": "closed", "nat": "single"}, ()),
    ],
)
def test_public_subnets_only_where_a_nat_gateway_is(settings: dict[str, Any], zones: tuple[str, ...]) -> None:
    settings = {"zones": ("usw2-phx2-az1", "usw2-az3", "usw2-az1"), **settings}
    assert nat_zones(Network(**settings)) == zones
    assert {zone for zone, role in plan(Network(**settings)) if role == "public"} == set(zones)


def test_zones_that_eks_refuses_hold_nodes_only() -> None:
    refused = set(without_control_plane())
    assert refused == {"use1-az3", "usw1-az2", "cac1-az3"}
    assert not any(map(takes_control_plane, [*refused, "usw2-phx2-az1"]))
    assert [role for _, role in plan(network(["use1-az3"], endpoints="closed"))] == ["nodes"]


def test_an_adopted_vpc_is_planned_as_it_stands() -> None:
    adopted = {
        "id": "vpc-0123456789abcdef0",
        "cidr": "10.0.0.0/16",
        "subnets": {"usw2-az1": {"nodes": "subnet-0123456789abcdef0", "nodes_cidr": "10.9.0.0/22"}},
    }
    settings = Network.model_validate({"zones": ["usw2-az1"], "vpc": adopted})
    assert plan(settings) == {("usw2-az1", "nodes"): IPv4Network("10.9.0.0/22")}
    assert strays(settings) == [Subnet("usw2-az1", "nodes", IPv4Network("10.9.0.0/22"))]
    assert nat_zones(settings) == ()


def test_too_small_a_vpc_is_no_crash_of_arithmetic() -> None:
    with pytest.raises(ValueError, match="too small"):
        plan(network(["usw2-az1"], cidr="10.0.0.0/25"))


@pytest.mark.parametrize(("block", "count"), [("10.0.0.0/28", 11), ("10.0.0.0/24", 251), ("10.0.0.0/31", 0)])
def test_aws_keeps_five_addresses(block: str, count: int) -> None:
    assert usable(IPv4Network(block)) == count
