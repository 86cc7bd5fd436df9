"""What a cluster is, said as a file, synthesizes to the same cluster: for every setting that the API has."""

from datetime import UTC, datetime
from typing import Any

import pytest

from podwright.operations.adoption.differences import Comparison, beside
from podwright.operations.adoption.reading import RunningCluster
from podwright.operations.adoption.settings import environment_settings
from synthesis import environment_of, synthesize

ACCOUNT, REGION = "111122223333", "us-west-2"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/Nodes"
KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/0f0e0d0c-0b0a-4908-8706-050403020100"
PLAN = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-plan/h200-q1"
FIRST, MORE, OTHER, CONTROL = (f"subnet-0123456789abcdef{number}" for number in range(4))
NODES, EKS, DATA = (f"sg-0123456789abcdef{number}" for number in range(3))
SYSTEM = "fs-0123456789abcdef0"
ROLLING = {
    "RollingUpdatePolicy": {
        "MaximumBatchSize": {"Type": "CAPACITY_PERCENTAGE", "Value": 10},
        "RollbackMaximumBatchSize": {"Type": "INSTANCE_COUNT", "Value": 2},
    },
    "WaitIntervalInSeconds": 60,
    "AutoRollbackConfiguration": [{"AlarmName": "too hot"}],
}


def group(name: str, kind: str | None, count: int, *subnets: str, **more: Any) -> dict[str, Any]:
    """An instance group as DescribeCluster shows it."""
    return {
        "InstanceGroupName": name,
        **({"InstanceType": kind} if kind else {}),
        "TargetCount": count,
        "CurrentCount": count,
        "ExecutionRole": ROLE,
        "LifeCycleConfig": {"SourceS3Uri": "s3://sagemaker-theirs/scripts", "OnCreate": "on_create.sh"},
        "OverrideVpcConfig": {"SecurityGroupIds": [NODES], "Subnets": list(subnets)},
        "DesiredImageReleaseVersion": "1.0.42",
        **more,
    }


def subnet(id: str, zone: str, cidr: str) -> dict[str, Any]:
    return {"SubnetId": id, "AvailabilityZoneId": zone, "CidrBlock": cidr}


def everything() -> RunningCluster:
    """A cluster on EKS with every setting that the API shows and a file has words for."""
    lustre = {"DnsName": f"{SYSTEM}.fsx.{REGION}.amazonaws.com", "MountName": "abcdefgh", "MountPath": "/data"}
    groups = [
        group("system", "ml.m5.4xlarge", 2, FIRST, MORE, ThreadsPerCore=2, CapacityRequirements={"OnDemand": {}}),
        group(
            "h200",
            "ml.p5en.48xlarge",
            16,
            FIRST,
            MORE,
            TrainingPlanArn=PLAN,
            OnStartDeepHealthChecks=["InstanceStress", "InstanceConnectivity"],
            NetworkInterface={"InterfaceType": "efa-only"},
            InstanceStorageConfigs=[
                {"EbsVolumeConfig": {"VolumeSizeInGB": 500, "VolumeKmsKeyId": KEY}},
                {"EbsVolumeConfig": {"RootVolume": True, "VolumeKmsKeyId": KEY}},
                {"FsxLustreConfig": lustre},
            ],
            KubernetesConfig={
                "DesiredLabels": {"team": "research"},
                "DesiredTaints": [{"Key": "gpu", "Value": "yes", "Effect": "NoSchedule"}],
            },
            AutoPatchConfig={"PatchingStrategy": "WhenIdle", "DeploymentConfig": ROLLING},
        ),
        group(
            "spot",
            None,
            4,
            MORE,
            MinCount=1,
            CapacityRequirements={"Spot": {}},
            InstanceRequirements={"DesiredInstanceTypes": ["ml.g6.12xlarge", "ml.g5.12xlarge"]},
            ScheduledUpdateConfig={"ScheduleExpression": "cron(0 4 ? * SUN *)", "DeploymentConfig": ROLLING},
        ),
        group("both", "ml.c5.4xlarge", 0, FIRST, MORE, OTHER, CapacityRequirements={"OnDemand": {}}),
    ]
    sharing = {"Strategy": "LendAndBorrow", "BorrowLimit": 80}
    resources = [{"InstanceType": "ml.p5en.48xlarge", "Count": 8}]
    return RunningCluster(
        ACCOUNT,
        REGION,
        {
            "ClusterName": "Theirs",
            "ClusterArn": f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:cluster/0123456789ab",
            "ClusterStatus": "InService",
            "Orchestrator": {"Eks": {"ClusterArn": f"arn:aws:eks:{REGION}:{ACCOUNT}:cluster/shared"}},
            "VpcConfig": {"SecurityGroupIds": [NODES], "Subnets": [FIRST]},
            "NodeRecovery": "Automatic",
            "NodeProvisioningMode": "Continuous",
            "TieredStorageConfig": {"Mode": "Enable", "InstanceMemoryAllocationPercentage": 30},
            "InstanceGroups": groups,
        },
        tags={"owner": "ml", "podwright:environment": "theirs"},
        nodes={"h200": 15},
        subnets={
            id: subnet(id, zone, f"10.0.{number * 64}.0/18")
            for number, (id, zone) in enumerate(
                {FIRST: "usw2-az2", MORE: "usw2-az2", OTHER: "usw2-az1", CONTROL: "usw2-az1"}.items()
            )
        },
        vpc={"VpcId": "vpc-0123456789abcdef0", "CidrBlock": "10.0.0.0/16"},
        rules=[
            {"GroupId": one, "IsEgress": False, "ReferencedGroupInfo": {"GroupId": other}}
            for one, other in ((NODES, EKS), (EKS, NODES))
        ],
        eks={
            "name": "shared",
            "version": "1.34",
            "resourcesVpcConfig": {"clusterSecurityGroupId": EKS, "subnetIds": [FIRST, CONTROL]},
            "accessConfig": {"authenticationMode": "API"},
        },
        administrators=[f"arn:aws:iam::{ACCOUNT}:role/Kubectl"],
        quotas=[
            {
                "Name": "research",
                "ActivationState": "Enabled",
                "ComputeQuotaConfig": {
                    "ComputeQuotaResources": resources,
                    "ResourceSharingConfig": sharing,
                    "PreemptTeamTasks": "Never",
                },
                "ComputeQuotaTarget": {"TeamName": "research", "FairShareWeight": 30},
            }
        ],
        scheduler={
            "Name": "policy",
            "SchedulerConfig": {
                "PriorityClasses": [{"Name": "training", "Weight": 70}],
                "FairShare": "Disabled",
                "IdleResourceSharing": "Enabled",
            },
        },
        plans={
            PLAN: {
                "ReservedCapacitySummaries": [{"AvailabilityZoneId": "usw2-az2"}],
                "StartTime": datetime(2026, 11, 1, tzinfo=UTC),
                "EndTime": datetime(2027, 2, 1, tzinfo=UTC),
                "UpfrontFee": "410000.0",
            }
        },
        file_systems={
            SYSTEM: {
                "FileSystemType": "LUSTRE",
                "SubnetIds": [FIRST],
                "LustreConfiguration": {"MountName": "abcdefgh", "EfaEnabled": True},
            }
        },
        file_system_groups={SYSTEM: [DATA]},
    )


def compared(running: RunningCluster) -> Comparison:
    """The cluster beside what its file synthesizes to."""
    actual = synthesize(environment_of(environment_settings(running, "theirs").text("# head"), "theirs"))
    kinds = ("Cluster", "ComputeQuota", "ClusterSchedulerConfig")
    resources = {key: item for kind in kinds for key, item in actual.resources(f"AWS::SageMaker::{kind}").items()}
    return beside(running, {"theirs-cluster": {"Resources": resources}})


def test_every_setting_comes_back() -> None:
    actual = compared(everything())
    assert (actual.compared, actual.deviations) == (3, ())


@pytest.mark.parametrize("checks", [["InstanceStress", "MultiNodeTrainingValidation"]])
def test_what_a_file_has_no_word_for_is_told(checks: list[str]) -> None:
    running = everything()
    running.cluster["InstanceGroups"][1]["OnStartDeepHealthChecks"] = checks
    (item,) = compared(running).deviations
    assert item.property.startswith("InstanceGroups[h200].OnStartDeepHealthChecks")
    assert item.why == "CloudFormation has no word for one of the checks"
    settings = environment_settings(running, "theirs")
    text = "Left out of deep_health_checks: MultiNodeTrainingValidation; CloudFormation has no word for it"
    assert (("instance_groups", "h200"), text) in settings.notes


def test_a_group_in_some_subnets_of_its_zone_names_them() -> None:
    settings = environment_settings(everything(), "theirs").data
    groups = settings["instance_groups"]
    assert groups["spot"]["subnet_ids"] == [MORE]
    assert (groups["h200"]["zone"], groups["both"]["zones"]) == ("usw2-az2", ["usw2-az1", "usw2-az2"])


def test_notes_say_who_owns_it_and_what_is_not_there() -> None:
    text = environment_settings(everything(), "theirs").text("# head")
    assert "# podwright deployed it as environment theirs: its own file changes it, this one does not." in text
    assert "# 15 of its nodes are there now\n  h200:" in text
    assert "start: 2026-11-01T00:00Z\n    end: 2027-02-01T00:00Z\n    paid_usd: 410000" in text
