"""AWS Price List: podwright's prices of instances, gateways, endpoints and file systems.

HyperPod's prices are products of AmazonSageMaker with the component Cluster, those of EC2 are products of AmazonEC2. A
product has the attributes that podwright uses, and a synthetic SKU.
"""

import hashlib
import json
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from botocore.session import Session

from ...config.catalog.facts import cited, table
from ...config.catalog.instance_types import catalog
from ...config.catalog.prices import OnDemand, on_demand, price_products, service_items
from ..protocol.json_objects import JsonObject
from ..protocol.service import refuse

# Codes of on-demand terms and of their rate. Source: AWS Price List API, example of GetProducts.
_TERM: Final = "JRTCKXETXF"
_RATE: Final = "6YS6EN2CT7"
_FORMAT: Final = "aws_v1"
# Services with prices of instances, with the name of their prices in the catalog.
_INSTANCES: Final = {"AmazonEC2": "ec2", "AmazonSageMaker": "hyperpod"}
# Units of monthly prices in price lists. All other prices are per hour.
_UNITS: Final = {"GB-month": "GB-Mo", "MB/s-month": "MiBps-Mo"}


class PriceLists:
    """The Price List API. A few regions serve it, each with the prices of all regions."""

    def get_products(self, region: str, arguments: JsonObject) -> JsonObject:
        """Return the products of a service that match every filter, each as JSON text."""
        _check_region(region)
        filters = arguments.get("Filters", [])
        for kind in [each["Type"] for each in filters]:
            if kind not in ("TERM_MATCH", "EQUALS"):
                raise refuse("InvalidParameterException", f"The sandbox has no filters of type {kind} (sandbox)")
        expected = {(each["Field"], each["Value"]) for each in filters}
        matches = [item for item in _products(arguments["ServiceCode"]) if expected <= _fields(item).items()]
        page, more = _page(matches, arguments)
        return {"FormatVersion": _FORMAT, "PriceList": [json.dumps(product) for product in page], **more}

    def describe_services(self, region: str, arguments: JsonObject) -> JsonObject:
        """Return the services with prices, and the attributes of their products."""
        _check_region(region)
        services = sorted({*_INSTANCES, *(product.service for product in price_products().values())})
        codes = [code for code in services if code == arguments.get("ServiceCode", code)]
        if not codes:
            raise refuse("NotFoundException", f"The sandbox has no prices of {arguments['ServiceCode']} (sandbox)")
        page, more = _page(codes, arguments)
        known = [{"ServiceCode": code, "AttributeNames": sorted(_values(code))} for code in page]
        return {"FormatVersion": _FORMAT, "Services": known, **more}

    def get_attribute_values(self, region: str, arguments: JsonObject) -> JsonObject:
        """Return the values of an attribute of a service's products."""
        _check_region(region)
        values = _values(arguments["ServiceCode"]).get(arguments["AttributeName"], set())
        page, more = _page(sorted(values), arguments)
        return {"AttributeValues": [{"Value": value} for value in page], **more}


def _check_region(region: str) -> None:
    """Refuse a region without an endpoint of this API, whose name AWS's DNS does not resolve."""
    if region not in _regions():
        where = f"the Price List API is in {', '.join(_regions())} (sandbox)"
        raise refuse("InvalidSignatureException", f"Credential should be scoped to a valid region: {where}")


@cache
def _regions() -> list[str]:
    return Session().get_available_regions("pricing")


def _page(items: list[Any], arguments: JsonObject) -> tuple[list[Any], JsonObject]:
    token = arguments.get("NextToken", "0")
    if not token.isdecimal():
        raise refuse("InvalidNextTokenException", "The pagination token is invalid. Try again without one.")
    start, size = int(token), arguments.get("MaxResults", 100)
    return items[start : start + size], {"NextToken": str(start + size)} if len(items) > start + size else {}


def _products(service: str) -> Iterator[JsonObject]:
    """Return the products of a service; empty if podwright has no prices for it."""
    for item in on_demand():
        if _INSTANCES.get(service) == item.price.basis:
            yield _instance(service, item)
    sources = {(row["item"], row["region"]): row["source"] for row in table("service_prices")}
    for product in price_products().values():
        if product.service == service:
            item = service_items()[product.item]
            for region, price in item.prices.items():
                attributes = {**product.attributes, "servicecode": service, **_usage(region, product.usage)}
                published = cited(sources[item.name, region])[0].date
                unit = _UNITS.get(item.unit, "Hrs")
                yield _product(attributes, region, (price.usd, unit, f"{product.item}: {price.source}"), published)


@cache
def _values(service: str) -> dict[str, set[str]]:
    """Return the values of each attribute of a service's products."""
    values: dict[str, set[str]] = {}
    for product in _products(service):
        for name, value in product["product"]["attributes"].items():
            values.setdefault(name, set()).add(value)
    return values


def _fields(product: JsonObject) -> JsonObject:
    """Return the attributes that filters may name."""
    beside = {key: value for key, value in product["product"].items() if isinstance(value, str)}
    return product["product"]["attributes"] | beside | {"ServiceCode": product["serviceCode"]}


def _instance(service: str, item: OnDemand) -> JsonObject:
    attributes = _of_instance(item) if service == "AmazonEC2" else _of_node(item)
    words = f"per hour of {attributes['instanceType']}: {item.price.source}"
    return _product(attributes, item.region, (item.price.usd, "Hrs", words), item.date)


def _product(attributes: dict[str, str], region: str, price: tuple[float, str, str], day: str) -> JsonObject:
    """Return a product with its price, unit and description, in the form of an offer file."""
    (usd, unit, words), service = price, attributes["servicecode"]
    sku = hashlib.sha256(f"{service} {sorted(attributes.items())} {region}".encode()).hexdigest()[:16].upper()
    term, rate = f"{sku}.{_TERM}", f"{sku}.{_TERM}.{_RATE}"
    published = f"{day}T00:00:00Z"
    dimension = {
        "unit": unit,
        "beginRange": "0",
        "endRange": "Inf",
        "description": f"${usd:g} {words}",
        "appliesTo": [],
        "rateCode": rate,
        "pricePerUnit": {"USD": f"{usd:.10f}"},
    }
    offer = {
        "sku": sku,
        "offerTermCode": _TERM,
        "effectiveDate": published,
        "termAttributes": {},
        "priceDimensions": {rate: dimension},
    }
    family = attributes.pop("productFamily")
    return {
        "product": {"productFamily": family, "attributes": attributes | _place(region), "sku": sku},
        "serviceCode": service,
        "terms": {"OnDemand": {term: offer}},
        "version": day.replace("-", "") + "000000",
        "publicationDate": published,
    }


def _of_instance(item: OnDemand) -> dict[str, str]:
    """Return the attributes of an EC2 instance with Linux on shared hardware."""
    name, known = item.instance_type.removeprefix("ml."), catalog().get(item.instance_type)
    gpus = {"gpu": str(known.accelerator_count)} if known.accelerator_vendor == "nvidia" else {}
    return {
        "servicecode": "AmazonEC2",
        "servicename": "Amazon Elastic Compute Cloud",
        "productFamily": "Compute Instance",
        "instanceType": name,
        "vcpu": str(known.vcpu),
        "memory": f"{known.memory_gib:g} GiB",
        **gpus,
        "operatingSystem": "Linux",
        "preInstalledSw": "NA",
        "licenseModel": "No License required",
        "tenancy": "Shared",
        "capacitystatus": "Used",
        "operation": "RunInstances",
        **_usage(item.region, f"BoxUsage:{name}"),
    }


def _of_node(item: OnDemand) -> dict[str, str]:
    """Return the attributes of a HyperPod node."""
    known = catalog().get(item.instance_type)
    return {
        "servicecode": "AmazonSageMaker",
        "productFamily": "ML Instance",
        "instanceType": f"{item.instance_type}-Cluster",
        "component": "Cluster",
        "vCpu": str(known.vcpu),
        "gpu": str(known.accelerator_count) if known.accelerator_vendor == "nvidia" else "N/A",
        **_usage(item.region, f"Cluster:{item.instance_type}"),
    }


def _place(region: str) -> dict[str, str]:
    location = {"location": _codes()[region]["location"]} if region in _codes() else {}
    return {"regionCode": region, "locationType": "AWS Region", **location}


def _usage(region: str, kind: str) -> dict[str, str]:
    """Return the usage type, which for EC2 in us-east-1 lacks the region's code."""
    if not kind:
        return {}
    if region == "us-east-1" and kind.startswith(("BoxUsage", "NatGateway")):
        return {"usagetype": kind}
    return {"usagetype": f"{_codes()[region]['code']}-{kind}"} if region in _codes() else {}


@cache
def _codes() -> dict[str, dict[str, str]]:
    return {row["region"]: row for row in table("billing_codes")}
