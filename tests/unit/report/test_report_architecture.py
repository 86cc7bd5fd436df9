"""What a report reads from templates: zones, addresses, groups, storage, plans and the roles with their reasons."""

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from podwright.config.catalog.instance_types import environment_types
from podwright.config.errors import CommandError
from podwright.constructs.hyperpod.training_plan.handler.reminders import BEFORE
from podwright.operations.report.architecture import architecture
from podwright.operations.report.assembly import Assembly, read_assembly
from podwright.operations.report.iam import foreigners, roles
from podwright.operations.report.sections import quotas
from podwright.operations.report.time_line import REMINDERS, said, time_line, unknown
from podwright.planning.rules.network.addresses import demand
from report_account import NAMES, REASON, assembly, changed, loaded, report, write_assembly

CLUSTER = "AWS::SageMaker::Cluster"


def drawn(name: str, templates: dict[str, Any] | None = None) -> dict[str, Any]:
    source = Assembly(name, templates) if templates else assembly(name)
    return architecture(loaded(name).environment, source)


def only(templates: dict[str, Any], stack: str, kind: str) -> dict[str, Any]:
    (items,) = [item for item in templates[stack]["Resources"].values() if item["Type"] == kind]
    return items["Properties"]


@pytest.mark.parametrize("name", NAMES)
def test_every_group_and_file_system_stands_in_a_zone_of_the_drawing(name: str) -> None:
    actual, environment = drawn(name), loaded(name).environment
    zones = {zone["id"] for zone in actual["zones"]}
    assert zones == set(environment.network.zones)
    assert [group["name"] for group in actual["groups"]] == list(environment.groups if environment.has_cluster else ())
    for group in actual["groups"]:
        assert set(group["zones"]) == set(environment.groups[group["name"]].zone_ids)
        assert group["zones"]
    made = {name for name, lustre in environment.storage.lustres.items() if not lustre.existing}
    systems = {system["name"]: system["zones"] for system in actual["file_systems"]}
    assert made <= systems.keys()
    assert all(set(locations) <= zones for locations in systems.values())


def test_addresses_are_those_of_the_rules() -> None:
    environment = loaded("prod").environment
    types = environment_types(environment.instance_types)
    zones = {zone["id"]: {row["role"]: row for row in zone["subnets"]} for zone in drawn("prod")["zones"]}
    assert zones["usw2-az2"]["nodes"]["range"] == "10.16.80.0/20"
    for zone, subnets in zones.items():
        need = demand(environment, zone, types)
        assert (subnets["nodes"]["taken"], subnets["nodes"]["replacing"]) == (need.full, need.replacing)
        assert subnets["control plane"]["taken"] == 6 + 15 + 3
        assert subnets["public"]["nat_gateways"] == 1
        assert subnets["public"]["taken"] is None


def test_the_drawing_is_of_the_templates_and_not_of_the_file() -> None:
    templates = changed("prod")
    groups = {item["InstanceGroupName"]: item for item in only(templates, "cluster", CLUSTER)["InstanceGroups"]}
    groups["h200"]["InstanceCount"] = 20
    groups["burst"]["OverrideVpcConfig"]["Subnets"] = [groups["system"]["OverrideVpcConfig"]["Subnets"][1]]
    only(templates, "eks", "AWS::EKS::Cluster")["ResourcesVpcConfig"]["EndpointPublicAccess"] = True
    actual = {group["name"]: group for group in drawn("prod", templates)["groups"]}
    assert actual["h200"]["count"] == 20
    assert actual["burst"]["zones"] == ["usw2-az3"]
    assert drawn("prod", templates)["accelerators"] == {"H200": 160, "H100": 32}
    assert "public" in drawn("prod", templates)["control_plane"]["facts"][0]


@pytest.mark.parametrize(
    ("name", "plane", "vpc"),
    [
        ("prod", "EKS 1.34", False),
        ("slurm-classic", "Slurm", False),
        ("shared-platform", "EKS, adopted", True),
        ("training-jobs-queue", None, False),
    ],
)
def test_control_planes_and_networks(name: str, plane: str | None, vpc: bool) -> None:
    actual = drawn(name)
    assert (actual["control_plane"] or {}).get("kind") == plane
    assert actual["vpc"]["existing"] is vpc
    assert actual["vpc"]["cidrs"]


def test_capacity_is_named_as_people_name_it() -> None:
    actual = {group["name"]: group["capacity"] for group in drawn("prod")["groups"]}
    assert actual == {"system": "on demand", "h200": "plan h200-q1", "burst": "Spot"}
    plan = drawn("ultraserver-72")["plans"][0]
    assert (plan["name"], plan["needs"]) == ("gb200", ["36 × ml.p6e-gb200.36xlarge for gb200"])


def window(start: str, end: str, count: int = 16) -> dict[str, Any]:
    return {"start": start, "end": end, "zone": "usw2-az2", "count": count, "status": "Active"}


def test_windows_of_plans_come_from_sagemaker_or_the_file() -> None:
    part = window("2027-01-04T11:30:00+00:00", "2027-02-01T11:30:00+00:00")
    actual = architecture(loaded("prod").environment, assembly("prod"), {"h200-q1": [part]})
    assert (actual["plans"][0]["windows"], actual["plans"][0]["source"]) == ([part], "SageMaker")
    assert said(part) == "16 × 4 Jan to 1 Feb 2027"
    assert "--live" in unknown(drawn("prod")["plans"][0])
    environment = loaded("prod").environment
    moments = {"start": datetime(2027, 1, 4, tzinfo=UTC), "end": datetime(2027, 2, 1, tzinfo=UTC)}
    plan = environment.training_plans["h200-q1"].model_copy(update=moments)
    dated = environment.model_copy(update={"training_plans": {"h200-q1": plan}})
    (only_part,) = architecture(dated, assembly("prod"))["plans"][0]["windows"]
    assert (only_part["start"][:10], only_part["count"]) == ("2027-01-04", 16)
    wished = plan.model_copy(update={"arn": None, "purchase": True, "start": None, "end": None, "days": 28})
    asked = environment.model_copy(update={"training_plans": {"h200-q1": wished}})
    assert unknown(architecture(asked, assembly("prod"))["plans"][0]) == "28 days, bought by the deployment"


def test_reminders_are_drawn_where_the_handler_sends_them() -> None:
    assert [timedelta(days=days) for days in REMINDERS] == [before for before, _ in list(BEFORE.values())[:3]]
    plan = {"name": "q1", "needs": [], "windows": [window("2027-01-04T00:00:00+00:00", "2027-02-01T00:00:00+00:00")]}
    (row,) = time_line([plan], None).rows
    (shown,) = row.windows
    end, day = shown.at + shown.width, shown.width / 28
    assert shown.reminders == pytest.approx([end - 14 * day, end - 7 * day, end - day], abs=0.05)
    plan["windows"] = [window("2027-01-30T00:00:00+00:00", "2027-02-01T00:00:00+00:00")]
    (late,) = time_line([plan], None).rows[0].windows
    assert len(late.reminders) == 1, "before its start none is sent"


def test_the_time_line_is_of_the_windows_and_a_day_shortly_before_them() -> None:
    plan = {"name": "q1", "needs": [], "windows": [window("2027-01-04T00:00:00+00:00", "2027-02-01T00:00:00+00:00")]}
    near, far, later = (
        time_line([plan], date.fromisoformat(day)) for day in ("2026-12-20", "2026-01-01", "2028-01-01")
    )
    assert near.today is not None
    assert 0 < near.today < near.rows[0].windows[0].at
    assert (far.today, later.today) == (None, None)
    assert far.rows == later.rows == time_line([plan], None).rows
    assert 4 <= len(far.ticks) <= 8
    assert all(0 <= tick.at <= 100 for tick in far.ticks)
    assert far.ticks[0].words.endswith(" 2027") or far.ticks[0].words.endswith(" 2026")


def test_an_assembly_is_read_as_the_cdk_writes_it(tmp_path: Path) -> None:
    resolved_assembly = read_assembly(write_assembly(tmp_path, "prod"), "prod")
    assert resolved_assembly.stacks.keys() == {name.removesuffix(".nested") for name in assembly("prod").stacks}
    assert architecture(loaded("prod").environment, resolved_assembly) == drawn("prod")
    assert read_assembly(tmp_path / "assembly-prod", "prod") == resolved_assembly
    (tmp_path / "assembly-prod" / "older.nested.template.json").write_text("{}")
    assert read_assembly(tmp_path, "prod") == resolved_assembly, (
        "what no list of assets names is left of an older synthesis"
    )


@pytest.mark.parametrize(
    ("damage", "output"),
    [
        (lambda folder: (folder / "manifest.json").unlink(), "manifest.json cannot be read"),
        (lambda folder: (folder / "manifest.json").write_text("{"), "no JSON"),
        (lambda folder: (folder / "assembly-prod" / "eks.template.json").unlink(), "eks.template.json cannot be read"),
    ],
)
def test_a_folder_that_is_no_assembly(tmp_path: Path, damage: Any, output: str) -> None:
    damage(write_assembly(tmp_path, "prod"))
    with pytest.raises(CommandError, match=output) as stop:
        read_assembly(tmp_path, "prod")
    assert stop.value.code == 2


def test_an_assembly_of_another_environment(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="holds nothing of dev") as stop:
        read_assembly(write_assembly(tmp_path, "prod"), "dev")
    assert stop.value.hint == "it holds prod"


def test_roles_in_plain_words_with_the_reasons_of_their_wildcards(tmp_path: Path) -> None:
    actual = {role["name"]: role for role in roles(read_assembly(write_assembly(tmp_path, "prod"), "prod"))}
    nodes = actual["ExecutionRole"]
    assert nodes["trusted"] == ["sagemaker.amazonaws.com"]
    assert nodes["may"]["kms"] == {
        "reads": ["DescribeKey"],
        "changes": ["Decrypt", "GenerateDataKey"],
        "hands on": ["CreateGrant"],
    }
    assert "GetObject" in nodes["may"]["s3"]["reads"]
    reasons = {card["on"]: card["reason"] for row in nodes["statements"] for card in row["wildcards"]}
    assert reasons["arn:aws:logs:us-west-2:111122223333:log-group:/aws/sagemaker/Clusters/prod/*"] == REASON
    assert reasons["*"] == "", "the assembly has a reason for one wildcard only"
    assert actual["Eks/Role"]["managed"] == ["AmazonEKSClusterPolicy"]


def test_actions_that_a_statement_denies_are_not_what_a_role_may_do() -> None:
    templates = changed("prod")
    for item in templates["cluster"]["Resources"].values():
        if item["Type"] == "AWS::IAM::Policy":
            item["Properties"]["PolicyDocument"]["Statement"] = {"Effect": "Deny", "Action": "s3:*", "Resource": "*"}
    assert {role["stack"]: role["may"] for role in roles(Assembly("prod", templates))}["cluster"] == {}


@pytest.mark.parametrize("name", NAMES)
def test_no_environment_of_the_repository_lets_another_account_in(name: str) -> None:
    assert foreigners(assembly(name), loaded(name).environment.account) == []


@pytest.mark.parametrize(
    ("principal", "condition", "let_in"),
    [
        ({"AWS": "arn:aws:iam::123456789012:root"}, None, True),
        ({"AWS": "123456789012"}, None, True),
        ({"AWS": "arn:aws:iam::111122223333:role/Own"}, None, False),
        ("*", None, True),
        ({"AWS": "*"}, {"StringEquals": {"aws:PrincipalAccount": "111122223333"}}, False),
        ({"AWS": "*"}, {"StringEquals": {"aws:PrincipalAccount": "123456789012"}}, True),
        ({"Service": "lambda.amazonaws.com"}, None, False),
    ],
)
def test_whoever_comes_from_another_account_is_named(principal: Any, condition: Any, let_in: bool) -> None:
    statement = {"Effect": "Allow", "Action": "s3:GetObject", "Principal": principal, "Resource": "*"}
    statement |= {"Condition": condition} if condition else {}
    policy = {
        "Type": "AWS::S3::BucketPolicy",
        "Properties": {"Bucket": "b", "PolicyDocument": {"Statement": [statement]}},
    }
    actual = foreigners(Assembly("prod", {"storage": {"Resources": {"Policy": policy}}}), "111122223333")
    assert bool(actual) is let_in
    denied = {"Effect": "Deny"} | {key: value for key, value in statement.items() if key != "Effect"}
    policy["Properties"]["PolicyDocument"] = {"Statement": [denied]}
    assert foreigners(Assembly("prod", {"storage": {"Resources": {"Policy": policy}}}), "111122223333") == []


def test_quotas_are_counted_in_accelerators_and_teams_in_natural_order() -> None:
    shared = report("prod")["quotas"]
    whole = {"flavor": "ml.p5en.48xlarge", "resource": "nvidia.com/gpu", "unit": "GPU", "capacity": 128}
    assert whole in shared["flavors"]
    assert [team["team"] for team in shared["teams"]] == ["product", "research"]


def test_partitions_stand_beside_whole_gpus_of_a_type() -> None:
    environment = loaded("dev").environment
    whole = environment.instance_groups["slices"].model_copy(update={"labels": {}})
    governance = environment.governance.model_copy(update={"engine": "hyperpod"})
    groups = {**environment.instance_groups, "whole": whole}
    mixed = environment.model_copy(update={"instance_groups": groups, "governance": governance})
    data = quotas.collect(SimpleNamespace(environment=mixed))  # type: ignore[arg-type]
    bars = quotas.view(data, {}).flavors
    words = {(bar.name, bar.words.partition(" guaranteed")[0]) for bar in bars}
    assert words >= {("ml.p4d.24xlarge", "56 of 56 mig-1g.5gb"), ("ml.p4d.24xlarge", "0 of 8 GPU")}


@pytest.mark.parametrize(
    ("policies", "arrow"),
    [
        ({"AutoImportPolicy": {"Events": ["NEW"]}}, "←"),
        ({"AutoExportPolicy": {"Events": ["NEW"]}}, "→"),
        ({"AutoImportPolicy": {"Events": ["NEW"]}, "AutoExportPolicy": {"Events": ["NEW"]}}, "⇄"),
    ],
)
def test_an_association_points_where_files_go(policies: Any, arrow: str) -> None:
    templates = json.loads(json.dumps(dict(assembly("prod").stacks)))
    for template in templates.values():
        for resource in template["Resources"].values():
            if resource["Type"] == "AWS::FSx::DataRepositoryAssociation":
                resource["Properties"]["S3"] = policies
    systems = architecture(loaded("prod").environment, Assembly("prod", templates))["file_systems"]
    assert [f"/datasets {arrow} s3://acme-datasets"] in [system["repositories"] for system in systems]
