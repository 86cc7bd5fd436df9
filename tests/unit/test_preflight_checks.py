"""Each check of preflight finds what it is for, says how to mend it, and is quiet where nothing is wrong."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any

import pytest

from podwright.config.preflight import preflight_checks
from podwright.config.rules.pages import explain
from podwright.operations.preflight.check import CHECKS, Outcome
from preflight_world import (
    ACCOUNT,
    ADOPTED,
    CLOSED,
    DIGEST,
    EKS,
    KEY,
    NEW,
    PLAN,
    REGION,
    SECRET,
    SERVICES,
    SLURM,
    SUBNETS,
    World,
    addon_versions,
    eks_cluster,
    endpoint,
    examine,
    file_system,
    filtered,
    hyperpod,
    operations,
    plan,
    quotas,
    refusal,
    role,
    security_group,
    simulated,
    subnet,
    trust,
)

BASES = {"new": NEW, "adopted": ADOPTED, "closed": CLOSED, "slurm": SLURM}
MIRROR = f"""
mirrors:
  {ACCOUNT}.dkr.ecr.{REGION}.amazonaws.com:
    docker.io/library/busybox:1.36: {DIGEST}
"""


@dataclass(frozen=True, eq=False)
class Case:
    """One answer of the account that makes a check speak, a part of what it says, and a part of what it advises."""

    id: str
    base: str
    says: str
    mend: str
    changed: dict[tuple[str, str], Any] = field(default_factory=dict)
    more: str = "{}"
    """Laid over the base environment."""
    groups: tuple[str, ...] = ()


def only_bucket(missing: str):
    return lambda **request: refusal("404") if request["Bucket"] == missing else {"BucketRegion": REGION}


def denied(*actions: str):
    def answer(**request: Any) -> dict[str, Any]:
        results = simulated(**request)["EvaluationResults"]
        return {
            "EvaluationResults": [
                result | ({"EvalDecision": "implicitDeny"} if result["EvalActionName"] in actions else {})
                for result in results
            ]
        }

    return answer


def stack_in(state: str, name: str = "example-cluster"):
    described = {"StackName": name, "StackStatus": state, "CreationTime": datetime(2026, 1, 1, tzinfo=UTC)}
    return lambda **request: {"Stacks": [described]} if request["StackName"] == name else refusal("ValidationError")


def attribute_off(name: str):
    return lambda **request: {
        f"{request['Attribute'][0].upper()}{request['Attribute'][1:]}": {"Value": request["Attribute"] != name}
    }


def route(**target: str) -> dict[str, Any]:
    default = {"DestinationCidrBlock": "0.0.0.0/0"} | target
    return {
        "RouteTables": [
            {
                "RouteTableId": "rtb-22222222",
                "Associations": [{"SubnetId": "subnet-11111111"}],
                "Routes": [default] if target else [],
            },
            {"RouteTableId": "rtb-11111111", "Associations": [{"Main": True}], "Routes": [default]},
        ]
    }


def metadata(**changed: str) -> dict[str, Any]:
    usual = {
        "KeyId": KEY[-36:],
        "KeyState": "Enabled",
        "KeyUsage": "ENCRYPT_DECRYPT",
        "KeySpec": "SYMMETRIC_DEFAULT",
        "KeyManager": "CUSTOMER",
    }
    return {"KeyMetadata": usual | changed}


def summary(**changed: Any) -> dict[str, Any]:
    kept = ("TrainingPlanArn", "TrainingPlanName", "Status", "ReservedCapacitySummaries")
    return {"TrainingPlanSummaries": [{key: value for key, value in (plan() | changed).items() if key in kept}]}


def clusters(name: str, **cluster: Any) -> dict[tuple[str, str], Any]:
    listed = {
        "ClusterName": name,
        "ClusterArn": f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:cluster/abcdefghijkl",
        "ClusterStatus": "InService",
        "CreationTime": datetime(2026, 1, 1, tzinfo=UTC),
    }
    found = hyperpod(name, **cluster)
    return {
        ("sagemaker", "list_clusters"): {"ClusterSummaries": [listed]},
        ("sagemaker", "describe_cluster"): lambda **request: (
            found if request["ClusterName"] == name else refusal("ResourceNotFound")
        ),
    }


QUOTA = ("service-quotas", "list_service_quotas")
IN_ALL = "request-service-quota-increase --region us-west-2 --service-code"
CASES = [
    Case(
        "PRE001",
        "new",
        "is not prepared for the CDK",
        "--bootstrap",
        {("ssm", "get_parameter"): refusal("ParameterNotFound")},
    ),
    Case(
        "PRE001", "new", "has version 5; 6", "cdk bootstrap", {("ssm", "get_parameter"): {"Parameter": {"Value": "5"}}}
    ),
    Case(
        "PRE002",
        "new",
        "example-cluster is UPDATE_ROLLBACK_FAILED",
        "continue-update-rollback --stack-name example-cluster",
        {("cloudformation", "describe_stacks"): stack_in("UPDATE_ROLLBACK_FAILED")},
    ),
    Case(
        "PRE003",
        "new",
        "may not sts:AssumeRole",
        "allow sts:AssumeRole on",
        {("iam", "simulate_principal_policy"): denied("sts:AssumeRole")},
    ),
    Case(
        "PRE004",
        "new",
        "may not sagemaker:CreateCluster and fsx:CreateFileSystem",
        "--cloudformation-execution-policies",
        {("iam", "simulate_principal_policy"): denied("sagemaker:CreateCluster", "fsx:CreateFileSystem", "rds:Create")},
    ),
    Case(
        "PRE005",
        "adopted",
        "role/Nodes is not there",
        "correct the ARN",
        {("iam", "get_role"): refusal("NoSuchEntity")},
    ),
    Case(
        "PRE005",
        "adopted",
        "role/Nodes cannot be taken on by sagemaker.amazonaws.com",
        "trust policy",
        {
            ("iam", "get_role"): lambda **request: {
                "Role": role(**request)["Role"] | {"AssumeRolePolicyDocument": trust("lambda.amazonaws.com")}
            }
        },
    ),
    Case("PRE005", "adopted", "policy/Boundary is not", "create", {("iam", "get_policy"): refusal("NoSuchEntity")}),
    Case(
        "PRE006",
        "new",
        "team: not active",
        "Activate",
        {
            ("ce", "list_cost_allocation_tags"): {
                "CostAllocationTags": [{"TagKey": "team", "Type": "UserDefined", "Status": "Inactive"}]
            }
        },
    ),
    Case(
        "PRE007", "adopted", "no alarm too-hot", "create it", {("cloudwatch", "describe_alarms"): {"MetricAlarms": []}}
    ),
    Case(
        "PRE010",
        "new",
        "no AWS::SageMaker::Cluster in us-west-2; the public lists show it in",
        "another region",
        {("cloudformation", "describe_type"): refusal("TypeNotFoundException")},
    ),
    Case(
        "PRE011",
        "new",
        "has no zone usw2-az2 in us-west-2; it has usw2-az3",
        "choose one",
        {
            ("ec2", "describe_availability_zones"): {
                "AvailabilityZones": [{"ZoneId": "usw2-az3", "ZoneName": "us-west-2c", "State": "available"}]
            }
        },
    ),
    Case(
        "PRE011",
        "new",
        "usw2-az2 (us-west-2a) is not enabled",
        "--group-name group-1 --opt-in-status opted-in",
        {
            ("ec2", "describe_availability_zones"): {
                "AvailabilityZones": [
                    {
                        "ZoneId": id,
                        "ZoneName": name,
                        "State": "available",
                        "GroupName": "group-1",
                        "OptInStatus": status,
                    }
                    for id, name, status in (
                        ("usw2-az2", "us-west-2a", "not-opted-in"),
                        ("usw2-az3", "us-west-2c", "opted-in"),
                    )
                ]
            }
        },
    ),
    Case(
        "PRE012",
        "new",
        "ml.p5en.48xlarge in usw2-az2; it offers ml.p5en.48xlarge in usw2-az1 and usw2-az3",
        "move the group",
        {
            ("ec2", "describe_instance_type_offerings"): {
                "InstanceTypeOfferings": [
                    {"InstanceType": name, "Location": zone}
                    for name, zone in (
                        ("p5en.48xlarge", "usw2-az1"),
                        ("p5en.48xlarge", "usw2-az3"),
                        ("m5.4xlarge", "usw2-az2"),
                        ("g5.48xlarge", "usw2-az3"),
                    )
                ]
            }
        },
    ),
    Case(
        "PRE012",
        "new",
        "in no zone of us-west-2; price lists show it in",
        "another type",
        {("ec2", "describe_instance_type_offerings"): {"InstanceTypeOfferings": []}},
    ),
    Case("PRE013", "new", "does not list fsx-lustre", "guide", {("ssm", "get_parameters"): {"Parameters": []}}),
    Case(
        "PRE020",
        "adopted",
        "no subnet subnet-22222222",
        "correct",
        {("ec2", "describe_subnets"): filtered("Subnets", [SUBNETS[0], SUBNETS[2]], "SubnetId")},
    ),
    *(
        Case(
            "PRE020",
            "adopted",
            says,
            mend,
            {("ec2", "describe_subnets"): filtered("Subnets", [wrong, *SUBNETS[1:]], "SubnetId")},
        )
        for wrong, says, mend in (
            (
                subnet(1, "usw2-az1"),
                "is in usw2-az1 (us-west-2a), and the file has it under usw2-az2",
                "move the entry",
            ),
            (subnet(1, "usw2-az2", VpcId="vpc-2"), "lies in vpc-2", "of that VPC"),
            (
                subnet(1, "usw2-az2", CidrBlock="10.9.0.0/20"),
                "has the range 10.9.0.0/20",
                "write nodes_cidr: 10.9.0.0/20",
            ),
        )
    ),
    Case(
        "PRE021",
        "adopted",
        "subnet-11111111 has 100 free addresses; new nodes take",
        "efa-only",
        {
            ("ec2", "describe_subnets"): filtered(
                "Subnets", [subnet(1, "usw2-az2", AvailableIpAddressCount=100), *SUBNETS[1:]], "SubnetId"
            )
        },
    ),
    Case(
        "PRE022",
        "adopted",
        "no security group sg-22222222",
        "correct",
        {
            ("ec2", "describe_security_groups"): filtered(
                "SecurityGroups", [security_group(1), security_group(3)], "GroupId"
            )
        },
    ),
    *(
        Case(
            "PRE022",
            "adopted",
            says,
            mend,
            {
                ("ec2", "describe_security_groups"): filtered(
                    "SecurityGroups", [wrong, security_group(2), security_group(3)], "GroupId"
                )
            },
        )
        for wrong, says, mend in (
            (security_group(1, VpcId="vpc-2"), "belongs to vpc-2", "of that VPC"),
            (security_group(1, IpPermissions=[]), "no inbound rule", "source sg-11111111"),
            (
                security_group(1, IpPermissionsEgress=[{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}]),
                "no outbound rule for all traffic to itself; EFA cannot",
                "destination sg-11111111",
            ),
        )
    ),
    Case("PRE023", "adopted", "has no route to 0.0.0.0/0", "NAT gateway", {("ec2", "describe_route_tables"): route()}),
    Case(
        "PRE023",
        "adopted",
        "subnet-11111111 is public (default route igw-1)",
        "private subnet",
        {("ec2", "describe_route_tables"): route(GatewayId="igw-1")},
    ),
    Case(
        "PRE023",
        "adopted",
        "leads nowhere",
        "rtb-22222222",
        {("ec2", "describe_route_tables"): route(NatGatewayId="nat-1", State="blackhole")},
    ),
    Case(
        "PRE024",
        "closed",
        "no available endpoint of com.amazonaws.us-west-2.sts",
        "with private DNS",
        {("ec2", "describe_vpc_endpoints"): {"VpcEndpoints": [endpoint(name) for name in SERVICES if name != "sts"]}},
    ),
    Case(
        "PRE024",
        "closed",
        "vpce-sts of com.amazonaws.us-west-2.sts has no private DNS names",
        "turn",
        {
            ("ec2", "describe_vpc_endpoints"): {
                "VpcEndpoints": [endpoint(name, PrivateDnsEnabled=name != "sts") for name in SERVICES]
            }
        },
    ),
    Case(
        "PRE024",
        "closed",
        "vpce-sts (com.amazonaws.us-west-2.sts) does not let sg-11111111 in",
        "allow port 443 from sg-11111111 in sg-44444444",
        {
            ("ec2", "describe_security_groups"): filtered(
                "SecurityGroups",
                [security_group(1), security_group(2), security_group(3), security_group(4)],
                "GroupId",
            )
        },
    ),
    Case(
        "PRE025",
        "adopted",
        "enableDnsHostnames of vpc-11111111 is off",
        "--enable-dns-hostnames",
        {("ec2", "describe_vpc_attribute"): attribute_off("enableDnsHostnames")},
    ),
    Case(
        "PRE030",
        "new",
        "'ml.p5en.48xlarge for cluster usage' is 5; 4 instances are wanted beside 2 elsewhere in the account, 6 in all",
        f"{IN_ALL} sagemaker --quota-code L-12345678 --desired-value 6",
        {QUOTA: quotas({"ml.p5en.48xlarge for cluster usage": 5}), **clusters("other")},
    ),
    Case(
        "PRE030",
        "new",
        "'ml.g5.48xlarge for cluster spot instance usage' is 0; 2 instances",
        "--desired-value 2",
        {QUOTA: quotas({"ml.g5.48xlarge for cluster spot instance usage": 0})},
    ),
    Case(
        "PRE031",
        "new",
        "is 7; 8 instances",
        "--desired-value 8",
        {QUOTA: quotas({"Maximum number instances allowed per SageMaker HyperPod cluster": 7})},
    ),
    Case(
        "PRE032",
        "adopted",
        "is 100; 500 GB",
        "--desired-value 500",
        {QUOTA: quotas({"Maximum size of EBS volume in GB for a SageMaker HyperPod cluster instance": 100})},
    ),
    Case(
        "PRE033",
        "new",
        "'EC2-VPC Elastic IPs' is 1; 2 Elastic IP addresses are wanted",
        f"{IN_ALL} ec2",
        {QUOTA: quotas({"EC2-VPC Elastic IPs": 1})},
    ),
    Case(
        "PRE033",
        "new",
        "'VPCs per Region' is 1; 1 VPCs are wanted beside 1",
        "vpc",
        {QUOTA: quotas({"VPCs per Region": 1})},
    ),
    Case(
        "PRE034",
        "new",
        "'Lustre Persistent_2 storage capacity' is 1,200",
        f"{IN_ALL} fsx",
        {QUOTA: quotas({"Lustre Persistent_2 storage capacity": 1200})},
    ),
    Case(
        "PRE035",
        "new",
        "across training plans per Region' is 10; 4 instances are wanted beside 8",
        "--desired-value 12",
        {
            QUOTA: quotas(
                {"Number of ml.p5en.48xlarge instances in reserved capacity across training plans per Region": 10}
            ),
            ("sagemaker", "list_training_plans"): summary(),
        },
    ),
    Case(
        "PRE040",
        "adopted",
        f"no training plan {PLAN}",
        "podwright capacity reserve",
        {("sagemaker", "describe_training_plan"): refusal("ResourceNotFound")},
    ),
    Case(
        "PRE041",
        "adopted",
        "q1 is in usw2-az1, and the file says usw2-az2",
        "either write zone: usw2-az1 and add usw2-az1 to network.zones, with the file system of its groups there too; "
        "or reserve another plan in usw2-az2",
        {("sagemaker", "describe_training_plan"): plan(zone="usw2-az1")},
    ),
    *(
        Case("PRE042", "adopted", says, mend, {("sagemaker", "describe_training_plan"): plan(**changed)})
        for says, mend, changed in (
            ("q1 is Failed (payment)", "another plan", {"Status": "Failed", "StatusMessage": "payment"}),
            ("bought for training-job", "hyperpod-cluster", {"TargetResources": ["training-job"]}),
            ("groups want 4 instances of q1, which has 3", "lower", {"TotalInstanceCount": 3}),
            ("others use 6 of 8", "take what", {"AvailableInstanceCount": 2}),
            ("count of q1 is 8 in the file and 16 in AWS", "write count: 16", {"TotalInstanceCount": 16}),
        )
    ),
    Case(
        "PRE042",
        "adopted",
        "h200 has ml.p5.48xlarge; q1 holds ml.p5en.48xlarge",
        "plan's type",
        more="instance_groups: {h200: {instance_type: ml.p5.48xlarge}}",
    ),
    Case(
        "PRE043",
        "adopted",
        "q1 is Scheduled: its capacity comes on 2026-12-04 12:00 UTC, in 13 days",
        "min_count: 0",
        {
            ("sagemaker", "describe_training_plan"): plan(
                Status="Scheduled", StartTime=datetime(2026, 12, 4, 12, tzinfo=UTC)
            )
        },
    ),
    Case(
        "PRE043",
        "adopted",
        "q1 ends on 2026-11-24 11:30 UTC, in 2 days; its instances go 30 minutes before",
        "capacity extend example q1",
        {("sagemaker", "describe_training_plan"): plan(EndTime=datetime(2026, 11, 24, 11, 30, tzinfo=UTC))},
    ),
    Case(
        "PRE044",
        "new",
        "there is a plan example-q2 already (Scheduled",
        f"write arn: {PLAN}",
        {("sagemaker", "list_training_plans"): summary(TrainingPlanName="example-q2", Status="Scheduled")},
    ),
    Case(
        "PRE050", "adopted", "no bucket checkpoints", "create it", {("s3", "head_bucket"): only_bucket("checkpoints")}
    ),
    Case(
        "PRE050",
        "adopted",
        "datasets is in us-east-1, and FSx",
        "use a bucket in us-west-2",
        {
            ("s3", "head_bucket"): lambda **request: {
                "BucketRegion": "us-east-1" if request["Bucket"] == "datasets" else REGION
            }
        },
    ),
    *(
        Case("PRE051", "adopted", says, mend, {("fsx", "describe_file_systems"): {"FileSystems": [wrong]}})
        for wrong, says, mend in (
            (file_system(Lifecycle="FAILED"), "has FAILED where AVAILABLE is expected", "correct"),
            (file_system(SubnetIds=["subnet-22222222"]), "is in usw2-az3, and the file has", "write zone: usw2-az3"),
            (file_system(LustreConfiguration={"MountName": "fsxmount"}), "was made without EFA", "write efa: false"),
            (
                file_system(LustreConfiguration={"MountName": "other", "EfaEnabled": True}),
                "has other where fsxmount is expected",
                "correct",
            ),
        )
    ),
    Case(
        "PRE051",
        "adopted",
        "no file system fs-11111111",
        "correct",
        {("fsx", "describe_file_systems"): refusal("FileSystemNotFound")},
    ),
    Case("PRE052", "adopted", "no key", "correct", {("kms", "describe_key"): refusal("NotFoundException")}),
    *(
        Case("PRE052", "adopted", says, mend, {("kms", "describe_key"): metadata(**changed)})
        for changed, says, mend in (
            ({"KeyState": "PendingDeletion"}, "is PendingDeletion; needed: Enabled", "cancel its deletion"),
            ({"KeyManager": "AWS"}, "is AWS; needed: CUSTOMER", "a key of yours"),
        )
    ),
    Case(
        "PRE053",
        "adopted",
        "leaves kms:CreateGrant to no IAM policy of the account",
        f"arn:aws:iam::{ACCOUNT}:root",
        {("kms", "get_key_policy"): {"Policy": '{"Statement": []}'}},
    ),
    Case(
        "PRE053",
        "new",
        "does not let logs.us-west-2.amazonaws.com use it",
        "flow_logs_days: 0",
        more=f"storage: {{kms_key: {KEY}}}",
    ),
    Case(
        "PRE054",
        "adopted",
        "no s3://sagemaker-own/scripts/on_create.sh",
        "upload the whole folder",
        {("s3", "head_object"): refusal("404")},
    ),
    Case(
        "PRE055",
        "new",
        f"bucket sagemaker-example-{ACCOUNT}-us-west-2 is there already",
        "adopt it with",
        {("s3", "head_bucket"): {"BucketRegion": REGION}},
    ),
    Case(
        "PRE060",
        "new",
        "no cluster of Kubernetes 1.34; it offers 1.35",
        "choose one",
        {
            ("eks", "describe_cluster_versions"): {
                "clusterVersions": [
                    {"clusterVersion": "1.34", "versionStatus": "UNSUPPORTED"},
                    {"clusterVersion": "1.35", "versionStatus": "STANDARD_SUPPORT"},
                ]
            }
        },
    ),
    Case(
        "PRE061",
        "new",
        "standard support of Kubernetes 1.34 ends on 2026-12-02",
        "later version",
        {
            ("eks", "describe_cluster_versions"): {
                "clusterVersions": [
                    {"clusterVersion": "1.34", "endOfStandardSupportDate": datetime(2026, 12, 2, tzinfo=UTC)}
                ]
            }
        },
    ),
    Case(
        "PRE062",
        "new",
        "EKS has no coredns v1.13.2-eksbuild.7 for Kubernetes 1.34; it has v9.9.9-eksbuild.1",
        "addons: {coredns: v9.9.9-eksbuild.1}",
        {("eks", "describe_addon_versions"): addon_versions("v9.9.9-eksbuild.1")},
    ),
    Case(
        "PRE063",
        "adopted",
        "no EKS cluster shared",
        "correct",
        {("eks", "describe_cluster"): refusal("ResourceNotFoundException")},
    ),
    *(
        Case("PRE063", "adopted", says, mend, {("eks", "describe_cluster"): eks_cluster(**changed)})
        for changed, says, mend in (
            ({"version": "1.31"}, "has 1.31 where 1.34 is expected", "write 1.31"),
            ({"status": "DELETING"}, "has DELETING where ACTIVE is expected", "DELETING"),
            ({"accessConfig": {"authenticationMode": "CONFIG_MAP"}}, "ConfigMap alone", "API_AND_CONFIG_MAP"),
        )
    ),
    Case("PRE064", "adopted", "belongs to the HyperPod cluster other", "another EKS", clusters("other", stated=EKS)),
    Case("PRE065", "adopted", "has a Kueue of its own", "remove Kueue", groups=("apps", "kueue.x-k8s.io")),
    Case(
        "PRE065", "adopted", "has training operators already", "dependencies_installed: true", groups=("kubeflow.org",)
    ),
    Case(
        "PRE066",
        "new",
        "there is a HyperPod cluster example already (InService)",
        "another name",
        {("sagemaker", "describe_cluster"): hyperpod("example")},
    ),
    Case("PRE070", "adopted", "no image ami-11111111", "copy", {("ec2", "describe_images"): {"Images": []}}),
    Case(
        "PRE070",
        "adopted",
        "is for arm64, and the group's types are x86_64",
        "x86_64",
        {
            ("ec2", "describe_images"): {
                "Images": [{"ImageId": "ami-11111111", "State": "available", "Architecture": "arm64"}]
            }
        },
    ),
    Case(
        "PRE070",
        "adopted",
        "has an encrypted snapshot",
        "root_kms_key",
        {
            ("ec2", "describe_images"): {
                "Images": [
                    {
                        "ImageId": "ami-11111111",
                        "State": "available",
                        "Architecture": "x86_64",
                        "BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": {"Encrypted": True}}],
                    }
                ]
            }
        },
    ),
    Case(
        "PRE071",
        "adopted",
        "nodes of h200 have release 1.10.0, the file has 1.2.3: a deployment gives them an older image",
        "write the release",
        {("sagemaker", "describe_cluster"): hyperpod("example", CurrentImageReleaseVersion="1.10.0")},
    ),
    Case(
        "PRE071",
        "adopted",
        "the image of h200 is SecurityUpdateRequired",
        "patching",
        {("sagemaker", "describe_cluster"): hyperpod("example", ImageVersionStatus="SecurityUpdateRequired")},
    ),
    Case(
        "PRE072",
        "closed",
        "is not in the registry",
        "podwright images mirror example",
        {("ecr", "describe_images"): refusal("ImageNotFoundException")},
    ),
    Case(
        "PRE073",
        "slurm",
        f"secret {SECRET} is not there",
        "correct its ARN",
        {("secretsmanager", "describe_secret"): refusal("ResourceNotFoundException")},
    ),
    Case("PRE073", "slurm", "there is no topic", "create it", {("sns", "get_topic_attributes"): refusal("NotFound")}),
]


@cache
def examined(case: Case) -> tuple[Outcome, World]:
    """What the case's check says, and the world that it was asked in."""
    world = World(case.changed)
    found = examine(world, BASES[case.base], case.id, more=case.more, groups=case.groups, lock=MIRROR)
    return found[0], world


@cache
def good(base: str) -> tuple[list[Outcome], World]:
    """What all checks say of an environment in a world where nothing is wrong."""
    world = World()
    return examine(world, BASES[base], groups=("apps",), lock=MIRROR), world


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.id} {case.says}")
def test_speaks_with_its_mend(case: Case) -> None:
    found, _ = examined(case)
    assert found.status == "found"
    fitting = [item for item in found.findings if case.says in item.message and case.mend in item.hint]
    assert fitting, [f"{item.message} → {item.hint}" for item in found.findings]
    assert {item.id for item in found.findings} == {case.id}
    assert {item.level for item in found.findings} == {preflight_checks()[case.id].level}


@pytest.mark.parametrize("base", BASES)
def test_is_quiet_where_nothing_is_wrong(base: str) -> None:
    found, _ = good(base)
    assert [(item.id, item.message) for each in found for item in each.findings] == []
    assert [(each.check.id, each.skipped) for each in found if each.skipped] == []


def test_every_check_looks_at_something_in_a_good_world() -> None:
    """Else its silence there would prove nothing."""
    looked = {each.check.id for base in BASES for each in good(base)[0] if each.status == "ok"}
    # Releases are those of nodes, and the cluster is not there yet.
    assert set(CHECKS) - looked == {"PRE071"}


def test_every_check_has_a_case_a_page_and_a_list_of_calls() -> None:
    assert set(CHECKS) == set(preflight_checks()) == {case.id for case in CASES}
    assert len(CHECKS) >= 20
    for id, about in preflight_checks().items():
        assert all(action in explain(id) for action in about.actions)
        assert about.sources


def calls() -> Iterator[tuple[str, str, str]]:
    """Check, service and operation of every call in all worlds, good and bad."""
    for world in (*(good(base)[1] for base in BASES), *(examined(case)[1] for case in CASES)):
        yield from ((id, service, operations(service)[operation].name) for id, service, operation in world.calls)


def test_only_reads() -> None:
    names = {(service, name) for _, service, name in calls()}
    assert len(names) > 30
    assert [name for _, name in names if not name.startswith(("Describe", "Get", "List", "Head", "Simulate"))] == []


def test_asks_for_what_its_page_names() -> None:
    """So whoever has the permissions of the page is never told that one is missing."""
    prefixes, renamed = {"service-quotas": "servicequotas"}, {"HeadBucket": "ListBucket", "HeadObject": "ListBucket"}
    stray = {
        (id, action)
        for id, service, name in calls()
        if (action := f"{prefixes.get(service, service)}:{renamed.get(name, name)}")
        not in preflight_checks()[id].actions
    }
    assert stray == set()
