"""What an account answers to preflight's checks: the answers of one in which nothing is wrong, and their parts."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import ClientError

from podwright.planning.kubernetes.addons import addon_pins
from podwright.planning.network.endpoints import services

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
ACCOUNT, REGION = "111122223333", "us-west-2"
KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/11111111-2222-3333-4444-555555555555"
PLAN = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-plan/q1"
EKS = f"arn:aws:eks:{REGION}:{ACCOUNT}:cluster/shared"
WORKSPACE = "ws-0a1b2c3d-1111-2222-3333-444455556666"
GRAFANA = "g-0123456789"
GRAFANA_ROLE = f"arn:aws:iam::{ACCOUNT}:role/Grafana"
SECRET = f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:slurm-AbCdEf"
TOPIC = f"arn:aws:sns:{REGION}:{ACCOUNT}:failover"
DIGEST = f"sha256:{'0' * 64}"


def trust(service: str) -> str:
    """A trust policy as IAM keeps it."""
    statement = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": service}}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def role(**request: Any) -> dict[str, Any]:
    """Every role that is asked for, taken on by whoever does."""
    name = request["RoleName"]
    service = {"Nodes": "sagemaker.amazonaws.com", "Kubectl": "lambda.amazonaws.com"}.get(name, "ec2.amazonaws.com")
    return {
        "Role": {
            "Path": "/",
            "RoleName": name,
            "RoleId": "AROAEXAMPLEEXAMPLE",
            "Arn": f"arn:aws:iam::{ACCOUNT}:role/{name}",
            "CreateDate": NOW,
            "AssumeRolePolicyDocument": trust(service),
        }
    }


def refusal(code: str, status: int = 400) -> ClientError:
    """A refusal with an error code."""
    response: Any = {"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(response, "Operation")


def simulated(**request: Any) -> dict[str, Any]:
    """Everything allowed."""
    return {
        "EvaluationResults": [{"EvalActionName": name, "EvalDecision": "allowed"} for name in request["ActionNames"]]
    }


def quota(name: str, value: float) -> dict[str, Any]:
    """A quota as Service Quotas lists it."""
    return {"QuotaName": name, "Value": value, "QuotaCode": "L-12345678"}


def quotas(changed: Mapping[str, float] | None = None) -> Callable[..., dict[str, Any]]:
    """All quotas, at 100 unless changed."""
    names = {
        "sagemaker": [
            *(f"{name} for cluster usage" for name in ("ml.m5.4xlarge", "ml.p5en.48xlarge")),
            "ml.g5.48xlarge for cluster spot instance usage",
            "Maximum number instances allowed per SageMaker HyperPod cluster",
            "Total number of instances allowed across SageMaker HyperPod clusters",
            "Total number of Spot instances allowed across SageMaker HyperPod clusters",
            "Maximum size of EBS volume in GB for a SageMaker HyperPod cluster instance",
            "Number of ml.p5en.48xlarge instances in reserved capacity across training plans per Region",
            "Number of training plans per Region",
        ],
        "vpc": ["VPCs per Region"],
        "ec2": ["EC2-VPC Elastic IPs"],
        "fsx": ["Lustre Persistent_2 storage capacity", "Lustre Persistent_2 file systems"],
    }
    usual = {"Maximum size of EBS volume in GB for a SageMaker HyperPod cluster instance": 1024.0}
    usual["Lustre Persistent_2 storage capacity"] = 100800.0
    usual |= changed or {}

    def answer(**request: Any) -> dict[str, Any]:
        return {"Quotas": [quota(name, usual.get(name, 100.0)) for name in names[request["ServiceCode"]]]}

    return answer


def subnet(number: int, zone: str, **changed: Any) -> dict[str, Any]:
    """An existing subnet."""
    return {
        "SubnetId": f"subnet-{str(number) * 8}",
        "VpcId": "vpc-11111111",
        "AvailabilityZoneId": zone,
        "AvailabilityZone": f"us-west-2{'abc'[int(zone[-1]) - 1]}",
        "CidrBlock": f"10.16.{16 * (number - 1)}.0/20",
        "AvailableIpAddressCount": 4000,
    } | changed


def security_group(number: int, **changed: Any) -> dict[str, Any]:
    """A security group whose members talk among themselves."""
    id = f"sg-{str(number) * 8}"
    itself = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": id}]}]
    return {"GroupId": id, "VpcId": "vpc-11111111", "IpPermissions": itself, "IpPermissionsEgress": itself} | changed


def filtered(key: str, rows: list[dict[str, Any]], id: str) -> Callable[..., dict[str, Any]]:
    """Those of the rows whose ids the request's filter names."""
    return lambda **request: {key: [row for row in rows if row[id] in request["Filters"][0]["Values"]]}


def plan(**changed: Any) -> dict[str, Any]:
    """An active training plan of eight instances."""
    capacity = {
        "ReservedCapacityArn": f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:reserved-capacity/aaaaaaaa-bbbb-cccc-dddd",
        "InstanceType": "ml.p5en.48xlarge",
        "TotalInstanceCount": 8,
        "Status": "Active",
        "AvailabilityZoneId": changed.pop("zone", "usw2-az2"),
        "StartTime": changed.get("StartTime", NOW),
    }
    return {
        "TrainingPlanArn": PLAN,
        "TrainingPlanName": "q1",
        "Status": "Active",
        "TotalInstanceCount": 8,
        "AvailableInstanceCount": 8,
        "TargetResources": ["hyperpod-cluster"],
        "EndTime": datetime(2027, 3, 1, tzinfo=UTC),
        "ReservedCapacitySummaries": [capacity],
    } | changed


def hyperpod(name: str, stated: str | None = None, **group: Any) -> dict[str, Any]:
    """A HyperPod cluster with one group."""
    default = {"InstanceGroupName": "h200", "InstanceType": "ml.p5en.48xlarge", "CurrentCount": 2, "TargetCount": 2}
    return {
        "ClusterArn": f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:cluster/abcdefghijkl",
        "ClusterName": name,
        "ClusterStatus": "InService",
        "InstanceGroups": [default | group],
        "Orchestrator": {"Eks": {"ClusterArn": stated or f"{EKS}-other"}},
    }


def eks_cluster(**changed: Any) -> dict[str, Any]:
    """The EKS cluster that is adopted."""
    network = {"clusterSecurityGroupId": "sg-33333333", "vpcId": "vpc-11111111"}
    return {
        "cluster": {
            "name": "shared",
            "arn": EKS,
            "version": "1.34",
            "status": "ACTIVE",
            "resourcesVpcConfig": network,
            "accessConfig": {"authenticationMode": "API"},
        }
        | changed
    }


def file_system(**changed: Any) -> dict[str, Any]:
    """The Lustre file system that is adopted."""
    return {
        "FileSystemId": "fs-11111111",
        "FileSystemType": "LUSTRE",
        "Lifecycle": "AVAILABLE",
        "VpcId": "vpc-11111111",
        "SubnetIds": ["subnet-11111111"],
        "StorageCapacity": 1200,
        "LustreConfiguration": {"MountName": "fsxmount", "DeploymentType": "PERSISTENT_2", "EfaEnabled": True},
    } | changed


def key_policy(*services: str) -> dict[str, Any]:
    """A key policy that leaves access to the account, and names services."""
    root = {"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}, "Action": "kms:*", "Resource": "*"}
    more = [{"Effect": "Allow", "Principal": {"Service": name}, "Action": ["kms:*"]} for name in services]
    return {"Policy": json.dumps({"Version": "2012-10-17", "Statement": [root, *more]})}


def endpoint(service: str, **changed: Any) -> dict[str, Any]:
    """A VPC endpoint."""
    kind = "Gateway" if service == "s3" else "Interface"
    return {
        "VpcEndpointId": f"vpce-{service}",
        "ServiceName": f"com.amazonaws.{REGION}.{service}",
        "VpcEndpointType": kind,
        "State": "available",
        "PrivateDnsEnabled": kind == "Interface",
        "Groups": [] if kind == "Gateway" else [{"GroupId": "sg-44444444"}],
    } | changed


def endpoint_services(*absent: str, **zones: tuple[str, ...]) -> Callable[..., dict[str, Any]]:
    """The endpoint services that are asked for, but for some, each in all zones or in those that are given."""
    everywhere = ("usw2-az1", "usw2-az2", "usw2-az3")

    def answer(**request: Any) -> dict[str, Any]:
        names = [name for name in request["Filters"][0]["Values"] if name.rpartition(".")[2] not in absent]
        details = [
            {
                "ServiceName": name,
                "ServiceType": [{"ServiceType": "Interface"}],
                "AvailabilityZoneIds": list(zones.get(name.rpartition(".")[2], everywhere)),
            }
            for name in names
        ]
        return {"ServiceNames": names, "ServiceDetails": details}

    return answer


SERVICES = services(("nodes", "kubectl", "nodes_ready", "runner", "lustre", "observability"))
SUBNETS = [subnet(1, "usw2-az2"), subnet(2, "usw2-az3"), subnet(3, "usw2-az2", CidrBlock="10.16.240.0/24")]
NAT = [{"DestinationCidrBlock": "0.0.0.0/0", "NatGatewayId": "nat-11111111", "State": "active"}]


def answers() -> dict[tuple[str, str], Any]:
    """What the account answers: a dict, several pages of them, something to call with the request, or an error."""
    zones = [
        {"ZoneId": f"usw2-az{number}", "ZoneName": f"us-west-2{letter}", "State": "available", "GroupName": "us-west-2"}
        for number, letter in ((1, "b"), (2, "a"), (3, "c"))
    ]
    offers = [("p5en.48xlarge", "usw2-az2"), ("m5.4xlarge", "usw2-az2"), ("g5.48xlarge", "usw2-az3")]
    https = {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, "UserIdGroupPairs": [{"GroupId": "sg-11111111"}]}
    groups = [*(security_group(number) for number in (1, 2, 3)), security_group(4, IpPermissions=[https])]
    return {
        ("ssm", "get_parameter"): {"Parameter": {"Value": "31"}},
        ("ssm", "get_parameters"): lambda **request: {"Parameters": [{"Name": name} for name in request["Names"]]},
        ("cloudformation", "describe_stacks"): refusal("ValidationError"),
        ("cloudformation", "describe_type"): {"TypeName": "AWS::Any::Type"},
        ("sts", "get_caller_identity"): {"Arn": f"arn:aws:sts::{ACCOUNT}:assumed-role/Admin/me"},
        ("iam", "get_role"): role,
        ("iam", "get_policy"): {"Policy": {"PolicyName": "Boundary"}},
        ("iam", "simulate_principal_policy"): simulated,
        ("ce", "list_cost_allocation_tags"): {
            "CostAllocationTags": [
                {"TagKey": key, "Type": "UserDefined", "Status": "Active"} for key in ("podwright:environment", "team")
            ]
        },
        ("cloudwatch", "describe_alarms"): {"MetricAlarms": [{"AlarmName": "too-hot"}]},
        ("ec2", "describe_availability_zones"): {"AvailabilityZones": zones},
        ("ec2", "describe_instance_type_offerings"): {
            "InstanceTypeOfferings": [{"InstanceType": name, "Location": zone} for name, zone in offers]
        },
        ("ec2", "describe_subnets"): filtered("Subnets", SUBNETS, "SubnetId"),
        ("ec2", "describe_security_groups"): filtered("SecurityGroups", groups, "GroupId"),
        ("ec2", "describe_route_tables"): {
            "RouteTables": [{"RouteTableId": "rtb-11111111", "Associations": [{"Main": True}], "Routes": NAT}]
        },
        ("ec2", "describe_vpc_endpoints"): {"VpcEndpoints": [endpoint(name) for name in SERVICES]},
        ("ec2", "describe_vpc_attribute"): lambda **request: {
            f"{request['Attribute'][0].upper()}{request['Attribute'][1:]}": {"Value": True}
        },
        ("ec2", "describe_vpc_endpoint_services"): endpoint_services(),
        ("ec2", "describe_vpcs"): {"Vpcs": [{"VpcId": "vpc-11111111"}]},
        ("ec2", "describe_addresses"): {"Addresses": []},
        ("ec2", "describe_images"): {
            "Images": [{"ImageId": "ami-11111111", "State": "available", "Architecture": "x86_64"}]
        },
        ("service-quotas", "list_service_quotas"): quotas(),
        ("service-quotas", "list_aws_default_service_quotas"): quotas(),
        ("service-quotas", "get_service_quota"): refusal("NoSuchResourceException"),
        ("service-quotas", "get_aws_default_service_quota"): refusal("NoSuchResourceException"),
        ("sagemaker", "list_clusters"): {"ClusterSummaries": []},
        ("sagemaker", "list_cluster_scheduler_configs"): {"ClusterSchedulerConfigSummaries": []},
        ("sagemaker", "list_compute_quotas"): {"ComputeQuotaSummaries": []},
        ("sagemaker", "describe_cluster"): refusal("ResourceNotFound"),
        ("sagemaker", "describe_training_plan"): plan(),
        ("sagemaker", "list_training_plans"): {"TrainingPlanSummaries": []},
        ("fsx", "describe_file_systems"): {"FileSystems": [file_system()]},
        ("s3", "head_bucket"): lambda **request: (
            refusal("404") if request["Bucket"].startswith("sagemaker-example") else {"BucketRegion": REGION}
        ),
        ("s3", "head_object"): {},
        ("kms", "describe_key"): {
            "KeyMetadata": {
                "KeyId": KEY[-36:],
                "KeyState": "Enabled",
                "KeyUsage": "ENCRYPT_DECRYPT",
                "KeySpec": "SYMMETRIC_DEFAULT",
                "KeyManager": "CUSTOMER",
            }
        },
        ("kms", "get_key_policy"): key_policy(),
        ("eks", "describe_cluster_versions"): {
            "clusterVersions": [
                {
                    "clusterVersion": version,
                    "versionStatus": "STANDARD_SUPPORT",
                    "endOfStandardSupportDate": datetime(2027, 6, 1, tzinfo=UTC),
                }
                for version in ("1.33", "1.34")
            ]
        },
        ("eks", "describe_addon_versions"): addon_versions(),
        ("eks", "describe_addon_configuration"): addon_schema({"type": "object"}),
        ("eks", "describe_cluster"): eks_cluster(),
        ("eks", "describe_addon"): {"addon": {"configurationValues": '{"enableNetworkPolicy": "true"}'}},
        ("eks", "list_addons"): {"addons": ["vpc-cni", "kube-proxy", "eks-pod-identity-agent"]},
        ("sso-admin", "list_instances"): identity_center("ACTIVE"),
        ("ecr", "describe_images"): {"imageDetails": []},
        ("secretsmanager", "describe_secret"): {"Name": "slurm"},
        ("sns", "get_topic_attributes"): {"Attributes": {}},
        ("amp", "describe_workspace"): prometheus_workspace("ACTIVE"),
        ("grafana", "describe_workspace"): grafana_workspace(),
    }


def identity_center(*statuses: str) -> dict[str, Any]:
    """Instances of IAM Identity Center in such states."""
    arn = "arn:aws:sso:::instance/ssoins-1234567890abcdef"
    return {"Instances": [{"InstanceArn": arn, "Status": status} for status in statuses]}


def prometheus_workspace(status: str) -> dict[str, Any]:
    """A Prometheus workspace."""
    described = {
        "workspaceId": WORKSPACE,
        "arn": f"arn:aws:aps:{REGION}:{ACCOUNT}:workspace/{WORKSPACE}",
        "status": {"statusCode": status},
        "createdAt": datetime(2026, 1, 1, tzinfo=UTC),
    }
    return {"workspace": described}


def grafana_workspace(**changes: Any) -> dict[str, Any]:
    """A Grafana workspace to which podwright can deliver, with changes."""
    described = {
        "id": GRAFANA,
        "status": "ACTIVE",
        "endpoint": f"{GRAFANA}.grafana-workspace.{REGION}.amazonaws.com",
        "grafanaVersion": "10.4",
        "workspaceRoleArn": GRAFANA_ROLE,
        "authentication": {"providers": ["AWS_SSO"]},
        "dataSources": ["PROMETHEUS"],
        "created": datetime(2026, 1, 1, tzinfo=UTC),
        "modified": datetime(2026, 1, 1, tzinfo=UTC),
    }
    return {"workspace": {name: value for name, value in (described | changes).items() if value is not None}}


def addon_versions(*versions: str) -> dict[str, Any]:
    """Versions of whichever add-on is asked for; those that podwright pins when none are given."""
    existing = versions or tuple(pin.version for pin in addon_pins())
    return {"addons": [{"addonVersions": [{"addonVersion": version} for version in existing]}]}


def addon_schema(schema: dict[str, Any]) -> Callable[..., dict[str, Any]]:
    """The schema of whichever add-on is asked for."""
    return lambda **request: {**request, "configurationSchema": json.dumps(schema)}


def clusters(name: str, **cluster: Any) -> dict[tuple[str, str], Any]:
    """The answers of an account with one more HyperPod cluster."""
    listed = {
        "ClusterName": name,
        "ClusterArn": f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:cluster/abcdefghijkl",
        "ClusterStatus": "InService",
        "CreationTime": datetime(2026, 1, 1, tzinfo=UTC),
    }
    actual = hyperpod(name, **cluster)
    return {
        ("sagemaker", "list_clusters"): {"ClusterSummaries": [listed]},
        ("sagemaker", "describe_cluster"): lambda **request: (
            actual if request["ClusterName"] == name else refusal("ResourceNotFound")
        ),
    }
