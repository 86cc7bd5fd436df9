"""An account in memory for preflight's checks: answers by service and operation, held to the shapes of botocore.

The account of `answers()` has nothing wrong for the environments below; a test changes one answer and looks.
"""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import botocore.session
from botocore import xform_name
from botocore.exceptions import ClientError
from botocore.validate import ParamValidator

from podwright.config.artifacts import LOCK
from podwright.config.catalog import catalog
from podwright.config.endpoints import services
from podwright.config.load import LoadedEnvironment
from podwright.config.source import parse_source
from podwright.operations.preflight.check import CHECKS, Ask, Outcome, run_checks
from podwright.operations.preflight.quota_codes import Codes
from podwright.operations.preflight.reader import Reader
from rule_pages import loaded, overlaid

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
ACCOUNT, REGION = "111122223333", "us-west-2"
KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/11111111-2222-3333-4444-555555555555"
PLAN = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-plan/q1"
EKS = f"arn:aws:eks:{REGION}:{ACCOUNT}:cluster/shared"
SECRET = f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:slurm-AbCdEf"
TOPIC = f"arn:aws:sns:{REGION}:{ACCOUNT}:failover"
DIGEST = f"sha256:{'0' * 64}"

for module in ("account", "place", "network", "quota", "plan", "storage", "eks", "image"):
    import_module(f"podwright.operations.preflight.{module}_checks")

NEW = """
storage: {lustre: {zone: usw2-az2, efa: true, throughput: 500}, home: {openzfs: {}}}
training_plans: {q2: {zone: usw2-az2, instance_type: ml.p5en.48xlarge, count: 4, days: 28, start_after: 2026-12-01}}
instance_groups: {spot: {instance_type: ml.g5.48xlarge, count: 2, zone: usw2-az3, capacity: spot}}
tags: {team: platform}
"""
"""Everything made by podwright."""

ADOPTED = f"""
iam: {{permissions_boundary: "arn:aws:iam::{ACCOUNT}:policy/Boundary"}}
network:
  vpc:
    id: vpc-11111111
    cidr: 10.16.0.0/16
    security_group: sg-11111111
    subnets:
      usw2-az2: {{nodes: subnet-11111111, nodes_cidr: 10.16.0.0/20, control_plane: subnet-33333333}}
      usw2-az3: {{nodes: subnet-22222222, nodes_cidr: 10.16.16.0/20}}
storage:
  kms_key: {KEY}
  buckets: {{lifecycle: sagemaker-scripts, checkpoints: checkpoints}}
  lustre:
    existing: {{id: fs-11111111, mount_name: fsxmount, security_group: sg-22222222}}
    repositories: [{{path: /datasets, s3: s3://datasets}}]
    backups: null
cluster:
  eks:
    existing: {{name: shared, security_group: sg-33333333, kubectl_role: "arn:aws:iam::{ACCOUNT}:role/Kubectl"}}
training_plans: {{q1: {{arn: "{PLAN}", zone: usw2-az2, count: 8}}}}
instance_groups:
  h200:
    capacity: {{training_plan: q1}}
    volumes: [{{size_gib: 500}}]
    image_id: ami-11111111
    image_release: 1.2.3
    role: arn:aws:iam::{ACCOUNT}:role/Nodes
    lifecycle: {{source: s3://sagemaker-own/scripts, on_create: on_create.sh}}
    patching: {{strategy: when_idle, rollback_alarms: [too-hot]}}
governance: {{teams: {{research: {{quota: {{h200: 2}}}}}}}}
"""
"""As much as can be adopted."""

CLOSED = f"{ADOPTED}\n".replace("network:\n", "network:\n  endpoints: closed\n")

SLURM = f"""
cluster:
  eks: null
  orchestrator: slurm
  slurm:
    failover_topic: {TOPIC}
    accounting: {{existing: {{endpoint: db.example.com, secret: "{SECRET}"}}}}
instance_groups: {{controller: {{instance_type: ml.m5.4xlarge, count: 1, zone: usw2-az2}}}}
"""


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


SERVICES = services(("nodes", "kubectl", "nodes_ready", "runner", "lustre"))
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
        ("eks", "describe_cluster"): eks_cluster(),
        ("eks", "list_addons"): {"addons": ["vpc-cni", "kube-proxy", "eks-pod-identity-agent"]},
        ("ecr", "describe_images"): {"imageDetails": []},
        ("secretsmanager", "describe_secret"): {"Name": "slurm"},
        ("sns", "get_topic_attributes"): {"Attributes": {}},
    }


def addon_versions(*versions: str) -> dict[str, Any]:
    """Versions of whichever add-on is asked for; those that podwright pins when none are given."""
    from podwright.config.addons import addon_pins

    there = versions or tuple(pin.version for pin in addon_pins())
    return {"addons": [{"addonVersions": [{"addonVersion": version} for version in there]}]}


class World:
    """Clients of the account. `calls` are the operations that were called, each with its check (the thread)."""

    def __init__(self, changed: Mapping[tuple[str, str], Any] | None = None) -> None:
        self.answers = answers() | dict(changed or {})
        self.calls: set[tuple[str, str, str]] = set()

    def client(self, service: str) -> "Client":
        """A client with the operations that checks call."""
        return Client(self, service)

    def answer(self, service: str, operation: str, request: dict[str, Any]) -> list[dict[str, Any]]:
        """The pages of an answer, request and answer held to the service's model."""
        self.calls.add((threading.current_thread().name, service, operation))
        shapes = operations(service)[operation]
        assert not (report := ParamValidator().validate(request, shapes.input_shape).generate_report()), report
        kept: Any = self.answers[service, operation]
        answer: Any = kept(**request) if callable(kept) else kept
        if isinstance(answer, Exception):
            raise answer
        pages: list[dict[str, Any]] = answer if isinstance(answer, list) else [answer]
        for page in pages:
            assert not (report := ParamValidator().validate(page, shapes.output_shape).generate_report()), report
        return _parsed(deepcopy(pages))


class Client:
    """A client of one service, with paginators."""

    def __init__(self, world: World, service: str) -> None:
        self._world, self._service = world, service

    def __getattr__(self, operation: str) -> Callable[..., dict[str, Any]]:
        return lambda **request: self._world.answer(self._service, operation, request)[0]

    def get_paginator(self, operation: str) -> Any:
        """Pages of an operation that has them."""
        model: Any = botocore.session.get_session().get_paginator_model(self._service)
        model.get_paginator(operations(self._service)[operation].name)

        def paginate(**request: Any) -> Iterator[dict[str, Any]]:
            yield from self._world.answer(self._service, operation, request)

        return type("Paginator", (), {"paginate": staticmethod(paginate)})


@cache
def operations(service: str) -> dict[str, Any]:
    """The operations of a service as boto3 calls them."""
    model: Any = botocore.session.get_session().get_service_model(service)
    return {xform_name(name): model.operation_model(name) for name in model.operation_names}


def _parsed(pages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Policies of roles as boto3 hands them out: parsed."""
    for page in pages:
        if "Role" in page:
            page["Role"]["AssumeRolePolicyDocument"] = json.loads(page["Role"]["AssumeRolePolicyDocument"])
    return pages


def examine(
    world: World,
    piece: str,
    *only: str,
    more: str = "{}",
    groups: tuple[str, ...] = (),
    lock: str = "",
    codes: Codes | None = None,
    seen: Codes | None = None,
    seconds: float = 60,
) -> list[Outcome]:
    """What the checks (or `only` some) say of an environment in a world; `groups` are the APIs of its Kubernetes.

    `lock` is the project's artifacts.lock; `codes` of quotas are those of earlier runs, `seen` takes those of this one.
    """
    example = environment(piece, more)
    with TemporaryDirectory() as folder:
        (Path(folder) / LOCK).write_text(lock or "{}")
        ask = Ask(
            environment=example.environment,
            account=ACCOUNT,
            types=catalog(),
            aws=Reader(world.client),
            project=Path(folder),
            now=NOW,
            api_groups=lambda cluster: list(groups),
            quota_codes=codes or {},
            seen_codes={} if seen is None else seen,
        )
        return run_checks(ask, example.source, seconds, set(CHECKS) - set(only or CHECKS))


@cache
def environment(piece: str, more: str = "{}") -> LoadedEnvironment:
    """The environment that pages of rules start from, with a piece laid over it, and another one over that."""
    return loaded(json.dumps(overlaid(parse_source(piece, "piece").data, parse_source(more, "more").data)))
