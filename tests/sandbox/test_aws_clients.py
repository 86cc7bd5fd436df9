"""Encryption, identity, tags and prices in the sandbox, as AWS's SDK and command line read them."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from podwright.config.catalog.prices import hourly, on_demand, price_products, service_price
from podwright.operations.aws.sandbox_server import Running

Aws = Callable[[str], Any]
AWS = Path(sys.executable).parent / "aws"
REGION = "us-west-2"


@pytest.fixture
def command(sandbox: Running) -> Callable[..., Any]:
    """The AWS CLI: its answer, or the text of its refusal."""

    def run(*arguments: str) -> Any:
        result = subprocess.run(
            [AWS, *arguments, "--output", "json"],
            env=os.environ | sandbox.environment(REGION),
            capture_output=True,
            text=True,
        )
        return result.stderr if result.returncode else json.loads(result.stdout)

    return run


def test_the_encryption_of_a_bucket(aws: Aws) -> None:
    """A bucket has S3's own keys unless somebody chose others, and again when the choice is taken back."""
    s3 = aws("s3")
    s3.create_bucket(Bucket="encrypted-bucket", CreateBucketConfiguration={"LocationConstraint": REGION})

    def algorithm() -> str:
        answer = s3.get_bucket_encryption(Bucket="encrypted-bucket")
        [rule] = answer["ServerSideEncryptionConfiguration"]["Rules"]
        return rule["ApplyServerSideEncryptionByDefault"]["SSEAlgorithm"]

    assert algorithm() == "AES256"
    rules = [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms"}}]
    s3.put_bucket_encryption(Bucket="encrypted-bucket", ServerSideEncryptionConfiguration={"Rules": rules})
    assert algorithm() == "aws:kms"
    s3.delete_bucket_encryption(Bucket="encrypted-bucket")
    assert algorithm() == "AES256"
    with pytest.raises(ClientError, match="NoSuchBucket"):
        s3.get_bucket_encryption(Bucket="no-such-bucket-here")


def test_the_command_line_reads_answers_and_refusals(command: Callable[..., Any]) -> None:
    """The identity is the one that EKS of the sandbox knows: the root's, which has no access entry of its own."""
    identity = command("sts", "get-caller-identity")
    assert identity["Arn"] == f"arn:aws:iam::{identity['Account']}:root"
    arn = f"arn:aws:sagemaker:us-west-2:{identity['Account']}:cluster/none"
    refused = f"(ValidationException) when calling the ListTags operation: {arn} does not exist"
    assert refused in command("sagemaker", "list-tags", "--resource-arn", arn)


def test_the_prices_of_instances(sandbox: Running) -> None:
    """HyperPod's own price and EC2's of the same instance, as the catalog has them; nothing of what it has not."""
    pricing = boto3.Session("sandbox", "sandbox", region_name="us-east-1").client(
        "pricing", endpoint_url=sandbox.endpoint
    )
    assert pricing.get_products(ServiceCode="AmazonMQ")["FormatVersion"] == "aws_v1"

    def products(service: str, **specified: str) -> list[Any]:
        filters = [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in specified.items()]
        pages = pricing.get_paginator("get_products").paginate(ServiceCode=service, Filters=filters)
        return [json.loads(text) for page in pages for text in page["PriceList"]]

    def dollars(product: Any) -> float:
        [offer] = product["terms"]["OnDemand"].values()
        [dimension] = offer["priceDimensions"].values()
        assert dimension["unit"] == "Hrs"
        return float(dimension["pricePerUnit"]["USD"])

    def price(instance_type: str, region: str) -> float:
        listed = hourly(instance_type, region)
        assert listed
        return listed.usd

    [node] = products("AmazonSageMaker", usagetype="USE1-Cluster:ml.g5.8xlarge", component="Cluster")
    assert dollars(node) == pytest.approx(price("ml.g5.8xlarge", "us-east-1"))
    [instance] = products("AmazonEC2", instanceType="p5.48xlarge", regionCode=REGION, operatingSystem="Linux")
    assert dollars(instance) == pytest.approx(price("ml.p5.48xlarge", REGION))
    assert instance["product"]["attributes"]["usagetype"] == "USW2-BoxUsage:p5.48xlarge"
    assert products("AmazonEC2", instanceType="p5.48xlarge", regionCode="nowhere") == []
    assert products("AmazonMQ") == []
    # More than a page.
    assert len(products("AmazonEC2", operatingSystem="Linux")) == sum(item.price.basis == "ec2" for item in on_demand())


def test_the_price_list_tells_what_it_can_be_asked_for(sandbox: Running) -> None:
    def client(region: str) -> Any:
        session = boto3.Session("sandbox", "sandbox", region_name=region)
        return session.client("pricing", endpoint_url=sandbox.endpoint)

    pricing = client("us-east-1")
    services = {each["ServiceCode"]: each["AttributeNames"] for each in pricing.describe_services()["Services"]}
    assert {"instanceType", "regionCode", "usagetype"} <= set(services["AmazonEC2"]) & set(services["AmazonSageMaker"])
    pages = pricing.get_paginator("get_attribute_values").paginate(
        ServiceCode="AmazonSageMaker", AttributeName="regionCode", PaginationConfig={"PageSize": 1}
    )
    regions = [value["Value"] for page in pages for value in page["AttributeValues"]]
    assert regions == sorted({item.region for item in on_demand() if item.price.basis == "hyperpod"})
    with pytest.raises(ClientError, match="NotFoundException"):
        pricing.describe_services(ServiceCode="AmazonMQ")
    with pytest.raises(ClientError, match="InvalidNextTokenException"):
        pricing.get_products(ServiceCode="AmazonEC2", NextToken="next")
    unlike = [{"Type": "NONE_OF", "Field": "instanceType", "Value": "p5.48xlarge"}]
    with pytest.raises(ClientError, match=r"InvalidParameterException.*NONE_OF \(sandbox\)"):
        pricing.get_products(ServiceCode="AmazonEC2", Filters=unlike)
    with pytest.raises(ClientError, match="the Price List API is in ap-south-1, eu-central-1, us-east-1"):
        client(REGION).get_products(ServiceCode="AmazonEC2")
    with pytest.raises(ClientError, match=r"AWSPriceListService.ListPriceLists is not in the sandbox"):
        pricing.list_price_lists(ServiceCode="AmazonEC2", EffectiveDate="2026-11-01", CurrencyCode="USD")


def test_the_price_list_has_what_costs_money_beside_instances(sandbox: Running) -> None:
    """Each by the attributes and the usage type by which podwright asks for it."""
    pricing = boto3.Session("sandbox", "sandbox", region_name="us-east-1").client(
        "pricing", endpoint_url=sandbox.endpoint
    )
    for product in price_products().values():
        pairs = product.attributes | {"regionCode": "us-east-1"}
        filters = [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in pairs.items()]
        products = [
            json.loads(text) for text in pricing.get_products(ServiceCode=product.service, Filters=filters)["PriceList"]
        ]
        known = service_price(product.item, "us-east-1")
        assert [product.is_of(each["product"]["attributes"]) for each in products] == [True] * (known is not None)
