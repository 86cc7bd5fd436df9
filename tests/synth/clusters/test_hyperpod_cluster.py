"""The HyperPod cluster and its groups, by what the template says."""

from collections.abc import Iterator
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk.assertions import Template
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

from podwright.config.errors import InvalidSettings
from podwright.config.settings.cluster import Cluster
from podwright.config.settings.groups import InstanceGroup, RestrictedInstanceGroup
from podwright.constructs.hyperpod.cluster import ClusterResource
from podwright.constructs.hyperpod.instance_group import GroupResources
from podwright.planning.node.facts import FileSystems, LustreMount, OpenZfsMount

EKS = "arn:aws:eks:us-west-2:111122223333:cluster/prod"
KEY = "arn:aws:kms:us-west-2:111122223333:key/01234567-89ab-cdef-0123-456789abcdef"
OTHER_KEY = KEY.replace("01234567", "76543210")
PLAN = "arn:aws:sagemaker:us-west-2:111122223333:training-plan/q1"
ROLE = "arn:aws:iam::111122223333:role/Nodes"
LUSTRE = "fs-0123456789abcdef0.fsx.us-west-2.amazonaws.com"
SUBNETS = {"usw2-az2": "subnet-0123456789abcdef2", "usw2-az3": "subnet-0123456789abcdef3"}
GROUP = "sg-0123456789abcdef0"
SETTINGS = {"name": "prod", "zones": ["usw2-az2"], "system_group": "system"}
SCALING = {"karpenter": {"groups": ["burst"], "limits": {"vcpu": 256}}}
SYSTEM = {"instance_type": "ml.m5.4xlarge", "count": 2, "zone": "usw2-az2"}
GPU = {"instance_type": "ml.p5en.48xlarge", "count": 4, "zone": "usw2-az2"}


@pytest.fixture
def resources(stack: cdk.Stack) -> GroupResources:
    return GroupResources(
        subnets={zone: ec2.Subnet.from_subnet_id(stack, zone, subnet) for zone, subnet in SUBNETS.items()},
        security_groups=[ec2.SecurityGroup.from_security_group_id(stack, "Nodes", GROUP)],
        scripts_uri="s3://sagemaker-test/prod/0",
        execution_role=iam.Role.from_role_arn(stack, "Role", ROLE),
        volume_key=kms.Key.from_key_arn(stack, "Key", KEY),
        file_systems=FileSystems(
            lustre={
                "scratch": LustreMount(
                    dns_name=LUSTRE, mount_name="abcdefgh", path="/scratch", zone="usw2-az2", efa=False
                ),
                "lustre": LustreMount(dns_name=LUSTRE, mount_name="hgfedcba", path="/fsx", zone="usw2-az2", efa=True),
            },
            home=OpenZfsMount(dns_name=LUSTRE, path="/home", zone="usw2-az2"),
        ),
        training_plan_arns={"q1": PLAN},
    )


def cluster(
    stack: cdk.Stack,
    resources: GroupResources,
    groups: dict[str, dict[str, Any]] | None = None,
    restricted: dict[str, dict[str, Any]] | None = None,
    settings: dict[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """The properties of a cluster with these settings."""
    made = {name: InstanceGroup.model_validate(group) for name, group in (groups or {"system": SYSTEM}).items()}
    closed = {name: RestrictedInstanceGroup.model_validate(group) for name, group in (restricted or {}).items()}
    ClusterResource(
        stack,
        "Cluster",
        settings=Cluster.model_validate(SETTINGS | (settings or {})),
        groups=made,
        restricted_groups=closed,
        resources=resources,
        default_subnets=[resources.subnets["usw2-az2"]],
        eks_cluster_arn=EKS,
        **more,
    )
    (resource,) = Template.from_stack(stack).find_resources("AWS::SageMaker::Cluster").values()
    return resource["Properties"]


def group(stack: cdk.Stack, resources: GroupResources, **settings: Any) -> dict[str, Any]:
    """The properties of one group."""
    return cluster(stack, resources, {"workers": {**SYSTEM, **settings}})["InstanceGroups"][0]


def test_the_least_that_a_cluster_is(stack: cdk.Stack, resources: GroupResources) -> None:
    assert cluster(stack, resources) == {
        "ClusterName": "prod",
        "Orchestrator": {"Eks": {"ClusterArn": EKS}},
        "VpcConfig": {"Subnets": [SUBNETS["usw2-az2"]], "SecurityGroupIds": [GROUP]},
        "NodeProvisioningMode": "Continuous",
        "NodeRecovery": "Automatic",
        "InstanceGroups": [
            {
                "InstanceGroupName": "system",
                "InstanceType": "ml.m5.4xlarge",
                "InstanceCount": 2,
                "ExecutionRole": ROLE,
                "CapacityRequirements": {"OnDemand": {}},
                "LifeCycleConfig": {"SourceS3Uri": "s3://sagemaker-test/prod/0", "OnCreate": "on_create.sh"},
                "OverrideVpcConfig": {"Subnets": [SUBNETS["usw2-az2"]], "SecurityGroupIds": [GROUP]},
            }
        ],
    }


EVERYTHING = {
    "groups": {
        "one": {
            **GPU,
            "min_count": 2,
            "capacity": "spot",
            "threads_per_core": 1,
            "image_id": "ami-0123456789abcdef0",
            "volumes": [{"size_gib": 500}],
            "root_kms_key": OTHER_KEY,
            "mount_lustre": True,
            "network_interface": "efa-only",
            "labels": {"team": "research"},
            "taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}],
            "deep_health_checks": ["stress", "connectivity"],
            "scheduled_update": {"schedule": "cron(0 4 ? * SUN *)", "batch": "2", "rollback_alarms": ["errors"]},
            "lifecycle": {"source": "s3://sagemaker-own/a", "on_create": "a.sh"},
        },
        "two": {
            "instance_types": ["ml.m5.4xlarge", "ml.m5.8xlarge"],
            "count": 3,
            "zones": ["usw2-az2", "usw2-az3"],
            "image_release": "1.2.3",
            "mount_home": True,
            "patching": {"strategy": "when_idle", "batch": "25%", "wait_seconds": 60, "rollback_alarms": ["errors"]},
            "lifecycle": {"source": "s3://sagemaker-own/b", "on_init_complete": "b.sh"},
        },
        "three": {**GPU, "capacity": {"training_plan": "q1"}},
        "four": SYSTEM,
    },
    "restricted": {
        "nova": {
            "instance_type": "ml.p5.48xlarge",
            "count": 2,
            "zone": "usw2-az2",
            "threads_per_core": 2,
            "volumes": [{"size_gib": 100, "kms_key": OTHER_KEY}],
            "deep_health_checks": ["stress"],
            "capacity": {"training_plan": "q1"},
            "lustre": {"capacity_gib": 1200, "throughput": 250},
        }
    },
    "settings": {
        "autoscaling": SCALING,
        "tiered_checkpoints": {"memory_percent": 30},
        "restricted_environment": {"lustre": {"capacity_gib": 1200, "throughput": 250}},
    },
}

RESTRICTED_STORAGE = "RestrictedInstanceGroups/*/InstanceStorageConfigs/*"
NOT_WRITTEN = {
    "Orchestrator/Slurm": "the orchestrator is EKS; Slurm is not supported yet",
    "InstanceGroups/*/SlurmConfig": "the orchestrator is EKS; Slurm is not supported yet",
    f"{RESTRICTED_STORAGE}/FsxLustreConfig": "restricted nodes mount what HyperPod gives them",
    f"{RESTRICTED_STORAGE}/FsxOpenZfsConfig": "restricted nodes mount what HyperPod gives them",
    f"{RESTRICTED_STORAGE}/EbsVolumeConfig/RootVolume": "restricted groups take no key for the root volume",
    "Tags": "CDK writes them: see test_takes_the_tags_of_its_surroundings",
}


def writable() -> set[str]:
    """Every leaf that the schema lets a template write, `*` for any item of a list."""
    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-west-2", "AWS::SageMaker::Cluster").schema
    read_only = {path.removeprefix("/properties/") for path in schema["readOnlyProperties"]}

    def leaves(definition: dict[str, Any], path: str) -> Iterator[str]:
        while "$ref" in definition:
            definition = schema["definitions"][definition["$ref"].rsplit("/", 1)[-1]]
        if path in read_only:
            return
        branches = [branch for branch in definition.get("oneOf", ()) if "properties" in branch]
        properties = dict(definition.get("properties", {}))
        for branch in branches:
            properties |= branch["properties"]
        if properties:
            for name, below in properties.items():
                yield from leaves(below, f"{path}/{name}" if path else name)
        elif "items" in definition:
            yield from leaves(definition["items"], f"{path}/*")
        else:
            yield path

    return set(leaves(schema, ""))


def written(value: Any, path: str = "") -> Iterator[str]:
    """Every leaf of a template's properties, in the same form."""
    if isinstance(value, dict) and value and not path.endswith("/Labels"):
        for name, below in value.items():
            yield from written(below, f"{path}/{name}" if path else name)
    elif isinstance(value, list):
        for below in value:
            yield from written(below, f"{path}/*")
    else:
        yield path


def test_writes_every_property_that_the_schema_has(stack: cdk.Stack, resources: GroupResources) -> None:
    role = iam.Role.from_role_arn(stack, "Karpenter", ROLE)
    leaves = set(written(cluster(stack, resources, **EVERYTHING, cluster_role=role)))
    schema = writable()
    assert len(schema) > 60
    assert leaves <= schema
    missing = {leaf for leaf in schema - leaves if not leaf.startswith(tuple(NOT_WRITTEN))}
    assert missing == set()
    assert [path for path in NOT_WRITTEN if not any(leaf.startswith(path) for leaf in schema - leaves)] == []


def test_takes_the_tags_of_its_surroundings(stack: cdk.Stack, resources: GroupResources) -> None:
    cdk.Tags.of(stack).add("cost-center", "ai", exclude_resource_types=["aws:cdk:stack"])
    assert cluster(stack, resources)["Tags"] == [{"Key": "cost-center", "Value": "ai"}]


@pytest.fixture
def full(stack: cdk.Stack, resources: GroupResources) -> dict[str, Any]:
    """Everything, with groups by name."""
    role = iam.Role.from_role_arn(stack, "Karpenter", ROLE)
    properties = cluster(stack, resources, **EVERYTHING, cluster_role=role)
    return properties | {item["InstanceGroupName"]: item for item in properties["InstanceGroups"]}


def test_groups_come_in_the_order_of_their_names(full: dict[str, Any]) -> None:
    assert [item["InstanceGroupName"] for item in full["InstanceGroups"]] == ["four", "one", "three", "two"]


def test_scaling_and_checkpoints(full: dict[str, Any]) -> None:
    assert full["AutoScaling"] == {"Mode": "Enable", "AutoScalerType": "Karpenter"}
    assert full["ClusterRole"] == ROLE
    assert full["TieredStorageConfig"] == {"Mode": "Enable", "InstanceMemoryAllocationPercentage": 30}


def test_what_was_on_is_turned_off_and_not_left_to_the_service(stack: cdk.Stack, resources: GroupResources) -> None:
    properties = cluster(stack, resources, settings={"autoscaling": "off", "tiered_checkpoints": "off"})
    assert properties["AutoScaling"]["Mode"] == "Disable"
    assert properties["TieredStorageConfig"] == {"Mode": "Disable"}
    assert "ClusterRole" not in properties


def test_volumes_and_mounts(full: dict[str, Any]) -> None:
    assert full["one"]["InstanceStorageConfigs"] == [
        {"EbsVolumeConfig": {"VolumeSizeInGB": 500, "VolumeKmsKeyId": KEY}},
        {"EbsVolumeConfig": {"RootVolume": True, "VolumeKmsKeyId": OTHER_KEY}},
        {"FsxLustreConfig": {"DnsName": LUSTRE, "MountName": "hgfedcba", "MountPath": "/fsx"}},
        {"FsxLustreConfig": {"DnsName": LUSTRE, "MountName": "abcdefgh", "MountPath": "/scratch"}},
    ]
    assert full["two"]["InstanceStorageConfigs"] == [{"FsxOpenZfsConfig": {"DnsName": LUSTRE, "MountPath": "/home"}}]
    assert "InstanceStorageConfigs" not in full["four"]


def test_capacity(full: dict[str, Any]) -> None:
    assert full["one"]["CapacityRequirements"] == {"Spot": {}}
    assert full["three"]["TrainingPlanArn"] == PLAN
    assert "CapacityRequirements" not in full["three"]
    assert full["one"]["MinInstanceCount"] == 2


def test_capacity_of_the_account_team_is_asked_for_like_any_other(stack: cdk.Stack, resources: GroupResources) -> None:
    """It has no id: the account and the zone of the subnet are what SageMaker goes by."""
    actual = group(stack, resources, capacity="account_team")
    assert actual["CapacityRequirements"] == {"OnDemand": {}}
    assert "TrainingPlanArn" not in actual


def test_mixed_types_in_several_zones(full: dict[str, Any]) -> None:
    assert full["two"]["InstanceRequirements"] == {"InstanceTypes": ["ml.m5.4xlarge", "ml.m5.8xlarge"]}
    assert "InstanceType" not in full["two"]
    assert full["two"]["OverrideVpcConfig"]["Subnets"] == [SUBNETS["usw2-az2"], SUBNETS["usw2-az3"]]


def test_labels_taints_and_checks(full: dict[str, Any]) -> None:
    assert full["one"]["KubernetesConfig"] == {
        "Labels": {"team": "research"},
        "Taints": [{"Key": "gpu", "Value": "yes", "Effect": "NoSchedule"}],
    }
    assert full["one"]["OnStartDeepHealthChecks"] == ["InstanceConnectivity", "InstanceStress"]


def test_updates_roll_in_batches_and_back_on_alarm(full: dict[str, Any]) -> None:
    two = {"Type": "INSTANCE_COUNT", "Value": 2}
    assert full["one"]["ScheduledUpdateConfig"] == {
        "ScheduleExpression": "cron(0 4 ? * SUN *)",
        "DeploymentConfig": {
            "RollingUpdatePolicy": {"MaximumBatchSize": two, "RollbackMaximumBatchSize": two},
            "WaitIntervalInSeconds": 300,
            "AutoRollbackConfiguration": [{"AlarmName": "errors"}],
        },
    }
    quarter = {"Type": "CAPACITY_PERCENTAGE", "Value": 25}
    assert full["two"]["AutoPatchConfig"] == {
        "PatchingStrategy": "WhenIdle",
        "DeploymentConfig": {
            "RollingUpdatePolicy": {"MaximumBatchSize": quarter, "RollbackMaximumBatchSize": quarter},
            "WaitIntervalInSeconds": 60,
            "AutoRollbackConfiguration": [{"AlarmName": "errors"}],
        },
    }


def test_scripts_of_the_users_own(full: dict[str, Any]) -> None:
    assert full["one"]["LifeCycleConfig"] == {"SourceS3Uri": "s3://sagemaker-own/a", "OnCreate": "a.sh"}
    assert full["two"]["LifeCycleConfig"] == {"SourceS3Uri": "s3://sagemaker-own/b", "OnInitComplete": "b.sh"}


def test_restricted_groups_run_no_scripts_and_take_no_key_of_the_environment(
    stack: cdk.Stack, resources: GroupResources
) -> None:
    nova = {"instance_type": "ml.p5.48xlarge", "count": 2, "zone": "usw2-az2", "volumes": [{"size_gib": 100}]}
    (made,) = cluster(stack, resources, restricted={"nova": nova})["RestrictedInstanceGroups"]
    assert made["InstanceStorageConfigs"] == [{"EbsVolumeConfig": {"VolumeSizeInGB": 100}}]
    assert "LifeCycleConfig" not in made


def test_restricted_environment(full: dict[str, Any]) -> None:
    lustre = {"SizeInGiB": 1200, "PerUnitStorageThroughput": 250}
    assert full["RestrictedInstanceGroups"][0]["EnvironmentConfig"] == {"FSxLustreConfig": lustre}
    assert full["RestrictedInstanceGroupsConfig"] == {
        "SharedEnvironmentConfig": {"FSxLustreDeletionPolicy": "Keep", "FSxLustreConfig": lustre}
    }


def test_a_restricted_environment_without_a_file_system_of_its_own(stack: cdk.Stack, resources: GroupResources) -> None:
    nova = {"instance_type": "ml.p5.48xlarge", "count": 2, "zone": "usw2-az2"}
    settings = {"restricted_environment": {"lustre_deletion": "delete_if_not_used"}}
    made = cluster(stack, resources, restricted={"nova": nova}, settings=settings)
    assert made["RestrictedInstanceGroupsConfig"] == {
        "SharedEnvironmentConfig": {"FSxLustreDeletionPolicy": "DeleteIfNotUsed"}
    }


def test_a_role_and_subnets_of_a_groups_own(stack: cdk.Stack, resources: GroupResources) -> None:
    own = {"role": ROLE.replace("Nodes", "Own"), "subnet_ids": ["subnet-aaaaaaaaaaaaaaaaa"], "zone": None}
    made = group(stack, resources, **own)
    assert made["ExecutionRole"] == own["role"]
    assert made["OverrideVpcConfig"]["Subnets"] == own["subnet_ids"]


def test_keys_of_ours_need_continuous_provisioning(stack: cdk.Stack, resources: GroupResources) -> None:
    settings = {"provisioning": "all_or_nothing"}
    properties = cluster(stack, resources, {"a": {**SYSTEM, "volumes": [{"size_gib": 9}]}}, settings=settings)
    assert "NodeProvisioningMode" not in properties
    volume = properties["InstanceGroups"][0]["InstanceStorageConfigs"][0]["EbsVolumeConfig"]
    assert volume == {"VolumeSizeInGB": 9}


def test_waits_for_what_it_requires(stack: cdk.Stack, resources: GroupResources) -> None:
    first = cdk.CfnResource(stack, "Chart", type="Custom::Chart")
    cluster(stack, resources, requires=[first])
    (resource,) = Template.from_stack(stack).find_resources("AWS::SageMaker::Cluster").values()
    assert resource["DependsOn"] == ["Chart"]


def test_refuses_what_cannot_be_built(stack: cdk.Stack, resources: GroupResources) -> None:
    with pytest.raises(InvalidSettings, match="min_count"):
        group(stack, resources, min_count=5)


def test_refuses_karpenter_without_a_role(stack: cdk.Stack, resources: GroupResources) -> None:
    with pytest.raises(ValueError, match="autoscaling needs cluster_role"):
        cluster(stack, resources, settings={"autoscaling": SCALING})
