"""What a change set changes in standing costs, from the templates alone.

The same items and prices as `podwright cost`, which reads them from the environment's file: the file of what is
deployed is nowhere, but its templates are.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from ...config.catalog.limits import limits
from ...config.catalog.prices import HOURS_PER_MONTH, Price, hourly, service_items, service_price
from ...planning.cost.costs import included_metadata_iops
from .templates import Pair, Template, resources


@dataclass(frozen=True, slots=True)
class Item:
    """So many of one priced thing in a template."""

    name: str
    quantity: float
    price: Price | None
    times: float
    """How often the price is paid in a month: once, or for so many hours."""

    @property
    def monthly(self) -> float | None:
        """US dollars a month; None where nobody says a price."""
        return None if self.price is None else self.price.usd * self.quantity * self.times


@dataclass(frozen=True, slots=True)
class Costs:
    """Standing costs before and after."""

    before: float
    after: float
    unknown: tuple[str, ...]
    """What changes in number and has no price."""
    at_least: bool
    """Whether a price among what changes is known to be too low."""
    upfront: float
    """What training plans to be bought cost at most."""


def costs(
    pairs: list[Pair], region: str, prices: Mapping[str, Price], upfront: float, hours: Mapping[str, float]
) -> Costs:
    """The sums of both sides. What only AWS still has stays as it is, on both sides.

    `prices` are the environment's own by type or item, and those of instances of paid training plans by their group;
    `hours` those of a month by each group on a plan that is shorter.
    """
    priced = partial(items, region=region, prices=prices, hours=hours)
    old = [item for pair in pairs for item in priced(pair.old)]
    new = [item for pair in pairs for item in priced(pair.old if pair.new is None else pair.new)]
    touched = [item for item in (*old, *new) if _amount(old, item.name) != _amount(new, item.name)]
    return Costs(
        sum(item.monthly or 0 for item in old),
        sum(item.monthly or 0 for item in new),
        tuple(sorted({item.name for item in touched if item.price is None})),
        any(item.price is not None and item.price.lower_bound for item in touched),
        upfront,
    )


def _amount(entries: list[Item], name: str) -> float:
    return sum(item.quantity for item in entries if item.name == name)


def items(
    template: Template | None, region: str, prices: Mapping[str, Price], hours: Mapping[str, float]
) -> Iterator[Item]:
    """Everything in a template that is billed by its standing there."""

    def service(name: str, quantity: float) -> Item:
        times = 1 if service_items()[name].per_month else HOURS_PER_MONTH
        return Item(name, quantity, service_price(name, region, prices), times)

    databases = sum(resource["Type"] == "AWS::RDS::DBInstance" for _, resource in resources(template))
    for _, resource in resources(template):
        if scaling := resource.get("Properties", {}).get("ServerlessV2ScalingConfiguration"):
            yield service("aurora_capacity_unit", float(scaling["MinCapacity"]) * databases)
        if reader := _READERS.get(resource["Type"]):
            yield from reader(resource.get("Properties", {}), service, region, prices, hours)


Service = Callable[[str, float], Item]
Properties = Mapping[str, Any]


def _cluster(
    properties: Properties, service: Service, region: str, prices: Mapping[str, Price], hours: Mapping[str, float]
) -> Iterator[Item]:
    """Instances of each group, for its hours of a month, and the volumes of all nodes."""
    size = limits().cluster.root_volume_gb
    volumes = 0.0
    for group in (*properties.get("InstanceGroups", ()), *properties.get("RestrictedInstanceGroups", ())):
        count = float(group["InstanceCount"])
        further = [entry.get("EbsVolumeConfig", {}) for entry in group.get("InstanceStorageConfigs", ())]
        volumes += count * (size + sum(float(volume.get("VolumeSizeInGB", 0)) for volume in further))
        types = [group["InstanceType"]] if "InstanceType" in group else group["InstanceRequirements"]["InstanceTypes"]
        if count:
            name = group["InstanceGroupName"]
            times = hours.get(name, HOURS_PER_MONTH)
            yield Item(f"{name}: {' or '.join(types)}", count, _price(group, types, region, prices), times)
    if volumes:
        yield service("node_volume", volumes)


def _price(group: Properties, types: list[str], region: str, prices: Mapping[str, Price]) -> Price | None:
    if "TrainingPlanArn" in group:
        # Templates know plans by references only, so the price goes by the group.
        return prices.get(group["InstanceGroupName"], Price(0.0, "plan", "paid upfront with the training plan"))
    if "Spot" in group.get("CapacityRequirements", {}):
        return None
    results = [hourly(kind, region, prices) for kind in types]
    # A mixed group may come to consist of the dearest of its types.
    return max((price for price in results if price), key=lambda price: price.usd) if all(results) else None


def _file_system(properties: Properties, service: Service, *_: Any) -> Iterator[Item]:
    """Storage in GiB, and what is paid beside it: throughput, read cache, IOPS beyond those included."""
    size, lustre, zfs = (
        float(properties.get("StorageCapacity", 0)),
        properties.get("LustreConfiguration", {}),
        properties.get("OpenZFSConfiguration", {}),
    )
    if zfs:
        item = "openzfs_multi_az" if zfs.get("DeploymentType") == "MULTI_AZ_1" else "openzfs"
        yield service(f"{item}_storage", size)
        yield service(f"{item}_throughput", float(zfs.get("ThroughputCapacity", 0)))
    elif "PerUnitStorageThroughput" in lustre:
        yield service(f"lustre_ssd_{lustre['PerUnitStorageThroughput']}", size)
        extra = float(lustre.get("MetadataConfiguration", {}).get("Iops", 0)) - included_metadata_iops(int(size))
        if extra > 0:
            yield service("lustre_metadata_iops", extra)
    elif "ThroughputCapacity" in lustre:
        yield service("lustre_tiering_throughput", float(lustre["ThroughputCapacity"]))
        if cache := lustre.get("DataReadCacheConfiguration", {}).get("SizeGiB"):
            yield service("lustre_read_cache", float(cache))


def _endpoint(properties: Properties, service: Service, *_: Any) -> Iterator[Item]:
    if properties.get("SubnetIds"):
        yield service("interface_endpoint", len(properties["SubnetIds"]))


def _one(name: str) -> Callable[..., Iterator[Item]]:
    def reader(_: Properties, service: Service, *__: Any) -> Iterator[Item]:
        yield service(name, 1)

    return reader


_READERS: Final[Mapping[str, Callable[..., Iterator[Item]]]] = {
    "AWS::SageMaker::Cluster": _cluster,
    "AWS::FSx::FileSystem": _file_system,
    "AWS::EC2::VPCEndpoint": _endpoint,
    "AWS::EC2::NatGateway": _one("nat_gateway"),
    "AWS::KMS::Key": _one("kms_key"),
    "AWS::EKS::Cluster": _one("eks_control_plane"),
}
