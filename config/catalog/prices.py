"""What instances and the other parts of an environment cost, from price lists or from the environment's own file.

Of instances the price of HyperPod itself counts. Where no public list prints it, the price of the same EC2 instance
stands in, and says so: HyperPod charges more, by 18 to 25 percent where both are known. What nobody prints has no
price here, and none is guessed.
"""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, NamedTuple

from .facts import DATA, cited, table

HOURS_PER_MONTH = 730
"""365 days of 24 hours, by twelve: what AWS's own estimates count."""


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a unit of something, and who says so."""

    usd: float
    basis: Literal["file", "hyperpod", "ec2", "service", "plan"]
    """file: the environment sets it. hyperpod: HyperPod's own. ec2: EC2's of the same instance, so HyperPod's is
    higher. service: another service's own. plan: what a training plan cost, by its instance-hours."""
    source: str
    """In words, with its date."""

    @property
    def lower_bound(self) -> bool:
        """Whether the real price is known to be higher."""
        return self.basis == "ec2"


def hourly(instance_type: str, region: str, overrides: Mapping[str, Price] | None = None) -> Price | None:
    """The on-demand price of one instance for an hour in US dollars; None where nobody says.

    `instance_type` has the `ml.` prefix. `overrides` are the environment's own prices by type, which win.
    """
    if overrides and instance_type in overrides:
        return overrides[instance_type]
    prices = _listed().get((instance_type, region), {})
    # HyperPod's own price wins; EC2's is lower.
    basis = "hyperpod" if "hyperpod" in prices else "ec2"
    return _price(basis, *prices[basis]) if basis in prices else None


class OnDemand(NamedTuple):
    """What a price list says of an hour of an instance type in a region."""

    instance_type: str
    """With the `ml.` prefix."""
    region: str
    price: Price
    date: str
    """ISO date of the source."""


def on_demand() -> Iterator[OnDemand]:
    """Every price of an instance that the lists hold: HyperPod's own and EC2's beside each other."""
    for (instance_type, region), prices in _listed().items():
        for basis, (usd, source) in prices.items():
            yield OnDemand(instance_type, region, _price(basis, usd, source), cited(source)[0].date)


def _price(basis: str, usd: str, source: str) -> Price:
    return Price(float(usd), "hyperpod" if basis == "hyperpod" else "ec2", str(cited(source)[0]))


@dataclass(frozen=True, slots=True)
class ServiceItem:
    """Something other than an instance that is billed by the hour or by the month."""

    name: str
    """Such as nat_gateway: a key of an environment's `prices`."""
    unit: str
    """What one of it is: hour, zone-hour, month, GB-month, MB/s-month or IOPS-month."""
    prices: Mapping[str, Price]
    """By region; `*` where all regions cost the same."""

    @property
    def per_month(self) -> bool:
        """Whether its price is for a month rather than for an hour."""
        return self.unit.endswith("month")


def service_price(name: str, region: str, overrides: Mapping[str, Price] | None = None) -> Price | None:
    """The price of one unit of a service item in US dollars; None where nobody says. `overrides` win."""
    if overrides and name in overrides:
        return overrides[name]
    prices = service_items()[name].prices
    # A price of every region stands as an asterisk.
    return prices.get(region) or prices.get("*")


@cache
def service_items() -> dict[str, ServiceItem]:
    """Everything other than instances that podwright counts, by name."""
    items: dict[str, ServiceItem] = {}
    for row in table("service_prices"):
        # Rows of an item need not stand together.
        known = dict(items[row["item"]].prices) if row["item"] in items else {}
        # An item without a price is known by name, so that a person can give one.
        if row["usd"]:
            known[row["region"]] = Price(float(row["usd"]), "service", str(cited(row["source"])[0]))
        items[row["item"]] = ServiceItem(row["item"], row["unit"], known)
    return items


@cache
def _listed() -> dict[tuple[str, str], dict[str, tuple[str, str]]]:
    """By type and region: price and source by basis, as text. Few of the three thousand are ever looked at."""
    # Rows are read as lists: a dictionary for each of thousands of rows would take longer than all else.
    with (DATA / "prices.csv").open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    kind, region, usd, basis, source = (
        header.index(name) for name in ("type", "region", "usd_per_hour", "basis", "source")
    )
    prices: dict[tuple[str, str], dict[str, tuple[str, str]]] = {}
    for row in rows:
        prices.setdefault((row[kind], row[region]), {})[row[basis]] = row[usd], row[source]
    return prices


class PriceProduct(NamedTuple):
    """What the AWS Price List calls something that podwright counts."""

    item: str
    service: str
    """Its service code, such as AmazonEC2."""
    attributes: dict[str, str]
    """What tells its products apart, the product family among them."""
    usage: str
    """What its usage type ends in, behind the code of a region; empty where the attributes say all."""

    def is_of(self, product: Mapping[str, Any]) -> bool:
        """Whether a product with these attributes is one: filters of the API cannot ask for the end of a usage type."""
        usage = product.get("usagetype", "")
        return not self.usage or usage == self.usage or usage.endswith(f"-{self.usage}")


@cache
def price_products() -> dict[str, PriceProduct]:
    """The products of everything other than instances whose product is known, by item."""
    return {row["item"]: _price_product(row) for row in table("price_products")}


def _price_product(row: Mapping[str, str]) -> PriceProduct:
    attributes = dict(pair.split("=") for pair in row["attributes"].split(";"))
    return PriceProduct(row["item"], row["service"], attributes, row["usage"])


def node_product(instance_type: str) -> PriceProduct:
    """The product of a node of HyperPod, whose price is HyperPod's own."""
    # As users publish it: the source of HyperPod's own prices in `prices.csv`.
    return PriceProduct(instance_type, "AmazonSageMaker", {"component": "Cluster"}, f"Cluster:{instance_type}")
