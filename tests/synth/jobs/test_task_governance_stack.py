"""Task governance in templates: what comes after what, by CloudFormation's types and without them."""

import json
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, cast

import aws_cdk as cdk
import cdk_nag
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk.assertions import Template

from podwright.cdk8s_charts.deployment_readers import deployment_readers
from podwright.config.catalog.instance_types import catalog
from podwright.config.settings.cluster import Eks
from podwright.config.settings.governance.teams import Governance
from podwright.config.settings.groups import InstanceGroup
from podwright.constructs.governance.compute_quotas import ComputeQuotas
from podwright.constructs.governance.task_governance import TaskGovernance
from podwright.constructs.hyperpod.nodes_ready.waiter import KubernetesApiAccess
from podwright.planning.quota.policy import quota_policy
from podwright.sandbox.cloudformation.validation import validate_properties
from podwright.stacks.feature_flags import FEATURE_FLAGS
from synthesis import synthesis

CLUSTER = "arn:aws:sagemaker:us-west-2:111122223333:cluster/abcdefghijkl"
CONFIG, QUOTA = "AWS::SageMaker::ClusterSchedulerConfig", "AWS::SageMaker::ComputeQuota"
OWN_CONFIG, OWN_QUOTA = "Custom::PodwrightSchedulerConfig", "Custom::PodwrightComputeQuota"
GROUPS = {"h200": InstanceGroup(instance_type="ml.p5en.48xlarge", count=4, zone="usw2-az2")}
TEAMS = {"llm": {"quota": {"h200": 2}}, "vision": {"quota": {"h200": {"accelerators": 4}}, "share": "lend"}}


def define_quotas(stack: cdk.Stack, teams: dict[str, Any] = TEAMS, **settings: Any) -> None:
    """Quotas behind a resource that stands for Kueue."""
    governance = Governance.model_validate({"engine": "hyperpod", "teams": teams, **settings})
    kueue = cdk.CfnWaitConditionHandle(stack, "Kueue")
    ComputeQuotas(
        stack,
        "Quotas",
        governance=governance,
        policy=quota_policy(governance, GROUPS, catalog()),
        cluster_name="prod",
        cluster_arn=CLUSTER,
        eks_cluster=eks.Cluster.from_cluster_attributes(stack, "Governed", cluster_name="prod"),
        after=[kueue],
        tags={"cost-center": "ai"},
    )


def quotas(stack: cdk.Stack, teams: dict[str, Any] = TEAMS, **settings: Any) -> dict[str, dict[str, Any]]:
    """The resources of quotas."""
    define_quotas(stack, teams, **settings)
    return Template.from_stack(stack).to_json()["Resources"]


@cache
def plain() -> dict[str, dict[str, Any]]:
    """The resources of the two teams, in a stack like that of the fixture."""
    return quotas(cdk.Stack(cdk.App(context=FEATURE_FLAGS), "Test"))


def of(resources: dict[str, dict[str, Any]], kind: str) -> dict[str, dict[str, Any]]:
    return {name: actual for name, actual in resources.items() if actual["Type"] == kind}


def add_on(stack: cdk.Stack) -> None:
    """The add-on on a cluster that exists."""
    vpc = ec2.Vpc.from_vpc_attributes(
        stack,
        "Vpc",
        vpc_id="vpc-0123456789abcdef0",
        availability_zones=["us-west-2a"],
        private_subnet_ids=["subnet-0123456789abcdef0"],
        private_subnet_route_table_ids=["rtb-0123456789abcdef0"],
    )
    role = iam.Role.from_role_arn(stack, "Kubectl", "arn:aws:iam::111122223333:role/Kubectl")
    token = "arn:aws:lambda:us-west-2:111122223333:function:kubectl"
    provider = eks.KubectlProvider.from_kubectl_provider_attributes(stack, "Provider", service_token=token, role=role)
    cluster = eks.Cluster.from_cluster_attributes(stack, "Eks", cluster_name="prod", kubectl_provider=provider)
    key = kms.Key.from_key_arn(
        stack, "Key", "arn:aws:kms:us-west-2:111122223333:key/01234567-89ab-cdef-0123-456789abcdef"
    )
    group = ec2.SecurityGroup.from_security_group_id(stack, "Group", "sg-0123456789abcdef0")
    location = KubernetesApiAccess(cluster, vpc, tuple(vpc.private_subnets), group, key)
    readers = deployment_readers("readers", group="podwright:kueue-readers", deployment="kueue-controller-manager")
    TaskGovernance(stack, "TaskGovernance", settings=Eks(), api_access=location, readers=readers)


def test_quotas_come_after_the_policy_and_the_policy_after_kueue(stack: cdk.Stack) -> None:
    resources = quotas(stack, priorities={"inference": 100, "training": 70})
    ((config, policy),) = of(resources, CONFIG).items()
    assert policy["DependsOn"] == ["Kueue"]
    assert policy["Properties"]["Name"] == "prod"
    actual = of(resources, QUOTA)
    assert [item["DependsOn"] for item in actual.values()] == [[config], [config]]
    assert [item["Properties"]["Name"] for item in actual.values()] == ["llm", "vision"]
    for item in (policy, *actual.values()):
        assert item["Properties"]["Tags"] == [{"Key": "cost-center", "Value": "ai"}]
        assert item["Properties"]["ClusterArn"] == CLUSTER
        assert validate_properties(item["Type"], item["Properties"], "us-east-1") == []
    assert not of(resources, "AWS::Lambda::Function")


@pytest.mark.parametrize("fallback", [(), ("compute_quota", "scheduler_config")])
def test_names_descriptions_and_states_are_those_of_the_file(stack: cdk.Stack, fallback: tuple[str, ...]) -> None:
    stated = {"name": "llm-2027", "description": "Models of 2027", "state": "disabled"}
    task_governance = {"name": "policy", "description": "Who goes first", "fallback": fallback}
    teams = {"llm": {"quota": {"h200": 2}, "compute_quota": stated}}
    resources = quotas(stack, teams, task_governance=task_governance)
    (config,) = of(resources, OWN_CONFIG if fallback else CONFIG).values()
    (quota,) = of(resources, OWN_QUOTA if fallback else QUOTA).values()
    sent = [item["Properties"] | json.loads(item["Properties"].get("Settings", "{}")) for item in (config, quota)]
    assert (sent[0]["Name"], sent[0]["Description"]) == ("policy", "Who goes first")
    fields = ("Name", "Description", "ActivationState")
    assert [sent[1][field] for field in fields] == ["llm-2027", "Models of 2027", "Disabled"]
    for item in () if fallback else (config, quota):
        assert validate_properties(item["Type"], item["Properties"], "us-east-1") == []


@pytest.mark.parametrize(
    ("fallback", "kinds"),
    [
        (["scheduler_config"], {OWN_CONFIG: 1, QUOTA: 2}),
        (["compute_quota"], {CONFIG: 1, OWN_QUOTA: 2}),
        (["scheduler_config", "compute_quota"], {OWN_CONFIG: 1, OWN_QUOTA: 2}),
    ],
    ids=["policy", "quotas", "both"],
)
def test_the_api_takes_the_place_of_a_type(stack: cdk.Stack, fallback: list[str], kinds: dict[str, int]) -> None:
    resources = quotas(stack, task_governance={"fallback": fallback})
    assert {
        kind: len(actual) for kind in (CONFIG, QUOTA, OWN_CONFIG, OWN_QUOTA) if (actual := of(resources, kind))
    } == kinds
    assert len(of(resources, "AWS::Lambda::Function")) == 1
    for name, item in plain().items():
        if item["Type"] not in (CONFIG, QUOTA):
            continue
        properties = dict(resources[name]["Properties"])
        properties |= json.loads(properties.pop("Settings", "{}"))
        assert properties | item["Properties"] == properties, "the same, by another way"
        assert resources[name]["DependsOn"] == item["DependsOn"]


def test_the_function_may_change_quotas_and_access_of_one_cluster(stack: cdk.Stack) -> None:
    resources = quotas(stack, task_governance={"fallback": ["compute_quota"]})
    (policy,) = (item["Properties"] for item in of(resources, "AWS::IAM::Policy").values())
    actions = [item["Action"] for item in policy["PolicyDocument"]["Statement"]]
    allowed = [name for each in actions for name in ([each] if isinstance(each, str) else each)]
    assert {action for action in allowed if not action.startswith("logs:")} == {
        *(
            f"sagemaker:{verb}{noun}"
            for verb in ("Create", "Describe", "Update", "Delete")
            for noun in ("ComputeQuota", "ClusterSchedulerConfig")
        ),
        "sagemaker:ListComputeQuotas",
        "sagemaker:ListClusterSchedulerConfigs",
        "sagemaker:AddTags",
        "sagemaker:ListTags",
        "sagemaker:DescribeCluster",
        "eks:DescribeCluster",
        *(f"eks:{verb}AccessPolicy" for verb in ("Associate", "Disassociate")),
        "eks:DescribeAccessEntry",
        "eks:ListAssociatedAccessPolicies",
    }
    entries = json.dumps([item for item in policy["PolicyDocument"]["Statement"] if "AccessEntry" in str(item)])
    assert ":access-entry/prod/*" in entries


@pytest.mark.parametrize(
    ("teams", "changed"),
    [
        ({"aa-new": {"quota": {"h200": 1}}, **TEAMS}, {"+ aa-new"}),
        ({"llm": TEAMS["llm"]}, {"- vision"}),
        ({"language": TEAMS["llm"], "vision": TEAMS["vision"]}, {"- llm", "+ language"}),
        ({"llm": {"quota": {"h200": 3}}, "vision": TEAMS["vision"]}, {"~ llm"}),
        (dict(reversed(TEAMS.items())), set()),
    ],
    ids=["added", "removed", "renamed", "changed", "reordered"],
)
def test_a_change_of_one_team_touches_no_other(stack: cdk.Stack, teams: dict[str, Any], changed: set[str]) -> None:
    before, after = of(plain(), QUOTA), of(quotas(stack, teams), QUOTA)
    actual = {
        ("+" if name not in before else "-" if name not in after else "~")
        + f" {(before.get(name) or after[name])['Properties']['Name']}"
        for name in before.keys() | after.keys()
        if before.get(name) != after.get(name)
    }
    assert actual == changed


def test_the_wait_comes_after_the_add_on_and_what_lets_it_look(stack: cdk.Stack) -> None:
    add_on(stack)
    resources = Template.from_stack(stack).to_json()["Resources"]
    ((name, item),) = of(resources, "AWS::EKS::Addon").items()
    assert item["Properties"]["AddonName"] == "amazon-sagemaker-hyperpod-taskgovernance"
    assert item["Properties"]["AddonVersion"] == "v1.6.0-eksbuild.1"
    (wait,) = of(resources, "Custom::PodwrightDeploymentReady").values()
    assert wait["Properties"]["Version"] == "v1.6.0-eksbuild.1", "a new version is waited for again"
    assert name in wait["DependsOn"]
    before = {resources[earlier]["Type"] for earlier in wait["DependsOn"]}
    assert before >= {"AWS::EKS::AccessEntry", "AWS::IAM::Policy", "AWS::CloudFormation::WaitConditionHandle"}
    (entry,) = of(resources, "AWS::EKS::AccessEntry").values()
    assert entry["Properties"]["KubernetesGroups"] == ["podwright:kueue-readers"]
    assert "AccessPolicies" not in entry["Properties"]


def test_cdk_nag_accepts_governance(stack: cdk.Stack) -> None:
    add_on(stack)
    define_quotas(stack, task_governance={"fallback": ["compute_quota", "scheduler_config"]})
    app = cast(cdk.App, cdk.App.of(stack))
    cdk.Validations.of(app).add_plugins(cdk_nag.AwsSolutionsChecks())
    with suppress(RuntimeError):
        app.synth()
    report = json.loads((Path(app.outdir) / "validation-report.json").read_text())
    assert [str(violation) for plugin in report["pluginReports"] for violation in plugin["violations"]] == []


def test_governance_is_a_stack_of_its_own_after_the_nodes() -> None:
    actual = synthesis("two-teams")
    manifest = json.loads((actual.directory / "manifest.json").read_text())["artifacts"]
    stacks = {name for name, item in manifest.items() if item["type"] == "aws:cloudformation:stack"}
    (governance,) = (name for name in stacks if "governance" in name)
    (cluster,) = (name for name in stacks if "cluster" in name)
    assert cluster in manifest[governance]["dependencies"]
    assert not [name for name in stacks if governance in manifest[name]["dependencies"]]
    assert {name.partition("/")[0] for name in actual.resources(QUOTA)} == {"governance"}
