"""What an account offers is asked once, kept beside the environments, and decides where endpoints get interfaces."""

import json
from pathlib import Path

import pytest

from podwright.config.errors import InvalidFile
from podwright.config.loading.lookups import CONTEXT, keep_endpoint_zones, lookup_key, read_lookups
from podwright.operations.artifacts.resolved import resolved_in
from preflight_account import NEW, PreflightAccount, examine
from preflight_account import environment as preflight_environment
from preflight_answers import ACCOUNT, REGION, endpoint_services

KEY = lookup_key(ACCOUNT, REGION)


def test_the_check_hands_on_what_it_saw() -> None:
    account = PreflightAccount({("ec2", "describe_vpc_endpoint_services"): endpoint_services(sts=("usw2-az3",))})
    zones: dict[str, tuple[str, ...]] = {}
    (outcome,) = examine(account, NEW, "PRE026", zones=zones)
    assert outcome.findings == ()
    assert "sts in usw2-az3 alone" in outcome.notes
    assert zones.get("sts") == ("usw2-az3",)
    assert zones["fsx"] == ("usw2-az1", "usw2-az2", "usw2-az3")
    assert "s3" not in zones, "a gateway has no interfaces"


def test_answers_are_kept_beside_those_of_other_regions(tmp_path: Path) -> None:
    assert read_lookups(tmp_path).endpoint_zones == {}
    other = lookup_key(ACCOUNT, "eu-west-1")
    keep_endpoint_zones(tmp_path, other, {"sts": ("euw1-az1",)})
    keep_endpoint_zones(tmp_path, KEY, {"sts": ("usw2-az3",), "logs": ("usw2-az2",)})
    keep_endpoint_zones(tmp_path, KEY, {"sts": ("usw2-az2", "usw2-az3")})
    expected = {other: {"sts": ("euw1-az1",)}, KEY: {"sts": ("usw2-az2", "usw2-az3"), "logs": ("usw2-az2",)}}
    assert read_lookups(tmp_path).endpoint_zones == expected


def test_a_deployment_to_aws_reads_what_was_kept_and_the_sandbox_does_not(tmp_path: Path) -> None:
    environment = preflight_environment(NEW).environment
    keep_endpoint_zones(tmp_path, lookup_key(ACCOUNT, "eu-west-1"), {"sts": ("euw1-az1",)})
    assert resolved_in(tmp_path, environment).endpoint_zones == {}
    keep_endpoint_zones(tmp_path, lookup_key(environment.account, environment.region), {"sts": ("usw2-az3",)})
    assert resolved_in(tmp_path, environment).endpoint_zones == {"sts": ("usw2-az3",)}
    assert resolved_in(tmp_path, environment, sandboxed=True).endpoint_zones == {}


def test_without_an_answer_nothing_is_written(tmp_path: Path) -> None:
    keep_endpoint_zones(tmp_path, KEY, {})
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_file_is_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / CONTEXT).write_text(json.dumps({"endpoint_zones": {KEY: {"sts": ["us-west-2a"]}}}))
    with pytest.raises(InvalidFile) as error:
        read_lookups(tmp_path)
    (finding,) = error.value.findings
    assert CONTEXT in finding.message
    assert "podwright preflight" in finding.hint
