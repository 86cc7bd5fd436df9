"""Asking the AWS Price List for what an environment costs, and for nothing that the answer leaves open.

A price is taken where all products that fit have one and the same; where several differ, or none fits, it stays unknown
and says why.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import date
from typing import Any, NamedTuple

from ...config.catalog.prices import PriceProduct, node_product, price_products, service_items
from ...config.catalog.regions import regions
from ..aws.account import Account
from ..aws.calls import pages

_NO_PRODUCT = "which product of the price list it is, no source says"


class Listed(NamedTuple):
    """What the Price List says of one priced thing."""

    name: str
    """An instance type, or an item of `service_items`."""
    unit: str
    usd: float | None = None
    """US dollars for a unit; None where the list leaves it open."""
    as_of: date | None = None
    """Day on which AWS published the list."""
    problem: str = ""
    """Why there is no price."""


def fetch(account: Account, region: str, names: Iterable[str], asking: Callable[[str], None]) -> Iterator[Listed]:
    """What the Price List says of each of `names` in a region; `asking` hears of each before it is asked for."""
    # The API has endpoints in few regions, each of which answers for all of its partition.
    home = "cn-northwest-1" if regions()[region].partition == "aws-cn" else "us-east-1"
    clients = replace(account, region=home)
    for name in names:
        unit = service_items()[name].unit if name in service_items() else "hour"
        product = node_product(name) if name.startswith("ml.") else price_products().get(name)
        if product is None:
            yield Listed(name, unit, problem=_NO_PRODUCT)
            continue
        asking(name)
        yield _listed(name, unit, list(_offers(clients, region, product)))


def _offers(clients: Account, region: str, product: PriceProduct) -> Iterator[Mapping[str, Any]]:
    """The products that fit, as the list has them."""
    asked = product.attributes | {"regionCode": region}
    filters = [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in asked.items()]
    for text in pages(clients, "pricing", "get_products", "PriceList", ServiceCode=product.service, Filters=filters):
        offer = json.loads(text)
        if product.is_of(offer["product"]["attributes"]):
            yield offer


def _listed(name: str, unit: str, offers: list[Mapping[str, Any]]) -> Listed:
    amounts = {usd for offer in offers for usd in _amounts(offer, "mo" if unit.endswith("month") else "h")}
    if not amounts:
        return Listed(name, unit, problem="the price list has no such product in the region")
    if len(amounts) > 1:
        problem = f"{len(amounts)} prices fit, from ${min(amounts):g} to ${max(amounts):g}"
        return Listed(name, unit, problem=problem)
    published = max(offer["publicationDate"] for offer in offers)
    return Listed(name, unit, amounts.pop(), date.fromisoformat(published[:10]))


def _amounts(offer: Mapping[str, Any], letters: str) -> Iterator[float]:
    """The prices of a product, of those units that have these letters.

    Beside its price by time a product may have others, such as one for each GB that it processes.
    """
    for term in offer["terms"].get("OnDemand", {}).values():
        for dimension in term["priceDimensions"].values():
            if letters in dimension["unit"].lower() and "USD" in dimension["pricePerUnit"]:
                yield float(dimension["pricePerUnit"]["USD"])
