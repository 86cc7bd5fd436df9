"""The EKS control plane and what belongs to it, by what their templates say."""

import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import aws_cdk as cdk
import cdk_nag
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk.assertions import Template

from podwright.config.catalog.charts import HYPERPOD_DEPENDENCIES, chart
from podwright.config.loading.artifacts import ChartArchive, pack
from podwright.config.settings.cluster import AdoptedEks, Eks
from podwright.constructs.delivery.runner import Runner
from podwright.constructs.eks.addons import NodeAddons, WorkloadAddons
from podwright.constructs.eks.control_plane import EksControlPlane
from podwright.constructs.eks.helm_release import HelmRelease
from podwright.constructs.hyperpod.nodes_ready.construct import NodesReady
from podwright.operations.artifacts.stand_ins import stand_in

NODES = "sg-0123456789abcdef0"
ADMIN = "arn:aws:iam::111122223333:role/teams/MlPlatform"
CLUSTER_ARN = "arn:aws:sagemaker:us-west-2:111122223333:cluster/abcdefghijkl"
EXISTING = AdoptedEks(
    name="old", security_group="sg-0123456789abcdef1", kubectl_role="arn:aws:iam::111122223333:role/Kubectl"
)
ADDON = "AWS::EKS::Addon"
HELM = "Custom::AWSCDK-EKS-HelmChart"
Resources = dict[str, dict[str, Any]]


@pytest.fixture
def parts(stack: cdk.Stack) -> dict[str, Any]:
    return given(stack)


def given(stack: cdk.Stack) -> dict[str, Any]:
    """What a control plane stands on."""
    vpc = ec2.Vpc.from_vpc_attributes(
        stack,
        "GivenVpc",
        vpc_id="vpc-0123456789abcdef0",
        availability_zones=["us-west-2a", "us-west-2b"],
        private_subnet_ids=["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"],
        private_subnet_route_table_ids=["rtb-0123456789abcdef0", "rtb-0123456789abcdef1"],
    )
    return {
        "vpc": vpc,
        "control_plane_subnets": {"usw2-az2": vpc.private_subnets[1], "usw2-az1": vpc.private_subnets[0]},
        "node_security_group": ec2.SecurityGroup.from_security_group_id(stack, "GivenNodes", NODES),
        "key": kms.Key.from_key_arn(
            stack, "GivenKey", "arn:aws:kms:us-west-2:111122223333:key/01234567-89ab-cdef-0123-456789abcdef"
        ),
    }


def control_plane(stack: cdk.Stack, parts: dict[str, Any], **settings: Any) -> EksControlPlane:
    return EksControlPlane(stack, "Eks", settings=Eks.model_validate(settings), **parts)


def everything(stack: cdk.Stack, parts: dict[str, Any], **settings: Any) -> EksControlPlane:
    """A control plane with all that podwright puts beside it."""
    made = control_plane(stack, parts, **settings)
    eks, inside = Eks.model_validate(settings), {"vpc": parts["vpc"], "subnets": made.subnets, "key": parts["key"]}
    NodeAddons(stack, "NodeAddons", settings=eks, cluster_name=made.cluster.cluster_name)
    WorkloadAddons(stack, "WorkloadAddons", settings=eks, cluster_name=made.cluster.cluster_name, lustre=True)
    dependencies = chart(HYPERPOD_DEPENDENCIES)
    HelmRelease(
        stack, "Chart", cluster=made.cluster, chart=dependencies, archive=stand_in(dependencies), values={"a": 1}
    )
    NodesReady(
        stack,
        "Ready",
        cluster_name="prod",
        cluster_arn=CLUSTER_ARN,
        eks_cluster=made.cluster,
        group="system",
        count=2,
        security_group=made.security_group,
        **inside,
    )
    Runner(stack, "Runner", cluster=made.cluster, tools=made.tools, security_group=made.security_group, **inside)
    return made


def resources(stack: cdk.Stack, *kinds: str) -> Resources:
    """All resources of these types by logical id."""
    template = Template.from_stack(stack).to_json()
    return {id: actual for id, actual in template["Resources"].items() if actual["Type"] in kinds}


def one(stack: cdk.Stack, kind: str) -> dict[str, Any]:
    (values,) = resources(stack, kind).values()
    return values["Properties"]


def test_the_control_plane_keeps_everybody_out_by_default(stack: cdk.Stack, parts: dict[str, Any]) -> None:
    control_plane(stack, parts, deletion_protection=True)
    cluster = one(stack, "AWS::EKS::Cluster")
    assert cluster["AccessConfig"] == {"AuthenticationMode": "API", "BootstrapClusterCreatorAdminPermissions": False}
    assert cluster["ResourcesVpcConfig"]["EndpointPrivateAccess"] is True
    assert cluster["ResourcesVpcConfig"]["EndpointPublicAccess"] is False
    assert cluster["EncryptionConfig"] == [{"Provider": {"KeyArn": parts["key"].key_arn}, "Resources": ["secrets"]}]
    assert {log["Type"] for log in cluster["Logging"]["ClusterLogging"]["EnabledTypes"]} == {
        "api",
        "audit",
        "authenticator",
        "controllerManager",
        "scheduler",
    }
    assert cluster["DeletionProtection"] is True
    assert cluster["Version"] == "1.34"
    assert "Name" not in cluster


def test_nothing_of_eks_own_makes_nodes_or_addons(stack: cdk.Stack, parts: dict[str, Any]) -> None:
    control_plane(stack, parts)
    cluster = one(stack, "AWS::EKS::Cluster")
    assert cluster["ComputeConfig"] == {"Enabled": False}
    assert cluster["BootstrapSelfManagedAddons"] is False
    assert (
        resources(stack, "AWS::EKS::Nodegroup", "AWS::EKS::FargateProfile", "AWS::AutoScaling::AutoScalingGroup") == {}
    )


def test_a_public_endpoint_is_for_the_named_ranges(stack: cdk.Stack, parts: dict[str, Any]) -> None:
    control_plane(stack, parts, endpoint="public_and_private", public_cidrs=["8.8.8.0/24"])
    network = one(stack, "AWS::EKS::Cluster")["ResourcesVpcConfig"]
    assert network["EndpointPublicAccess"] is True
    assert network["EndpointPrivateAccess"] is True
    assert network["PublicAccessCidrs"] == ["8.8.8.0/24"]


def test_secrets_and_logs_follow_the_settings(stack: cdk.Stack, parts: dict[str, Any]) -> None:
    other = "arn:aws:kms:us-west-2:111122223333:key/fedcba98-89ab-cdef-0123-456789abcdef"
    control_plane(stack, parts, secrets_key=other, logs=["audit"])
    cluster = one(stack, "AWS::EKS::Cluster")
    assert cluster["EncryptionConfig"][0]["Provider"]["KeyArn"] == other
    assert cluster["Logging"]["ClusterLogging"]["EnabledTypes"] == [{"Type": "audit"}]
    assert cluster["DeletionProtection"] is False


def test_admins_get_an_entry_each_and_keep_it_when_another_comes(stack: cdk.Stack, parts: dict[str, Any]) -> None:
    control_plane(stack, parts, admins=[ADMIN])
    again = cdk.Stack(cdk.App(), "Test", env=cdk.Environment(account="111122223333", region="us-west-2"))
    control_plane(again, given(again), admins=["arn:aws:iam::111122223333:role/Another", ADMIN])

    def admin(actual: cdk.Stack) -> Resources:
        entries = resources(actual, "AWS::EKS::AccessEntry").items()
        return {id: entry for id, entry in entries if entry["Properties"]["PrincipalArn"] == ADMIN}

    assert list(admin(stack)) == list(admin(again))
    (entry,) = admin(stack).values()
    policy = json.dumps(entry["Properties"]["AccessPolicies"])
    assert "cluster-access-policy/AmazonEKSClusterAdminPolicy" in policy


def test_rules_let_nodes_and_control_plane_talk_both_ways(stack: cdk.Stack, parts: dict[str, Any]) -> None:
    control_plane(stack, parts)
    own = {"Fn::GetAtt": [next(iter(resources(stack, "AWS::EKS::Cluster"))), "ClusterSecurityGroupId"]}

    def ports(kind: str, group: Any, peer: str, other: Any) -> set[tuple[int, int]]:
        rules = [rule["Properties"] for rule in resources(stack, kind).values()]
        return {
            (rule["FromPort"], rule["ToPort"]) for rule in rules if rule["GroupId"] == group and rule[peer] == other
        }

    ingress, egress = "AWS::EC2::SecurityGroupIngress", "AWS::EC2::SecurityGroupEgress"
    assert ports(ingress, own, "SourceSecurityGroupId", NODES) == {(443, 443)}
    assert ports(egress, NODES, "DestinationSecurityGroupId", own) == {(443, 443)}
    assert ports(ingress, NODES, "SourceSecurityGroupId", own) == {(443, 443), (1025, 65535)}
    assert ports(egress, own, "DestinationSecurityGroupId", NODES) == {(443, 443), (1025, 65535)}


def test_rules_that_exist_are_left_alone(stack: cdk.Stack, parts: dict[str, Any]) -> None:
    control_plane(stack, parts | {"open_node_rules": False})
    assert resources(stack, "AWS::EC2::SecurityGroupIngress", "AWS::EC2::SecurityGroupEgress") == {}


@pytest.mark.parametrize("settings", [{}, {"existing": EXISTING}], ids=["new", "existing"])
def test_only_the_kubectl_provider_brings_handlers(
    stack: cdk.Stack, parts: dict[str, Any], settings: dict[str, Any]
) -> None:
    everything(stack, parts, **settings)
    functions = resources(stack, "AWS::Lambda::Function").values()
    observed = sorted((function["Properties"]["Runtime"], function["Properties"]["Handler"]) for function in functions)
    assert observed == [
        ("nodejs24.x", "framework.onEvent"),
        ("python3.13", "index.handler"),
        ("python3.14", "podwright/constructs/hyperpod/nodes_ready/handler/index.handler"),
    ]
    for function in functions:
        assert function["Properties"]["VpcConfig"]["SubnetIds"] == [
            "subnet-0123456789abcdef0",
            "subnet-0123456789abcdef1",
        ]
        assert "LogGroup" in function["Properties"]["LoggingConfig"]
    template = Template.from_stack(stack).to_json()
    custom = {value["Type"] for value in template["Resources"].values() if value["Type"].startswith("Custom::")}
    assert custom == {HELM, "Custom::PodwrightNodesReady"}
    assert "Conditions" not in template


def test_the_provider_has_no_policy_of_aws(stack: cdk.Stack, parts: dict[str, Any]) -> None:
    everything(stack, parts)
    roles = resources(stack, "AWS::IAM::Role").values()
    managed = [role["Properties"]["ManagedPolicyArns"] for role in roles if "ManagedPolicyArns" in role["Properties"]]
    assert len(managed) == 1, "the control plane's own"
    assert "AmazonEKSClusterPolicy" in json.dumps(managed)


def test_an_existing_cluster_is_used_and_not_made(stack: cdk.Stack, parts: dict[str, Any]) -> None:
    made = everything(stack, parts, existing=EXISTING, admins=[ADMIN])
    assert resources(stack, "AWS::EKS::Cluster", "AWS::EKS::Addon", "AWS::EKS::PodIdentityAssociation") == {}
    assert made.cluster.cluster_name == "old"
    assert made.security_group.security_group_id == EXISTING.security_group
    (handler,) = (
        function["Properties"]
        for function in resources(stack, "AWS::Lambda::Function").values()
        if function["Properties"]["Runtime"] == "python3.13"
    )
    assert handler["Role"] == EXISTING.kubectl_role
    entries = resources(stack, "AWS::EKS::AccessEntry").values()
    assert {entry["Properties"]["ClusterName"] for entry in entries} == {"old"}
    assert ADMIN in [entry["Properties"]["PrincipalArn"] for entry in entries]


def test_helpers_need_a_subnet(stack: cdk.Stack, parts: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="control_plane_subnets is empty"):
        control_plane(stack, parts | {"control_plane_subnets": {}})


def test_addons_are_pinned_and_overwrite(stack: cdk.Stack, parts: dict[str, Any]) -> None:
    everything(stack, parts, version="1.34", addons={"aws-fsx-csi-driver": "v9.9.9-eksbuild.1"})
    addons = {item["Properties"]["AddonName"]: item for item in resources(stack, "AWS::EKS::Addon").values()}
    assert {name: item["Properties"].get("AddonVersion") for name, item in addons.items()} == {
        "vpc-cni": "v1.21.1-eksbuild.7",
        "kube-proxy": "v1.34.6-eksbuild.13",
        "coredns": "v1.13.2-eksbuild.7",
        "eks-pod-identity-agent": None,
        "aws-fsx-csi-driver": "v9.9.9-eksbuild.1",
    }
    assert {item["Properties"]["ResolveConflicts"] for item in addons.values()} == {"OVERWRITE"}
    assert [name for name, item in addons.items() if "PodIdentityAssociations" in item["Properties"]] == []


def test_authentication_services_and_support_are_those_of_the_file(stack: cdk.Stack, parts: dict[str, Any]) -> None:
    control_plane(stack, parts, authentication="API_AND_CONFIG_MAP", service_cidr="172.20.0.0/16", support="standard")
    (cluster,) = resources(stack, "AWS::EKS::Cluster").values()
    properties = cluster["Properties"]
    assert properties["AccessConfig"]["AuthenticationMode"] == "API_AND_CONFIG_MAP"
    assert properties["KubernetesNetworkConfig"]["ServiceIpv4Cidr"] == "172.20.0.0/16"
    assert properties["UpgradePolicy"] == {"SupportType": "STANDARD"}


def test_interfaces_have_the_groups_of_the_file_beside_their_own(stack: cdk.Stack, parts: dict[str, Any]) -> None:
    groups = ["sg-0123456789abcdef8", "sg-0123456789abcdef9"]
    control_plane(stack, parts, security_groups=groups)
    (cluster,) = resources(stack, "AWS::EKS::Cluster").values()
    own, *others = cluster["Properties"]["ResourcesVpcConfig"]["SecurityGroupIds"]
    assert others == groups
    assert "ControlPlaneSecurityGroup" in own["Fn::GetAtt"][0]
    # They are somebody's: no rule of ours is added to them.
    rules = resources(stack, "AWS::EC2::SecurityGroupIngress", "AWS::EC2::SecurityGroupEgress").values()
    assert rules
    assert not [rule for rule in rules if rule["Properties"]["GroupId"] in groups]


def test_further_addons_and_configurations_of_the_file(stack: cdk.Stack) -> None:
    settings = Eks.model_validate(
        {
            "addon_configurations": {"vpc-cni": "env: {WARM_IP_TARGET: '4'}", "coredns": "replicaCount: 4"},
            "further_addons": {
                "eks-node-monitoring-agent": {"version": "v1.5.0-eksbuild.1", "configuration": "a: 1"},
                "snapshot-controller": {"service_account_role": "arn:aws:iam::111122223333:role/Snapshots"},
            },
        }
    )
    NodeAddons(stack, "NodeAddons", settings=settings, cluster_name="prod", network_policies=True)
    WorkloadAddons(stack, "WorkloadAddons", settings=settings, cluster_name="prod", lustre=False)
    by_name = {item["Properties"]["AddonName"]: item["Properties"] for item in resources(stack, ADDON).values()}
    # What podwright says itself stays where the file says nothing of it.
    cni = {"enableNetworkPolicy": "true", "env": {"WARM_IP_TARGET": "4"}}
    assert json.loads(by_name["vpc-cni"]["ConfigurationValues"]) == cni
    assert json.loads(by_name["coredns"]["ConfigurationValues"]) == {"replicaCount": 4}
    agent = by_name["eks-node-monitoring-agent"]
    assert (agent["AddonVersion"], agent["ConfigurationValues"]) == ("v1.5.0-eksbuild.1", '{"a":1}')
    assert by_name["snapshot-controller"]["ServiceAccountRoleArn"] == "arn:aws:iam::111122223333:role/Snapshots"
    assert "ConfigurationValues" not in by_name["snapshot-controller"]
    assert "ConfigurationValues" not in by_name["kube-proxy"]


def test_the_fsx_driver_may_look_and_not_make(stack: cdk.Stack, parts: dict[str, Any]) -> None:
    everything(stack, parts)
    association = one(stack, "AWS::EKS::PodIdentityAssociation")
    assert (association["Namespace"], association["ServiceAccount"]) == ("kube-system", "fsx-csi-controller-sa")
    (role,) = [id for id in resources(stack, "AWS::IAM::Role") if id.startswith("WorkloadAddons")]
    assert association["RoleArn"] == {"Fn::GetAtt": [role, "Arn"]}
    trust = resources(stack, "AWS::IAM::Role")[role]["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    assert [statement["Action"] for statement in trust] == [["sts:AssumeRole", "sts:TagSession"]]
    policies = [policy["Properties"] for policy in resources(stack, "AWS::IAM::Policy").values()]
    (allowed,) = [policy for policy in policies if policy["Roles"] == [{"Ref": role}]]
    assert [statement["Action"] for statement in allowed["PolicyDocument"]["Statement"]] == ["fsx:DescribeFileSystems"]
    (driver,) = [
        addon
        for addon in resources(stack, "AWS::EKS::Addon").values()
        if addon["Properties"]["AddonName"] == "aws-fsx-csi-driver"
    ]
    assert next(iter(resources(stack, "AWS::EKS::PodIdentityAssociation"))) in driver["DependsOn"]


def test_without_lustre_there_is_no_driver(stack: cdk.Stack) -> None:
    WorkloadAddons(stack, "Addons", settings=Eks(), cluster_name="prod", lustre=False)
    assert [addon["Properties"]["AddonName"] for addon in resources(stack, "AWS::EKS::Addon").values()] == ["coredns"]
    assert resources(stack, "AWS::IAM::Role") == {}


def test_the_chart_is_installed_without_waiting_for_pods(stack: cdk.Stack, parts: dict[str, Any]) -> None:
    everything(stack, parts)
    (release,) = resources(stack, HELM).values()
    properties = release["Properties"]
    assert (properties["Release"], properties["Namespace"]) == ("hyperpod-dependencies", "kube-system")
    assert "Wait" not in properties
    assert "CreateNamespace" not in properties
    assert properties["ChartAssetURL"].startswith("s3://cdk-")
    assert json.loads(properties["Values"]) == {"a": 1}
    assert "stand-in" in json.dumps(release["Metadata"])
    (barrier,) = resources(stack, "AWS::SSM::Parameter")
    assert barrier in release["DependsOn"], "the provider is admin of the cluster before it installs anything"


def test_a_real_archive_goes_to_s3_as_it_is(stack: cdk.Stack, parts: dict[str, Any], tmp_path: Path) -> None:
    dependencies = chart(HYPERPOD_DEPENDENCIES)
    file = tmp_path / "chart.zip"
    file.write_bytes(pack(stand_in(dependencies).path))
    digest = stand_in(dependencies).digest
    made = control_plane(stack, parts)
    HelmRelease(
        stack,
        "Chart",
        cluster=made.cluster,
        chart=dependencies,
        archive=ChartArchive(HYPERPOD_DEPENDENCIES, file, digest),
        values={},
    )
    (url,) = [value["Properties"]["ChartAssetURL"] for value in resources(stack, HELM).values()]
    staged = Path(cast(cdk.App, cdk.App.of(stack)).outdir, f"asset.{url.rpartition('/')[2]}")
    assert hashlib.sha256(staged.read_bytes()).hexdigest() == digest
    assert "stand-in" not in json.dumps(resources(stack, HELM))
    with pytest.raises(ValueError, match="holds other"):
        HelmRelease(
            stack,
            "Other",
            cluster=made.cluster,
            chart=dependencies,
            archive=ChartArchive("other", file, digest),
            values={},
        )


def test_nodes_ready_sees_nodes_and_nothing_else(stack: cdk.Stack, parts: dict[str, Any]) -> None:
    everything(stack, parts)
    (waiter,) = resources(stack, "Custom::PodwrightNodesReady").values()
    assert waiter["Properties"]["Count"] == 2
    assert waiter["Properties"]["InstanceGroup"] == "system"
    assert int(waiter["Properties"]["TimeoutSeconds"]) < int(waiter["Properties"]["ServiceTimeout"]) <= 3600
    (role,) = [id for id in resources(stack, "AWS::IAM::Role") if id.startswith("Ready")]
    (entry,) = [
        id
        for id, entry in resources(stack, "AWS::EKS::AccessEntry").items()
        if entry["Properties"]["PrincipalArn"] == {"Fn::GetAtt": [role, "Arn"]}
    ]
    access = resources(stack, "AWS::EKS::AccessEntry")[entry]["Properties"]
    assert access["KubernetesGroups"] == ["podwright:node-readers"]
    assert "AccessPolicies" not in access
    policies = [
        statement
        for policy in resources(stack, "AWS::IAM::Policy").values()
        if {"Ref": role} in policy["Properties"]["Roles"]
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
    ]
    wide = [statement["Action"] for statement in policies if statement["Resource"] == "*"]
    assert all(action.startswith("ec2:") for actions in wide for action in actions)
    (observed,) = [statement for statement in policies if "sagemaker:ListClusterNodes" in statement["Action"]]
    assert observed["Action"] == [
        f"sagemaker:{name}" for name in ("DescribeCluster", "ListClusterEvents", "ListClusterNodes")
    ]
    assert entry in waiter["DependsOn"]
    (again,) = [id for id in resources(stack, "AWS::IAM::Policy") if id.startswith("ReadyInvokesItself")]
    assert again in waiter["DependsOn"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [({"timeout": cdk.Duration.minutes(61)}, "61 minutes"), ({"count": 0}, "no nodes to wait for")],
    ids=["timeout", "count"],
)
def test_nodes_ready_refuses_what_cannot_be_waited_for(
    stack: cdk.Stack, parts: dict[str, Any], changed: dict[str, Any], message: str
) -> None:
    made = control_plane(stack, parts)
    settings = {"cluster_name": "prod", "cluster_arn": CLUSTER_ARN, "group": "system", "count": 1, **changed}
    with pytest.raises(ValueError, match=message):
        NodesReady(
            stack,
            "Ready",
            eks_cluster=made.cluster,
            vpc=parts["vpc"],
            subnets=made.subnets,
            security_group=made.security_group,
            key=parts["key"],
            **settings,
        )


def test_the_runner_is_no_container_host_and_may_look_only(stack: cdk.Stack, parts: dict[str, Any]) -> None:
    everything(stack, parts)
    project = one(stack, "AWS::CodeBuild::Project")
    assert project["Environment"]["PrivilegedMode"] is False
    assert project["VpcConfig"]["Subnets"] == ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"]
    (layer,) = [
        layer["Properties"]["Content"]
        for layer in resources(stack, "AWS::Lambda::LayerVersion").values()
        if "kubectl" in layer["Properties"]["Description"]
    ]
    (source,) = project["SecondarySources"]
    assert source["Location"] == f"{layer['S3Bucket']}/{layer['S3Key']}"
    (role,) = [id for id in resources(stack, "AWS::IAM::Role") if id.startswith("Runner")]
    assert project["ServiceRole"] == {"Fn::GetAtt": [role, "Arn"]}
    (access,) = [
        entry["Properties"]
        for entry in resources(stack, "AWS::EKS::AccessEntry").values()
        if entry["Properties"]["PrincipalArn"] == {"Fn::GetAtt": [role, "Arn"]}
    ]
    assert "AmazonEKSViewPolicy" in json.dumps(access["AccessPolicies"])


@pytest.mark.parametrize(
    "settings",
    [{}, {"existing": EXISTING}, {"endpoint": "public_and_private", "public_cidrs": ["8.8.8.0/24"], "logs": ["api"]}],
    ids=["new", "existing", "public"],
)
def test_cdk_nag_has_nothing_left_to_say(stack: cdk.Stack, parts: dict[str, Any], settings: dict[str, Any]) -> None:
    everything(stack, parts, admins=[ADMIN], **settings)
    app = cast(cdk.App, cdk.App.of(stack))
    cdk.Validations.of(app).add_plugins(cdk_nag.AwsSolutionsChecks())
    with suppress(RuntimeError):
        app.synth()
    report = json.loads((Path(app.outdir) / "validation-report.json").read_text())
    assert [str(violation) for plugin in report["pluginReports"] for violation in plugin["violations"]] == []
