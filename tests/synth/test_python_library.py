"""What the constructs of the public module make by themselves, by what templates say."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import aws_cdk as cdk
import cdk_nag
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk.assertions import Annotations, Match, Template

from podwright.config.catalog.charts import HYPERPOD_DEPENDENCIES, chart
from podwright.constructs import library
from podwright.constructs.library import (
    ClusterAutoscaling,
    ClusterObservability,
    EnvironmentNetwork,
    ExecutionRole,
    HyperPodCluster,
    InstanceGroup,
    InvalidSettings,
    Karpenter,
    Lustre,
    LustreFileSystem,
    Network,
    NodeSecurityGroup,
    Observability,
    Orchestrator,
    PrometheusWorkspace,
    ScheduledUpdate,
    TrainingPlanReference,
)
from podwright.operations.artifacts.stand_ins import stand_in

ARN = "arn:aws:sagemaker:us-west-2:111122223333:cluster/0123456789ab"
SYSTEM = InstanceGroup(instance_type="ml.m5.4xlarge", count=2)
SLURM = {"instance_groups": {"controller": InstanceGroup(instance_type="ml.m5.4xlarge", count=1), "work": SYSTEM}}
GPU = InstanceGroup(instance_type="ml.p5.48xlarge", count=4)


@pytest.fixture
def vpc(stack: cdk.Stack) -> ec2.IVpc:
    return ec2.Vpc.from_vpc_attributes(
        stack, "Vpc", vpc_id="vpc-0123456789abcdef0", availability_zones=["us-west-2a"], vpc_cidr_block="10.0.0.0/16",
        private_subnet_ids=["subnet-0123456789abcdef0"],
    )  # fmt: skip


@pytest.fixture
def kubernetes(stack: cdk.Stack, vpc: ec2.IVpc) -> eks.ICluster:
    role = iam.Role.from_role_arn(stack, "Kubectl", "arn:aws:iam::111122223333:role/Kubectl")
    provider = eks.KubectlProvider.from_kubectl_provider_attributes(
        stack, "Provider", service_token="arn:aws:lambda:us-west-2:111122223333:function:given", role=role
    )
    return eks.Cluster.from_cluster_attributes(
        stack, "Eks", cluster_name="given", vpc=vpc, cluster_security_group_id="sg-0123456789abcdef0",
        kubectl_provider=provider,
    )  # fmt: skip


@pytest.fixture
def arguments(stack: cdk.Stack, vpc: ec2.IVpc, kubernetes: eks.ICluster) -> dict[str, Any]:
    subnet = ec2.Subnet.from_subnet_id(stack, "Subnet", "subnet-0123456789abcdef0")
    return {
        "vpc": vpc,
        "subnets": {"usw2-az2": subnet},
        "orchestrator": Orchestrator.eks(kubernetes, dependencies=stand_in(chart(HYPERPOD_DEPENDENCIES))),
        "instance_groups": {"system": SYSTEM, "gpu": GPU},
    }


def resources(stack: cdk.Stack, kind: str) -> dict[str, Any]:
    return cast(dict[str, Any], Template.from_stack(stack).find_resources(kind))


def among_itself(stack: cdk.Stack, group: ec2.ISecurityGroup) -> list[str]:
    """The types of the rules by which a group lets everything through to and from itself."""
    identifier = stack.resolve(group.security_group_id)
    ends = {"Egress": "DestinationSecurityGroupId", "Ingress": "SourceSecurityGroupId"}
    return [
        kind
        for kind, other in ends.items()
        for rule in resources(stack, f"AWS::EC2::SecurityGroup{kind}").values()
        if rule["Properties"]["GroupId"] == identifier == rule["Properties"].get(other)
        and rule["Properties"]["IpProtocol"] == "-1"
    ]


def test_the_shortest_cluster_has_all_that_it_stands_on(stack: cdk.Stack, arguments: dict[str, Any]) -> None:
    made = HyperPodCluster(stack, "Cluster", **arguments)
    (logical_id,) = actual = resources(stack, "AWS::SageMaker::Cluster")
    before = " ".join(actual[logical_id]["DependsOn"])
    # Rules of EFA and of the control plane, scripts, role and chart are there before the first node boots.
    parts = ("AmongNodes", "NodesToApi", "ApiToNodes", "Lifecycle", "ExecutionRole", "Dependencies")
    assert [part for part in parts if part not in before] == []
    assert among_itself(stack, made.security_groups[0]) == ["Egress", "Ingress"]
    groups = actual[logical_id]["Properties"]["InstanceGroups"]
    assert [group["OverrideVpcConfig"]["Subnets"] for group in groups] == [["subnet-0123456789abcdef0"]] * 2
    (bucket,) = resources(stack, "AWS::S3::Bucket").values()
    assert bucket["Properties"]["BucketName"].startswith("sagemaker-")


def test_an_ordinary_group_gets_the_rules_of_efa(stack: cdk.Stack, vpc: ec2.IVpc, arguments: dict[str, Any]) -> None:
    ordinary = ec2.SecurityGroup(stack, "Ordinary", vpc=vpc)
    HyperPodCluster(stack, "Cluster", **arguments, security_group=ordinary)
    assert among_itself(stack, ordinary) == ["Egress", "Ingress"]


def test_rules_that_are_there_are_not_made_twice(stack: cdk.Stack, arguments: dict[str, Any]) -> None:
    settings = Network(zones=("usw2-az2", "usw2-az3"))
    network = EnvironmentNetwork(stack, "Network", settings=settings, features={"nodes"}, protection="retain")
    more = {"vpc": network.vpc, "subnets": network.node_subnets, "security_group": network.node_security_group}
    HyperPodCluster(stack, "Cluster", **arguments | more)
    assert among_itself(stack, network.node_security_group) == ["Egress", "Ingress"]


def test_two_clusters_share_an_ordinary_group(stack: cdk.Stack, vpc: ec2.IVpc, arguments: dict[str, Any]) -> None:
    ordinary = NodeSecurityGroup(stack, "Nodes", vpc=vpc, existing=ec2.SecurityGroup(stack, "Ordinary", vpc=vpc))
    for name in ("one", "two"):
        more = {"cluster_name": name, "security_group": ordinary.security_group}
        HyperPodCluster(stack, name, **arguments | {"orchestrator": Orchestrator.slurm(), **SLURM}, **more)
    assert among_itself(stack, ordinary.security_group) == ["Egress", "Ingress"]


def test_a_complete_group_is_left_alone(stack: cdk.Stack, arguments: dict[str, Any]) -> None:
    provided = ec2.SecurityGroup.from_security_group_id(stack, "Given", "sg-0123456789abcdef1")
    HyperPodCluster(stack, "Cluster", **arguments, security_group=provided, security_group_complete=True)
    assert among_itself(stack, provided) == []


def test_an_added_group_is_as_one_that_was_given(stack: cdk.Stack, arguments: dict[str, Any]) -> None:
    both = HyperPodCluster(stack, "Both", cluster_name="one", **arguments)
    later = HyperPodCluster(stack, "Later", cluster_name="one", **arguments | {"instance_groups": {"system": SYSTEM}})
    later.add_instance_group("gpu", GPU)
    template = json.dumps(Template.from_stack(stack).to_json()["Resources"])
    assert both.instance_groups == later.instance_groups
    for construct, kind in ((both, "Both"), (later, "Later")):
        assert construct.node.id == kind
    clusters = resources(stack, "AWS::SageMaker::Cluster").values()
    names = [[group["InstanceGroupName"] for group in item["Properties"]["InstanceGroups"]] for item in clusters]
    assert names == [["gpu", "system"]] * 2
    facts = [json.loads(text) for text in _joined(resources(stack, "Custom::PodwrightLifecycle"), "NodeFacts")]
    assert [sorted(item["groups"]) for item in facts] == [["gpu", "system"]] * 2
    values = _joined(resources(stack, "Custom::AWSCDK-EKS-HelmChart"), "Values")
    assert values[0] == values[1]
    assert "ml.p5.48xlarge" in values[0]
    assert template.count("sagemaker:DescribeClusterNode") == 2


def _joined(actual: dict[str, Any], name: str) -> list[str]:
    """A property of each resource as text; what only a deployment knows is left out."""
    return [_text(item["Properties"][name]) for item in actual.values()]


def _text(value: Any) -> str:
    parts = value["Fn::Join"][1] if isinstance(value, dict) else [value]
    return "".join(part if isinstance(part, str) else "x" for part in parts)


def test_a_group_that_is_refused_changes_nothing(stack: cdk.Stack, arguments: dict[str, Any]) -> None:
    made = HyperPodCluster(stack, "Cluster", **arguments)
    with pytest.raises(InvalidSettings, match="NET002"):
        made.add_instance_group("away", GPU.model_copy(update={"zone": "usw2-az3"}))
    assert sorted(made.instance_groups) == ["gpu", "system"]


def test_warnings_are_annotations(stack: cdk.Stack, arguments: dict[str, Any]) -> None:
    groups = {"system": SYSTEM.model_copy(update={"count": 1})}
    HyperPodCluster(stack, "Cluster", **arguments | {"instance_groups": groups})
    Annotations.from_stack(stack).has_warning(
        "*", Match.string_like_regexp(r"count of system group system is 1.*GRP044")
    )


def test_accepted_warnings_are_none(stack: cdk.Stack, arguments: dict[str, Any]) -> None:
    groups = {"system": SYSTEM.model_copy(update={"count": 1})}
    reasons = {"GRP044": "a sandbox may be without DNS for a while"}
    HyperPodCluster(stack, "Cluster", **arguments | {"instance_groups": groups}, acknowledge=reasons)
    Annotations.from_stack(stack).has_no_warning("*", Match.string_like_regexp("GRP044"))


def test_lustre_is_mounted_and_opened_to_the_nodes(stack: cdk.Stack, vpc: ec2.IVpc, arguments: dict[str, Any]) -> None:
    subnet = arguments["subnets"]["usw2-az2"]
    scratch = LustreFileSystem(
        stack, "Scratch", settings=Lustre(zone="usw2-az2", throughput=500, efa=True), vpc=vpc, subnet=subnet
    )
    provided = LustreFileSystem.from_lustre_file_system_attributes(
        stack, "Given", file_system_id="fs-0123456789abcdef0", mount_name="abcdefgh", zone="usw2-az2", mount="/given",
        security_group=ec2.SecurityGroup.from_security_group_id(stack, "Servers", "sg-0123456789abcdef1"),
    )  # fmt: skip
    mounting = {"system": SYSTEM, "gpu": GPU.model_copy(update={"mount_lustre": True})}
    groups = {name: InstanceGroup(**group.model_dump(exclude_unset=True)) for name, group in mounting.items()}
    made = HyperPodCluster(
        stack, "Cluster", **arguments | {"instance_groups": groups}, lustre={"lustre": scratch, "given": provided}
    )
    (file_system,) = resources(stack, "AWS::FSx::FileSystem").values()
    assert file_system["Properties"]["StorageCapacity"] == 9600
    nodes = stack.resolve(made.security_groups[0].security_group_id)
    servers = [stack.resolve(each.security_group.security_group_id) for each in (scratch, provided)]
    rules = [rule["Properties"] for rule in resources(stack, "AWS::EC2::SecurityGroupIngress").values()]
    for group in servers:
        assert any(rule["GroupId"] == group and rule["SourceSecurityGroupId"] == nodes for rule in rules)
        assert any(rule["GroupId"] == nodes and rule["SourceSecurityGroupId"] == group for rule in rules)
    (cluster,) = resources(stack, "AWS::SageMaker::Cluster").values()
    gpu = next(group for group in cluster["Properties"]["InstanceGroups"] if group["InstanceGroupName"] == "gpu")
    paths = [item["FsxLustreConfig"]["MountPath"] for item in gpu["InstanceStorageConfigs"]]
    assert paths == ["/given", "/fsx"]


def test_a_training_plan_by_its_attributes(stack: cdk.Stack, arguments: dict[str, Any]) -> None:
    arn = cdk.CfnParameter(stack, "Plan").value_as_string
    plan = TrainingPlanReference.from_training_plan_attributes(training_plan_arn=arn, zone="usw2-az2", count=4)
    groups = {
        "system": SYSTEM,
        "gpu": InstanceGroup(**GPU.model_dump(exclude_unset=True), capacity={"training_plan": "q1"}),
    }
    HyperPodCluster(stack, "Cluster", **arguments | {"instance_groups": groups}, training_plans={"q1": plan})
    (cluster,) = resources(stack, "AWS::SageMaker::Cluster").values()
    assert {"Ref": "Plan"} in [group.get("TrainingPlanArn") for group in cluster["Properties"]["InstanceGroups"]]


OWN = "arn:aws:iam::111122223333:role/Own"


def test_the_common_role_gets_nothing_for_a_group_with_a_role_of_its_own(
    stack: cdk.Stack, arguments: dict[str, Any]
) -> None:
    update = ScheduledUpdate(schedule="cron(0 3 ? * SAT *)", batch="1", rollback_alarms=("loss",))
    key = "arn:aws:kms:us-west-2:111122223333:key/0a1b2c3d-0000-4000-8000-000000000000"
    gpu = GPU.model_copy(update={"role": OWN, "scheduled_update": update, "root_kms_key": key})
    HyperPodCluster(stack, "Cluster", **arguments | {"instance_groups": {"system": SYSTEM, "gpu": gpu}})
    policies = json.dumps(resources(stack, "AWS::IAM::Policy"))
    assert "ec2:CreateNetworkInterface" in policies
    assert "cloudwatch:DescribeAlarms" not in policies
    assert key not in policies


def test_the_common_role_comes_with_the_first_group_that_needs_it(stack: cdk.Stack, arguments: dict[str, Any]) -> None:
    groups = {"system": SYSTEM.model_copy(update={"role": OWN})}
    made = HyperPodCluster(stack, "Cluster", **arguments | {"instance_groups": groups})
    assert made.execution_role is None
    made.add_instance_group("gpu", GPU)
    (logical_id,) = actual = resources(stack, "AWS::SageMaker::Cluster")
    roles = [group["ExecutionRole"] for group in actual[logical_id]["Properties"]["InstanceGroups"]]
    assert [role == OWN for role in roles] == [False, True]
    assert any("ExecutionRoleDefaultPolicy" in name for name in actual[logical_id]["DependsOn"])


def test_what_watches_a_cluster_reads_its_parts(stack: cdk.Stack, vpc: ec2.IVpc, arguments: dict[str, Any]) -> None:
    settings = Lustre(zone="usw2-az2", capacity_gib=9600, throughput=500, efa=True)
    lustre = {"lustre": LustreFileSystem(stack, "Lustre", settings=settings, vpc=vpc, subnet=vpc.private_subnets[0])}
    made = HyperPodCluster(stack, "Cluster", **arguments, cluster_name="prod", lustre=lustre)
    watched = ClusterObservability.for_cluster(
        stack, "Observability", cluster=made, settings=Observability(budget_usd_per_month=1000)
    )
    assert watched.workspace is not None
    kinds = {item["Type"] for item in Template.from_stack(stack).to_json()["Resources"].values()}
    assert {"AWS::APS::Workspace", "AWS::APS::RuleGroupsNamespace", "AWS::Budgets::Budget", "AWS::EKS::Addon"} <= kinds
    assert stack.resolve(lustre["lustre"].file_system_id)["Ref"] in json.dumps(
        resources(stack, "AWS::CloudWatch::Alarm")
    )


def test_a_cluster_without_metrics_still_has_alerts_and_logs(stack: cdk.Stack, arguments: dict[str, Any]) -> None:
    made = HyperPodCluster(stack, "Cluster", **arguments)
    watched = ClusterObservability.for_cluster(
        stack, "Observability", cluster=made, settings=Observability(metrics="off")
    )
    assert watched.workspace is None
    kinds = {item["Type"] for item in Template.from_stack(stack).to_json()["Resources"].values()}
    assert {"AWS::SNS::Topic", "AWS::Events::Rule", "Custom::PodwrightServiceLogs"} <= kinds
    assert not [kind for kind in kinds if kind.startswith("AWS::APS::")]


def test_grants_and_metrics(stack: cdk.Stack, arguments: dict[str, Any]) -> None:
    made = HyperPodCluster(stack, "Cluster", cluster_name="one", **arguments)
    role = iam.Role(stack, "Person", assumed_by=iam.AccountRootPrincipal())
    made.grant_connect(role)
    made.grant_submit(role, namespaces=["b", "a"])
    (entry,) = resources(stack, "AWS::EKS::AccessEntry").values()
    (policy,) = entry["Properties"]["AccessPolicies"]
    assert policy["AccessScope"] == {"Type": "namespace", "Namespaces": ["a", "b"]}
    text = json.dumps(resources(stack, "AWS::IAM::Policy"))
    assert all(action in text for action in ("ssm:StartSession", "eks:DescribeCluster", "sagemaker:ListClusterNodes"))
    metric = made.metric_log_events()
    assert (metric.namespace, metric.metric_name) == ("AWS/Logs", "IncomingLogEvents")
    name = stack.resolve((metric.dimensions or {})["LogGroupName"])
    assert name["Fn::Join"][1][0] == "/aws/sagemaker/Clusters/one/"
    made.connections.allow_from(ec2.Peer.ipv4("10.0.0.0/8"), ec2.Port.tcp(22))


def test_with_slurm_work_is_submitted_by_a_session(stack: cdk.Stack) -> None:
    made = HyperPodCluster.from_cluster_attributes(stack, "Slurm", cluster_name="slurm", cluster_arn=ARN)
    made.grant_submit(iam.Role(stack, "Person", assumed_by=iam.AccountRootPrincipal()))
    assert "ssm:StartSession" in json.dumps(resources(stack, "AWS::IAM::Policy"))
    assert resources(stack, "AWS::EKS::AccessEntry") == {}


def test_a_role_takes_permissions_itself(stack: cdk.Stack, vpc: ec2.IVpc) -> None:
    group = ec2.SecurityGroup.from_security_group_id(stack, "Given", "sg-0123456789abcdef1")
    role = ExecutionRole(stack, "Role", cluster_name="prod", vpc=vpc, security_groups=[group])
    iam.Grant.add_to_principal(grantee=role, actions=["sqs:SendMessage"], resource_arns=["arn:aws:sqs:::queue"])
    assert "sqs:SendMessage" in json.dumps(resources(stack, "AWS::IAM::Policy"))


def granted(stack: cdk.Stack) -> list[str]:
    """The roles that may read what lies in the bucket `data`."""
    policies = resources(stack, "AWS::IAM::Policy").values()
    return [
        policy["Properties"]["Roles"][0]["Ref"]
        for policy in policies
        if ":s3:::data" in json.dumps(policy["Properties"]["PolicyDocument"])
    ]


def test_a_cluster_stands_for_the_role_of_its_nodes(stack: cdk.Stack, arguments: dict[str, Any]) -> None:
    made = HyperPodCluster(stack, "Cluster", **arguments)
    cdk.aws_s3.Bucket.from_bucket_name(stack, "Data", "data").grant_read(made)
    assert made.execution_role
    assert granted(stack) == [stack.resolve(made.execution_role.role_name)["Ref"]]


def test_a_cluster_of_elsewhere_says_what_its_nodes_would_get(stack: cdk.Stack) -> None:
    bucket = cdk.aws_s3.Bucket.from_bucket_name(stack, "Data", "data")
    attributes = {"cluster_name": "one", "cluster_arn": ARN}
    unknown = HyperPodCluster.from_cluster_attributes(stack, "Unknown", **attributes)
    iam.Grant.add_to_principal(grantee=unknown, actions=["sqs:SendMessage"], resource_arns=["arn:aws:sqs:::queue"])
    role = iam.Role(stack, "Nodes", assumed_by=iam.AccountRootPrincipal())
    bucket.grant_read(HyperPodCluster.from_cluster_attributes(stack, "Known", **attributes, execution_role=role))
    assert granted(stack) == [stack.resolve(role.role_name)["Ref"]]
    words = Match.string_like_regexp(r"Add statement[\s\S]*sqs:Send")
    Annotations.from_stack(stack).has_warning("/Test/Unknown", words)


def test_what_stands_for_a_role_takes_permissions() -> None:
    """The other constructs have roles for their own use, or none (decision 45)."""
    classes = {name: getattr(library, name) for name in library.__all__}
    takers = {name for name, value in classes.items() if iam.IGrantable in getattr(value, "__jsii_ifaces__", ())}
    assert takers == {"ClusterGrafana", "ExecutionRole", "HyperPodCluster", "KarpenterRole"}


def test_a_network_by_its_attributes(stack: cdk.Stack, vpc: ec2.IVpc, arguments: dict[str, Any]) -> None:
    nodes = NodeSecurityGroup(stack, "Nodes", vpc=vpc).security_group
    network = EnvironmentNetwork.from_network_attributes(
        stack, "Network", vpc=vpc, node_subnets=arguments["subnets"], node_security_group=nodes
    )
    assert network.connections.security_groups == [nodes]
    assert network.control_plane_subnets == network.node_subnets == arguments["subnets"]


def test_a_workspace_by_its_id(stack: cdk.Stack) -> None:
    provided = PrometheusWorkspace.from_workspace_id(stack, "Given", "ws-01234567-89ab-cdef-0123-456789abcdef")
    role = iam.Role(stack, "Grafana", assumed_by=iam.AccountRootPrincipal())
    provided.grant_query(role)
    assert ":workspace/ws-01234567" in json.dumps(resources(stack, "AWS::IAM::Policy"))
    assert resources(stack, "AWS::APS::Workspace") == {}


def test_a_workspace_of_its_own_counts_what_it_cannot_deliver(stack: cdk.Stack) -> None:
    made = PrometheusWorkspace(stack, "Metrics", settings=Observability(), name="prod")
    metric = made.metric_undelivered_alerts()
    assert (metric.namespace, metric.metric_name) == ("AWS/Prometheus", "AlertManagerNotificationsFailed")
    (key,) = resources(stack, "AWS::KMS::Key")
    (workspace,) = resources(stack, "AWS::APS::Workspace").values()
    assert workspace["Properties"]["KmsKeyArn"] == {"Fn::GetAtt": [key, "Arn"]}


def unanswered(stack: cdk.Stack) -> list[str]:
    """What cdk-nag finds and nobody has answered."""
    app = cast(cdk.App, cdk.App.of(stack))
    cdk.Validations.of(app).add_plugins(cdk_nag.AwsSolutionsChecks())
    # A finding makes the synthesis fail, after it has written the report.
    with suppress(RuntimeError):
        app.synth()
    report = json.loads((Path(app.outdir) / "validation-report.json").read_text())
    rule_names = [violation["ruleName"] for plugin in report["pluginReports"] for violation in plugin["violations"]]
    # The rest are annotations, such as warnings of the network that these tests are given.
    return [rule for rule in rule_names if rule.startswith("AwsSolutions")]


@pytest.mark.parametrize("orchestrator", ["eks", "slurm"])
def test_cdk_nag_has_nothing_to_say(
    stack: cdk.Stack, vpc: ec2.IVpc, arguments: dict[str, Any], orchestrator: str
) -> None:
    if orchestrator == "slurm":
        arguments["orchestrator"] = Orchestrator.slurm()
        arguments["instance_groups"] = {"controller": SYSTEM.model_copy(update={"count": 1}), "work": GPU}
    settings = Lustre(zone="usw2-az2", efa=True)
    subnet = arguments["subnets"]["usw2-az2"]
    scratch = LustreFileSystem(stack, "Scratch", settings=settings, vpc=vpc, subnet=subnet)
    scaled = Karpenter(groups=("burst",), limits={"vcpu": 256})
    autoscaling = ClusterAutoscaling(karpenter=scaled) if orchestrator == "eks" else None
    if autoscaling:
        empty = InstanceGroup(instance_type="ml.c5.18xlarge", count=0, zone="usw2-az2")
        arguments["instance_groups"] = {**arguments["instance_groups"], "burst": empty}
    made = HyperPodCluster(stack, "Cluster", **arguments, lustre={"lustre": scratch}, autoscaling=autoscaling)
    made.grant_connect(iam.Role(stack, "Person", assumed_by=iam.AccountRootPrincipal()))
    assert unanswered(stack) == []


def test_the_names_that_users_may_rely_on() -> None:
    assert sorted(library.__all__, key=str) == sorted(set(library.__all__))
    assert all(hasattr(library, name) for name in library.__all__)
    undocumented = [name for name in library.__all__ if not getattr(library, name).__doc__]
    assert undocumented == []
    assert {"HyperPodCluster", "IHyperPodCluster", "InstanceGroup", "Lustre", "Orchestrator"} <= set(library.__all__)
