"""Wrong use from Python: each of these calls is refused with a finding, never with an error of our own insides.

A case is what differs from a cluster, file system or set of quotas that is right, and the id of the rule or the field
that the refusal has to name.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from pydantic import ValidationError

from podwright.config.errors import PodwrightError
from podwright.constructs.library import (
    AccountingDatabase,
    ClusterAutoscaling,
    ClusterObservability,
    EnvironmentNetwork,
    Governance,
    GroupSlurm,
    HyperPodCluster,
    InstanceGroup,
    Karpenter,
    Lustre,
    LustreFileSystem,
    Network,
    NodeSecurityGroup,
    Orchestrator,
    RestrictedInstanceGroup,
    Slurm,
    Team,
    TeamQuotas,
    TieredCheckpoints,
    TrainingPlanReference,
)

SYSTEM = {"instance_type": "ml.m5.4xlarge", "count": 2}
GPU = {"instance_type": "ml.p5.48xlarge", "count": 4}
ARN = "arn:aws:sagemaker:us-west-2:111122223333:cluster/0123456789ab"
SCALING = ClusterAutoscaling(karpenter=Karpenter(groups=("burst",), limits={"vcpu": 256}))
PLAN_ARN = "arn:aws:sagemaker:us-west-2:111122223333:training-plan/q1"


@dataclass(frozen=True)
class Given:
    """What the calls are made with."""

    stack: cdk.Stack
    vpc: ec2.IVpc
    subnet: ec2.ISubnet
    cluster: eks.ICluster


@pytest.fixture
def constructs(stack: cdk.Stack) -> Given:
    vpc = ec2.Vpc.from_vpc_attributes(
        stack, "Vpc", vpc_id="vpc-0123456789abcdef0", availability_zones=["us-west-2a"],
        private_subnet_ids=["subnet-0123456789abcdef0"],
    )  # fmt: skip
    subnet = ec2.Subnet.from_subnet_id(stack, "Subnet", "subnet-0123456789abcdef0")
    return Given(stack, vpc, subnet, eks.Cluster.from_cluster_attributes(stack, "Eks", cluster_name="given"))


def group(**fields: Any) -> Callable[[Given], Any]:
    """A cluster with a group `gpu` that has these fields."""

    def call(provided: Given) -> Any:
        groups = {"system": InstanceGroup(**SYSTEM), "gpu": InstanceGroup(**{**GPU, **fields})}
        return cluster(provided, instance_groups=groups)

    return call


def cluster(provided: Given, **arguments: Any) -> HyperPodCluster:
    orchestrator = Orchestrator.eks(provided.cluster, dependencies="installed", rules_exist=True)
    right = {
        "vpc": provided.vpc,
        "subnets": {"usw2-az2": provided.subnet},
        "orchestrator": orchestrator,
        "instance_groups": {"system": InstanceGroup(**SYSTEM)},
    }
    return HyperPodCluster(provided.stack, "Cluster", **{**right, **arguments})


def slurm(
    provided: Given, groups: dict[str, dict[str, Any]], settings: dict[str, Any] | None = None, **more: Any
) -> Any:
    made = {name: InstanceGroup(**{**SYSTEM, **fields}) for name, fields in groups.items()}
    return cluster(provided, instance_groups=made, orchestrator=Orchestrator.slurm(Slurm(**(settings or {}))), **more)


def lustre(provided: Given, **fields: Any) -> Any:
    settings = Lustre(**{"zone": "usw2-az2", **fields})
    return LustreFileSystem(provided.stack, "Lustre", settings=settings, vpc=provided.vpc, subnet=provided.subnet)


def quotas(provided: Given, **arguments: Any) -> Any:
    known = HyperPodCluster.from_cluster_attributes(
        provided.stack, "Prod", cluster_name="prod", cluster_arn=ARN, eks_cluster=provided.cluster
    )
    right = {
        "cluster": known,
        "instance_groups": {"system": InstanceGroup(**SYSTEM), "gpu": InstanceGroup(**GPU)},
        "governance": Governance(teams={"llm": Team(quota={"gpu": 2})}),
    }
    return TeamQuotas(provided.stack, "Quotas", **{**right, **arguments})


def network(provided: Given, **fields: Any) -> Any:
    settings = Network(**{"zones": ("usw2-az1", "usw2-az2"), **fields})
    return EnvironmentNetwork(provided.stack, "Network", settings=settings, features={"nodes"}, protection="retain")


def plan(provided: Given, zone: str = "usw2-az2", **known: Any) -> Any:
    training_plan_reference = TrainingPlanReference.from_training_plan_attributes(
        training_plan_arn=PLAN_ARN, zone=zone, **known
    )
    groups = {"system": InstanceGroup(**SYSTEM), "gpu": InstanceGroup(**GPU, capacity={"training_plan": "q1"})}
    return cluster(provided, instance_groups=groups, training_plans={"q1": training_plan_reference})


# Fields of an instance group with values that nobody can build.
FIELDS: dict[str, tuple[Any, ...]] = {
    "instance_type": (3, "", "p5.48xlarge", "ml.p5.96xlarge", "ml.P5.48xlarge", [], ["ml.p5.48xlarge"], {}),
    "count": (None, -1, 6759, 1.5, "two", [], {}),
    "zone": (3, "", "us-west-2a", "usw2-az9", "use1-az1", "az1", []),
    "threads_per_core": (0, 3, "one", -1, []),
    "volumes": (3, "500", [3], [{"size_gib": 0}], [{"size_gib": 16385}], [{"size": 5}], [{"size_gib": 9}] * 2),
    "deep_health_checks": (3, "stress", ["heat"], [3]),
    "capacity": (3, "reserved", {}, {"plan": "x"}, {"training_plan": "nobody"}, []),
    "role": (3, "Nodes", "arn:aws:iam::1:role/x", []),
    "instance_types": (3, "ml.p5.48xlarge", ["p5"], ["ml.p5.48xlarge"]),
    "min_count": (-1, 5, "many", [], 7000),
    "zones": (3, ["us-west-2a"], ["usw2-az9"], ["usw2-az2", "usw2-az2"]),
    "subnet_ids": (3, "subnet-1", ["vpc-0123456789abcdef0"]),
    "network_interface": (3, "ena", "EFA", []),
    "labels": (3, ["a"], {"a b": "c"}, {"a": 3.5j}, {"a": "b c"}),
    "taints": (3, ["a"], [{"key": "a"}], [{"key": "a", "effect": "Never"}], [{"key": "", "effect": "NoExecute"}]),
    "root_kms_key": (3, "alias/mine", []),
    "mount_lustre": (3, "perhaps", [], True),
    "mount_home": (3, "perhaps", [], True),
    "image_id": (3, "ami", "ami-XYZ", []),
    "image_release": (3, "latest", "1.2", []),
    "patching": (3, {}, {"strategy": "never"}, {"strategy": "when_idle", "batch": "0"}, []),
    "scheduled_update": (3, {}, {"schedule": "daily"}, {"schedule": "cron(0 4 ? * SUN *)", "batch": "200%"}, []),
    "lifecycle": (3, {}, {"source": "mine"}, {"source": "s3://mine/x"}, {"source": "s3://sagemaker-a/b"}, []),
    "slurm": (3, {}, {"node_type": "head"}, []),
    "benchmarks": (3, "yes", []),
    "colour": ("red", None),
}  # fmt: skip

LUSTRE: dict[str, tuple[Any, ...]] = {
    "zone": (None, 3, "us-west-2a", ""),
    "type": (3, "hdd", None),
    "capacity_gib": (0, 1000, 1300, "much", []),
    "throughput": (None, 100, 300, "fast"),
    "throughput_capacity": ("fast",),
    "read_cache": (3, {"mode": "big"}, {"size_gib": 1}),
    "efa": (3, "perhaps", []),
    "metadata_iops": (3, "many", 1000, None),
    "compression": (3, "zip"),
    "version": (3, "2.10"),
    "backups": (3, {"retention_days": 0}, {"start": "25:00"}),
    "repositories": (3, [{}], [{"path": "data", "s3": "s3://a/b"}], [{"path": "/data", "s3": "b"}]),
    "mount": (3, "fsx", "/", ""),
    "maintenance": (3, "8:04:00", "sunday"),
    "existing": (3, {}, {"id": "fs"}),
}  # fmt: skip


def calls() -> Iterator[Any]:
    """Every wrong call, with what its refusal has to name."""
    for field, values in FIELDS.items():
        for value in values:
            yield pytest.param(group(**{field: value}), field.removesuffix("s"), id=f"group-{field}-{value!r}")
    for field, values in LUSTRE.items():
        for value in values:
            yield pytest.param(partial(lustre, **{field: value}), field, id=f"lustre-{field}-{value!r}")
    for argument, values in ARGUMENTS.items():
        for value in values:
            yield pytest.param(partial(cluster, **{argument: value}), argument, id=f"cluster-{argument}-{value!r}")
    for name, (expected, call) in CLUSTERS.items():
        yield pytest.param(call, expected, id=name)


ARGUMENTS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("vpc", "orchestrator", "instance_groups"), (3, "text", True, None)),
    **dict.fromkeys(("subnets", "lustre", "training_plans", "home", "security_group"), (3, "text", True)),
}
CLUSTERS: dict[str, tuple[str, Callable[[Given], Any]]] = {
    "no groups": ("GRP040", lambda provided: cluster(provided, instance_groups={})),
    "groups are nothing": ("instance_groups", lambda provided: cluster(provided, instance_groups=None)),
    "groups are a list": ("instance_groups", lambda provided: cluster(provided, instance_groups=[1])),
    "group is nothing": ("instance_groups.a", lambda provided: cluster(provided, instance_groups={"a": None})),
    "group is a number": ("instance_groups.a", lambda provided: cluster(provided, instance_groups={"a": 3})),
    "group is a dict": (
        "instance_groups.a",
        lambda provided: cluster(provided, instance_groups={"a": {**SYSTEM, "cout": 3}}),
    ),
    "name of a group": (
        "instance_groups",
        lambda provided: cluster(provided, instance_groups={"a b": InstanceGroup(**SYSTEM)}),
    ),
    "name of a group is a number": (
        "instance_groups",
        lambda provided: cluster(provided, instance_groups={3: InstanceGroup(**SYSTEM)}),
    ),
    "another system group": ("GRP040", lambda provided: cluster(provided, system_group="other")),
    "system group is a number": ("system_group", lambda provided: cluster(provided, system_group=3)),
    "empty system group": (
        "GRP041",
        lambda provided: cluster(
            provided, instance_groups={"system": InstanceGroup(instance_type="ml.m5.4xlarge", count=0)}
        ),
    ),
    "restricted group of nothing": (
        "restricted_instance_groups",
        lambda provided: cluster(provided, restricted_instance_groups={"a": 3}),
    ),
    "restricted group elsewhere": (
        "NET002",
        lambda provided: cluster(
            provided, restricted_instance_groups={"a": RestrictedInstanceGroup(**GPU, zone="usw2-az3")}
        ),
    ),
    "restricted group without a type": (
        "GRP001",
        lambda provided: cluster(provided, restricted_instance_groups={"a": RestrictedInstanceGroup(count=1)}),
    ),
    "zone names of the VPC": ("subnets", lambda provided: cluster(provided, subnets=None)),
    "no subnets": ("zones", lambda provided: cluster(provided, subnets={})),
    "zone name": ("zones", lambda provided: cluster(provided, subnets={"us-west-2a": provided.subnet})),
    "zone of another region": ("NET001", lambda provided: cluster(provided, subnets={"use1-az1": provided.subnet})),
    "zone is a number": ("zones", lambda provided: cluster(provided, subnets={3: provided.subnet})),
    "subnet is text": ("subnets.usw2-az2", lambda provided: cluster(provided, subnets={"usw2-az2": "subnet-1"})),
    "subnet is nothing": ("subnets.usw2-az2", lambda provided: cluster(provided, subnets={"usw2-az2": None})),
    "name with a space": ("cluster.name", lambda provided: cluster(provided, cluster_name="my cluster")),
    "name too long": ("cluster.name", lambda provided: cluster(provided, cluster_name="a" * 64)),
    "name is a number": ("cluster_name", lambda provided: cluster(provided, cluster_name=3)),
    "recovery": ("node_recovery", lambda provided: cluster(provided, node_recovery="perhaps")),
    "recovery is true": ("node_recovery", lambda provided: cluster(provided, node_recovery=True)),
    "provisioning": ("provisioning", lambda provided: cluster(provided, provisioning="at once")),
    "autoscaling": ("autoscaling", lambda provided: cluster(provided, autoscaling="keda")),
    "autoscaling, the word": ("autoscaling", lambda provided: cluster(provided, autoscaling="karpenter")),
    "autoscaling without recovery": (
        "CLU010",
        lambda provided: cluster(provided, autoscaling=SCALING, node_recovery="none"),
    ),
    "checkpoints": ("tiered_checkpoints", lambda provided: cluster(provided, tiered_checkpoints="on")),
    "checkpoints of all memory": (
        "memory_percent",
        lambda provided: cluster(provided, tiered_checkpoints=TieredCheckpoints(memory_percent=101)),
    ),
    "software": ("node_software", lambda provided: cluster(provided, node_software=3)),
    "benchmarks": ("benchmarks", lambda provided: cluster(provided, benchmarks="all")),
    "restricted environment": ("restricted_environment", lambda provided: cluster(provided, restricted_environment=3)),
    "types": ("instance_types", lambda provided: cluster(provided, instance_types=3)),
    "facts of a type": (
        "instance_types",
        lambda provided: cluster(provided, instance_types={"ml.p5.48xlarge": {"colour": 3}}),
    ),
    "protection": ("protection", lambda provided: cluster(provided, protection="forever")),
    "accepts without a reason": (
        "acknowledge[0].reason",
        lambda provided: cluster(provided, acknowledge={"GRP044": "short"}),
    ),
    "accepts what nobody can": ("ENV011", lambda provided: cluster(provided, acknowledge={"NET002": "because we can"})),
    "accepts a rule that is not": (
        "ENV011",
        lambda provided: cluster(provided, acknowledge={"NET999": "because we can"}),
    ),
    "lustre is text": ("lustre.lustre", lambda provided: cluster(provided, lustre={"lustre": "fs-0123456789abcdef0"})),
    "lustre elsewhere": (
        "NET003",
        lambda provided: cluster(provided, lustre={"lustre": lustre(provided, zone="usw2-az3")}),
    ),
    "lustre with EFA and nobody near": (
        "NET009",
        lambda provided: cluster(provided, lustre={"lustre": lustre(provided, efa=True)}),
    ),
    "home is text": ("home", lambda provided: cluster(provided, home="fs")),
    "plan is text": ("training_plans.q1", lambda provided: cluster(provided, training_plans={"q1": PLAN_ARN})),
    "plan elsewhere": ("NET004", lambda provided: plan(provided, zone="usw2-az3")),
    "plan of another type": ("CAP", lambda provided: plan(provided, instance_type="ml.p5en.48xlarge")),
    "plan of fewer": ("CAP", lambda provided: plan(provided, count=1)),
    "plan of no count": ("count", lambda provided: plan(provided, count=0)),
    "plan is not an ARN": (
        "arn",
        lambda provided: TrainingPlanReference.from_training_plan_attributes(training_plan_arn="q1", zone="usw2-az2"),
    ),
    "added twice": ("ENV013", lambda provided: cluster(provided).add_instance_group("system", InstanceGroup(**SYSTEM))),
    "added elsewhere": (
        "NET002",
        lambda provided: cluster(provided).add_instance_group("a", InstanceGroup(**GPU, zone="usw2-az3")),
    ),
    "added nothing": ("group", lambda provided: cluster(provided).add_instance_group("a", None)),
    "added under no name": (
        "instance_groups",
        lambda provided: cluster(provided).add_instance_group("", InstanceGroup(**GPU)),
    ),
    "orchestrator of text": ("cluster", lambda provided: Orchestrator.eks("prod")),
    "orchestrator of nothing": ("cluster", lambda provided: Orchestrator.eks(None)),
    "chart that was not fetched": ("CHT001", lambda provided: Orchestrator.eks(provided.cluster)),
    "chart is text": ("dependencies", lambda provided: Orchestrator.eks(provided.cluster, dependencies="chart.zip")),
    "slurm of text": ("settings", lambda provided: Orchestrator.slurm("slurm")),
    "accounts without a database": (
        "accounting",
        lambda provided: Orchestrator.slurm(Slurm(accounting=AccountingDatabase())),
    ),
    "database without accounts": ("accounting", lambda provided: Orchestrator.slurm(accounting=3)),
    "slurm configuration": ("configuration", lambda provided: Orchestrator.slurm(Slurm(configuration="file"))),
    "slurm strategy": (
        "SLU006",
        lambda provided: slurm(provided, {"controller": {"count": 1}, "work": {}}, {"strategy": "managed"}),
    ),
    "slurm without a controller": ("SLU001", lambda provided: slurm(provided, {"work": {}})),
    "two controllers": ("SLU", lambda provided: slurm(provided, {"controller": {"count": 2}, "work": {}})),
    "controller in a partition": (
        "SLU",
        lambda provided: slurm(
            provided,
            {"controller": {"count": 1, "slurm": GroupSlurm(node_type="controller", partition="a")}, "work": {}},
        ),
    ),
    "labels with slurm": (
        "labels",
        lambda provided: slurm(provided, {"controller": {"count": 1}, "work": {"labels": {"a": "b"}}}),
    ),
    "security group is text": (
        "existing",
        lambda provided: NodeSecurityGroup(provided.stack, "Nodes", vpc=provided.vpc, existing="sg-1"),
    ),
    "security group without a VPC": ("vpc", lambda provided: NodeSecurityGroup(provided.stack, "Nodes", vpc=None)),
    "file system without settings": (
        "settings",
        lambda provided: LustreFileSystem(provided.stack, "L", settings=None, vpc=provided.vpc, subnet=provided.subnet),
    ),
    "file system without a subnet": (
        "subnet",
        lambda provided: LustreFileSystem(
            provided.stack, "L", settings=Lustre(zone="usw2-az2"), vpc=provided.vpc, subnet=None
        ),
    ),
    "file system without a VPC": (
        "vpc",
        lambda provided: LustreFileSystem(
            provided.stack, "L", settings=Lustre(zone="usw2-az2"), vpc=3, subnet=provided.subnet
        ),
    ),
    "quotas of text": ("cluster", lambda provided: quotas(provided, cluster="prod")),
    "quotas of unknown groups": ("instance_groups", lambda provided: quotas(provided, instance_groups=None)),
    "quotas of no groups": ("GRP040", lambda provided: quotas(provided, instance_groups={})),
    "quotas of other groups": (
        "GOV001",
        lambda provided: quotas(provided, governance=Governance(teams={"a": Team(quota={"b": 1})})),
    ),
    "quotas of nobody": ("engine", lambda provided: quotas(provided, governance=Governance())),
    "quotas of another engine": (
        "engine",
        lambda provided: quotas(provided, governance=Governance(engine="kai", teams={"llm": Team(quota={"gpu": 2})})),
    ),
    "quotas are text": ("governance", lambda provided: quotas(provided, governance="fair")),
    "quota of a team is text": ("quota", lambda provided: Governance(teams={"a": Team(quota="all")})),
    "unknown department": (
        "GOV029",
        lambda provided: quotas(provided, governance=Governance(teams={"a": Team(department="x", quota={"gpu": 1})})),
    ),
    "quotas on Slurm": (
        "GOV026",
        lambda provided: quotas(
            provided,
            cluster=HyperPodCluster.from_cluster_attributes(provided.stack, "S", cluster_name="s", cluster_arn=ARN),
        ),
    ),
    "observability of a cluster made elsewhere": (
        "cluster",
        lambda provided: ClusterObservability.for_cluster(
            provided.stack,
            "Watched",
            cluster=HyperPodCluster.from_cluster_attributes(provided.stack, "E", cluster_name="e", cluster_arn=ARN),
        ),
    ),
    "network of no VPC": (
        "vpc",
        lambda provided: EnvironmentNetwork.from_network_attributes(
            provided.stack, "N", vpc=None, node_subnets={}, node_security_group=provided.vpc
        ),
    ),
    "network of subnet ids": (
        "node_subnets.usw2-az2",
        lambda provided: EnvironmentNetwork.from_network_attributes(
            provided.stack,
            "N",
            vpc=provided.vpc,
            node_subnets=cast(Any, {"usw2-az2": "subnet-0"}),
            node_security_group=ec2.SecurityGroup.from_security_group_id(provided.stack, "G", "sg-0123456789abcdef0"),
        ),
    ),
    "network without zones": ("zones", lambda provided: network(provided, zones=())),
    "network of zone names": ("zones", lambda provided: network(provided, zones=("us-west-2a",))),
    "network of a small range": ("cidr", lambda provided: network(provided, cidr="10.0.0.0/28")),
    "network of no range": ("cidr", lambda provided: network(provided, cidr="ten")),
    "network that is open": ("endpoints", lambda provided: network(provided, endpoints="open")),
}


@pytest.mark.parametrize(("call", "names"), list(calls()))
def test_is_refused_with_a_finding(constructs: Given, call: Callable[[Given], Any], names: str) -> None:
    with pytest.raises((PodwrightError, ValidationError)) as refused:
        call(constructs)
    assert names in str(refused.value)
    # A message of ours says what to do next; pydantic's says what is allowed.
    assert len(str(refused.value)) > 40


def test_there_are_two_hundred() -> None:
    assert len(list(calls())) >= 200
