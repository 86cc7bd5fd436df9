"""The tables of facts against the public data that they were taken from."""

import dataclasses
import gzip
import json
import re
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import Any

import botocore.session
import cfnlint
import moto
from cfnlint.helpers import LIMITS
from cfnlint.schema import PROVIDER_SCHEMA_MANAGER
from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend

from podwright.config.catalog.facts import DATA, table
from podwright.config.catalog.instance_type import Conflict, InstanceType
from podwright.config.catalog.instance_types import catalog, conflicts
from podwright.config.catalog.limits import limits
from podwright.config.catalog.regions import offering_regions, regions
from sources import modules

EC2 = json.loads(gzip.decompress((Path(moto.__file__).parent / "ec2/resources/instance_types.json.gz").read_bytes()))
SESSION = botocore.session.get_session()
SAGEMAKER: Any = SESSION.get_service_model("sagemaker")


def advertised(text: str) -> float:
    """`Up to 25 Gigabit` or `16x 200 Gigabit` as Gbps."""
    match = re.fullmatch(r"(?:Up to )?(?:(\d+)x )?([\d.]+) Gigabit", text)
    assert match, text
    return int(match[1] or 1) * float(match[2])


def ec2_says(row: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """field → citation key → value, for every field that DescribeInstanceTypes knows."""
    network, cards = row["NetworkInfo"], row["NetworkInfo"]["NetworkCards"]
    gpus = row.get("GpuInfo", {}).get("Gpus", [])
    neurons = row.get("NeuronInfo", {}).get("NeuronDevices", [])
    device = (gpus or neurons or [None])[0]
    facts = {
        "vcpu": row["VCpuInfo"]["DefaultVCpus"],
        "threads_per_core": row["VCpuInfo"]["DefaultThreadsPerCore"],
        "memory_gib": row["MemoryInfo"]["SizeInMiB"] / 1024,
        "accelerator_count": device["Count"] if device else 0,
        "accelerator_name": device["Name"] if device else "",
        "accelerator_vendor": "nvidia" if gpus else "neuron" if neurons else "none",
        "accelerator_memory_mib": device["MemoryInfo"]["SizeInMiB"] if device else 0,
        "neuron_cores": sum(each["Count"] * each["CoreInfo"]["Count"] for each in neurons),
        "network_gbps": advertised(network["NetworkPerformance"]),
        "network_cards": network["MaximumNetworkCards"],
        "efa_interfaces": network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0),
        "efa_only": any("efa-only" in card["InterfaceTypes"] for card in cards),
        "primary_efa": "efa" in cards[network["DefaultNetworkCardIndex"]]["InterfaceTypes"],
        "eni_max": network["MaximumNetworkInterfaces"],
        "eni_primary_card": cards[network["DefaultNetworkCardIndex"]]["MaximumNetworkInterfaces"],
        "ipv4_per_eni": network["Ipv4AddressesPerInterface"],
        "nvme_gb": row.get("InstanceStorageInfo", {}).get("TotalSizeInGB", 0),
        "architecture": "/".join(row["ProcessorInfo"]["SupportedArchitectures"]),
    }
    output = {field: {"ec2": value} for field, value in facts.items()}
    output["network_gbps"]["ec2-cards"] = sum(card["PeakBandwidthInGbps"] for card in cards)
    return output


def complaints(rows: Iterable[InstanceType], ec2: dict[str, Any], listed: Iterable[Conflict]) -> list[str]:
    """Every difference that no conflict lists, and every conflict that is none any more."""
    known = {(conflict.type, conflict.field): conflict for conflict in listed}
    actual = []
    for row in rows:
        output = ec2_says(ec2[row.name.removeprefix("ml.")]) if row.name.removeprefix("ml.") in ec2 else {}
        for field, values in output.items():
            held, conflict = getattr(row, field), known.get((row.name, field))
            differs = any(value != held for value in values.values())
            if differs and conflict is None:
                actual.append(f"{row.name}.{field} is {held}, {values} by EC2")
            if conflict is not None:
                cited_of_ec2 = {key: value for key, value in conflict.values.items() if key in ("ec2", "ec2-cards")}
                if not differs or cited_of_ec2 != values:
                    actual.append(f"conflict {row.name}.{field} cites {cited_of_ec2}, but EC2 says {values}")
    return actual


def test_every_type_of_the_api_has_a_row_and_no_other():
    assert {row.name for row in catalog()} == set(SAGEMAKER.shape_for("ClusterInstanceType").enum)
    assert len(catalog()) == 209


def test_every_field_agrees_with_ec2_or_is_a_listed_conflict():
    assert complaints(catalog(), EC2, conflicts()) == []


def test_only_gb200_is_missing_from_the_ec2_data():
    assert [row.name for row in catalog() if row.name.removeprefix("ml.") not in EC2] == ["ml.p6e-gb200.36xlarge"]


def test_the_comparison_covers_every_field_of_the_table_but_two():
    columns = set(table("instances")[0]) - {"type", "source"}
    assert columns - set(ec2_says(EC2["p5.48xlarge"])) == {"training_plan"}


def test_a_difference_in_any_field_is_noticed():
    m5 = catalog().get("ml.m5.large")
    for field in ec2_says(EC2["m5.large"]):
        wrong: Any = dataclasses.replace(m5, **{field: "other"})
        assert [line.partition(" ")[0] for line in complaints([wrong], EC2, ())] == [f"ml.m5.large.{field}"]


def test_a_conflict_that_is_over_is_noticed():
    settled = Conflict("ml.m5.large", "vcpu", {"ec2": 4, "ec2-guide": 2}, 2, "EC2 said 4 once")
    assert complaints([catalog().get("ml.m5.large")], EC2, [settled]) == [
        "conflict ml.m5.large.vcpu cites {'ec2': 4}, but EC2 says {'ec2': 2}"
    ]


def test_training_plans_sell_what_the_api_lists():
    assert {row.name for row in catalog() if row.training_plan} == set(
        SAGEMAKER.shape_for("ReservedCapacityInstanceType").enum
    )


def test_quotas_can_name_the_mig_profiles_of_every_type_but_b300():
    quota = set(limits().compute_quota.mig_profiles)
    assert {f"mig-{profile}" for profile in quota} == set(SAGEMAKER.shape_for("MIGProfileType").enum)
    assert {row.name for row in catalog() if not set(row.mig_profiles) <= quota} == {"ml.p6-b300.48xlarge"}


def test_regions_are_those_of_the_sdk_and_of_the_schemas():
    sdk = {
        name: partition
        for partition in SESSION.get_available_partitions()
        for name in SESSION.get_available_regions("ec2", partition)
    }
    assert {row.name: row.partition for row in regions().values()} == sdk

    for field, kind in {
        "cluster": "AWS::SageMaker::Cluster",
        "compute_quota": "AWS::SageMaker::ComputeQuota",
        "scheduler_config": "AWS::SageMaker::ClusterSchedulerConfig",
    }.items():
        folder = Path(cfnlint.__file__).parent / "data/schemas/providers"
        listing = {file.stem for file in folder.glob("*.json") if kind in json.loads(file.read_text(encoding="utf-8"))}
        assert {row.name for row in regions().values() if getattr(row, field)} == listing & set(sdk)


def test_zone_prefixes_are_those_of_ec2():
    prefixes = {
        name: {zone.zone_id.partition("-")[0] for zone in zones} for name, zones in RegionsAndZonesBackend.zones.items()
    }
    assert {row.name: {row.zone_prefix} for row in regions().values() if row.zone_prefix} == prefixes


def test_offers_by_region_are_those_of_the_price_lists():
    file = Path(cfnlint.__file__).parent / "data/schemas/extensions/aws_sagemaker_cluster/instancetype_enum.json"
    listed: dict[str, set[str]] = {}
    for region_name, schema in json.loads(file.read_text(encoding="utf-8")).items():
        for name in schema["enum"] if isinstance(schema, dict) else ():
            listed.setdefault(name, set()).add(region_name)
    for row in catalog():
        assert set(offering_regions(row.name)) == listed.get(row.name, set())


def schema(kind: str, *path: str) -> dict[str, Any]:
    node = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", kind).schema
    for name in path:
        node = node[name]
    return node


def test_cluster_limits_are_those_of_the_schema():
    def of(definition: str, *names: str) -> dict[str, Any]:
        path = [part for name in names for part in ("properties", name)]
        return schema("AWS::SageMaker::Cluster", "definitions", definition, *path)

    cluster, group = limits().cluster, "ClusterInstanceGroup"
    assert cluster.name_length == schema("AWS::SageMaker::Cluster", "properties", "ClusterName")["maxLength"]
    assert cluster.tags == schema("AWS::SageMaker::Cluster", "properties", "Tags")["maxItems"]
    assert cluster.group_name_length == of("InstanceGroupName")["maxLength"]
    assert cluster.groups == of("ClusterInstanceGroupsList")["maxItems"]
    assert cluster.groups == of("ClusterRestrictedInstanceGroupsList")["maxItems"]
    assert cluster.instances_per_group == of(group, "InstanceCount")["maximum"]
    assert cluster.instances_per_group == of(group, "MinInstanceCount")["maximum"]
    assert cluster.instance_types_per_group == of("InstanceRequirements", "InstanceTypes")["maxItems"]
    assert cluster.subnets == of("VpcConfig", "Subnets")["maxItems"]
    assert cluster.security_groups == of("VpcConfig", "SecurityGroupIds")["maxItems"]
    assert cluster.storage_configs == of("ClusterInstanceStorageConfigs")["maxItems"]
    assert cluster.taints == of("ClusterKubernetesTaints")["maxItems"]
    assert cluster.label_key_length == of("ClusterKubernetesTaint", "Key")["maxLength"]
    assert cluster.label_value_length == of("ClusterKubernetesTaint", "Value")["maxLength"]
    assert cluster.labels == SAGEMAKER.shape_for("ClusterKubernetesLabels").metadata["max"]
    assert cluster.slurm_partitions == of("ClusterSlurmConfig", "PartitionNames")["maxItems"]
    assert cluster.rollback_alarms == of("AutoRollbackConfiguration")["maxItems"]
    assert cluster.lifecycle_script_length == of("ClusterLifeCycleConfig", "OnCreate")["maxLength"]
    assert cluster.lifecycle_uri_length == of("ClusterLifeCycleConfig", "SourceS3Uri")["maxLength"]
    for actual, value in {
        "ebs_gib": of("ClusterEbsVolumeConfig", "VolumeSizeInGB"),
        "tiered_memory_percent": of("TieredStorageConfig", "InstanceMemoryAllocationPercentage"),
        "update_wait_seconds": of("DeploymentConfig", "WaitIntervalInSeconds"),
        "restricted_lustre_gib": of("FSxLustreConfig", "SizeInGiB"),
        "restricted_lustre_throughput": of("FSxLustreConfig", "PerUnitStorageThroughput"),
    }.items():
        assert getattr(cluster, actual) == (value["minimum"], value["maximum"])


def test_quota_and_scheduler_limits_are_those_of_the_schemas():
    def of(kind: str, *names: str) -> dict[str, Any]:
        return schema(f"AWS::SageMaker::{kind}", *names)

    quota, scheduler = limits().compute_quota, limits().scheduler
    assert quota.name_length == of("ComputeQuota", "properties", "Name")["maxLength"]
    assert quota.description_length == of("ComputeQuota", "properties", "Description")["maxLength"]
    config = of("ComputeQuota", "definitions", "ComputeQuotaConfig", "properties")
    assert quota.resources == config["ComputeQuotaResources"]["maxItems"]
    target = of("ComputeQuota", "definitions", "ComputeQuotaTarget", "properties")
    assert quota.weight == (target["FairShareWeight"]["minimum"], target["FairShareWeight"]["maximum"])
    assert f"{{0,{quota.team_length - 1}}}" in target["TeamName"]["pattern"]
    amount = of("ComputeQuota", "definitions", "ComputeQuotaResourceConfig", "properties", "Accelerators")
    assert quota.amount == amount["maximum"]
    assert scheduler.name_length == of("ClusterSchedulerConfig", "properties", "Name")["maxLength"]
    classes = of("ClusterSchedulerConfig", "definitions", "SchedulerConfig", "properties", "PriorityClasses")
    assert scheduler.priority_classes == classes["maxItems"]
    one = of("ClusterSchedulerConfig", "definitions", "PriorityClass", "properties")
    assert scheduler.weight == (one["Weight"]["minimum"], one["Weight"]["maximum"])
    assert f"{{0,{scheduler.priority_name_length - 1}}}" in one["Name"]["pattern"]


def test_training_plan_limits_are_those_of_the_api():
    plans = limits().training_plan
    assert plans.name_length == SAGEMAKER.shape_for("TrainingPlanName").metadata["max"]
    count = SAGEMAKER.shape_for("ReservedCapacityInstanceCount").metadata
    assert plans.search_instances == (count["min"], count["max"])
    assert plans.extension_hours == SAGEMAKER.shape_for("TrainingPlanExtensionDurationHours").metadata["max"]


def test_file_system_limits_are_those_of_the_api():
    fsx: Any = SESSION.get_service_model("fsx")
    lustre = fsx.shape_for("CreateFileSystemLustreConfiguration").members

    def said(member: str) -> str:
        return re.sub(r"<[^>]+>", "", lustre[member].documentation)

    values = limits().lustre
    allowed = ", ".join(map(str, values.throughput))
    assert f"PERSISTENT_2 SSD storage: {allowed} MB/s/TiB" in said("PerUnitStorageThroughput")
    assert lustre["ThroughputCapacity"].metadata == {
        "min": values.tiering_throughput_step,
        "max": values.tiering_throughput_max,
    }
    metadata = fsx.shape_for("CreateFileSystemLustreMetadataConfiguration").members["Iops"]
    assert metadata.metadata == {"min": values.metadata_iops[0], "max": values.metadata_iops_max}
    assert f"and multiples of {values.metadata_iops_step}" in re.sub(r"<[^>]+>", "", metadata.documentation)
    days = fsx.shape_for("AutomaticBackupRetentionDays").metadata
    assert values.backup_days == limits().openzfs.backup_days == (days["min"], days["max"])
    capacity = re.sub(r"<[^>]+>", "", fsx.shape_for("CreateFileSystemRequest").members["StorageCapacity"].documentation)
    assert (
        f"{values.capacity_first_gib} GiB, {values.capacity_step_gib} GiB, and increments of "
        f"{values.capacity_step_gib} GiB"
    ) in capacity
    assert "64 GiB up to 524,288 GiB" in capacity
    assert limits().openzfs.capacity_gib == (64, 524288)
    association = str(fsx.operation_model("CreateDataRepositoryAssociation").documentation)
    assert f"a maximum of {values.associations} data repository associations" in association


def test_template_limits_are_those_that_cfn_lint_checks():
    stack = limits().cloudformation
    assert (stack.resources, stack.outputs, stack.parameters, stack.mappings) == (
        LIMITS["Resources"]["number"],
        LIMITS["Outputs"]["number"],
        LIMITS["Parameters"]["number"],
        LIMITS["Mappings"]["number"],
    )
    assert (stack.template_bytes, stack.logical_id_length) == (LIMITS["template"]["body"], LIMITS["Resources"]["name"])


def test_every_citation_has_its_own_key_a_date_and_an_address():
    rows = table("citations")
    assert len({row["key"] for row in rows}) == len(rows)
    for row in rows:
        assert date.fromisoformat(row["date"]), row
        assert row["text"], row
        assert row["url"].startswith("https://"), row


def test_every_citation_is_used():
    folders = ("config", "planning", "constructs", "cdk8s_charts", "operations", "sandbox", "stacks")
    texts = [file.read_text(encoding="utf-8") for file in DATA.iterdir() if file.name != "citations.csv"]
    texts += [source.text for source in modules(*folders)]
    words = {word for text in texts for word in re.findall(r"[\w-]+", text)}
    assert [row["key"] for row in table("citations") if row["key"] not in words] == []


def conflict_table() -> str:
    lines = ["| type | field | values by source | chosen | why |", "|---|---|---|---|---|"]
    for conflict in conflicts():
        values = "; ".join(f"{key}: {_shown(value)}" for key, value in conflict.values.items())
        lines.append(f"| {conflict.type} | {conflict.field} | {values} | {_shown(conflict.chosen)} | {conflict.why} |")
    return "\n".join(lines)


def _shown(value: object) -> str:
    return (", ".join(map(str, value)) or "none") if isinstance(value, list) else str(value)


def test_the_page_shows_the_conflicts_as_the_data_has_them():
    page = (Path(__file__).parents[2] / "docs/catalog.md").read_text(encoding="utf-8")
    assert conflict_table() in page, f"put this table into docs/catalog.md:\n{conflict_table()}"


TABLES = (
    "instances.csv",
    "efa.csv",
    "nvlink.csv",
    "mig_profiles.csv",
    "topology_labels.csv",
    "ultraservers.csv",
    "conflicts.json",
    "regions.csv",
    "region_availability.csv",
    "eks_versions.csv",
    "limits.json",
    "citations.csv",
)


def test_the_page_says_what_each_table_holds():
    page = (Path(__file__).parents[2] / "docs/catalog.md").read_text(encoding="utf-8")
    assert [name for name in TABLES if not (DATA / name).is_file() or f"| `{name}` |" not in page] == []
