"""Slurm clusters, by what their templates say."""

import json
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any, cast

import aws_cdk as cdk
import cdk_nag
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk.assertions import Template

from podwright.config.settings.slurm import AccountingDatabase, AdoptedDatabase
from podwright.constructs.hyperpod.accounting_database import SlurmAccounting
from podwright.planning.node.slurm_facts import SlurmFacts
from synthesis import Synthesis, environment, environment_of, synthesis, synthesize

KEY = "arn:aws:kms:us-west-2:111122223333:key/01234567-89ab-cdef-0123-456789abcdef"
SECRET = "arn:aws:secretsmanager:us-west-2:111122223333:secret:slurm-AbCdEf"
TOPIC = "arn:aws:sns:us-west-2:111122223333:failover"
BASE: dict[str, Any] = {
    "account": "111122223333",
    "region": "us-west-2",
    "network": {"zones": ["usw2-az1", "usw2-az2"]},
    "storage": {"lustre": {"zone": "usw2-az1"}},
    "cluster": {"orchestrator": "slurm", "zones": ["usw2-az1"]},
    "instance_groups": {
        "controller": {"instance_type": "ml.m5.4xlarge", "count": "1"},
        "login": {"instance_type": "ml.m5.4xlarge", "count": "1"},
        "cpu": {"instance_type": "ml.c5.4xlarge", "count": "2"},
    },
}


def synthesized(cluster: dict[str, Any] | None = None, **sections: Any) -> Synthesis:
    file = deepcopy(BASE) | sections
    file["cluster"] |= cluster or {}
    return synthesize(environment_of(json.dumps(file)))


def one(actual: dict[str, dict[str, Any]]) -> dict[str, Any]:
    assert len(actual) == 1
    return next(iter(actual.values()))["Properties"]


def hyperpod(actual: Synthesis) -> dict[str, Any]:
    return one(actual.resources("AWS::SageMaker::Cluster"))


def groups(actual: Synthesis) -> dict[str, dict[str, Any]]:
    return {group["InstanceGroupName"]: group for group in hyperpod(actual)["InstanceGroups"]}


def published(actual: Synthesis) -> dict[str, Any]:
    return one(actual.resources("Custom::PodwrightLifecycle"))


def text(value: Any) -> str:
    """A joined text with `?` where a deployment fills something in."""
    if isinstance(value, dict) and "Fn::Join" in value:
        return "".join(part if isinstance(part, str) else "?" for part in value["Fn::Join"][1])
    return value if isinstance(value, str) else "?"


@pytest.fixture(scope="module")
def plain() -> Synthesis:
    return synthesized()


def test_no_trace_of_kubernetes(plain: Synthesis) -> None:
    assert set(plain.templates) == {"network", "storage", "cluster"}
    for made in (plain, synthesis("slurm-classic")):
        types = {
            resource["Type"] for template in made.templates.values() for resource in template["Resources"].values()
        }
        assert not [name for name in types if "EKS" in name or "Kubernetes" in name or "NodesReady" in name]
        assert "eks" not in json.dumps(one(made.resources("AWS::SageMaker::Cluster"))).lower()
        assert "eks-auth" not in str(made.resources("AWS::IAM::Policy"))
        services = [
            str(endpoint["Properties"]["ServiceName"]) for endpoint in made.resources("AWS::EC2::VPCEndpoint").values()
        ]
        assert services
        assert not [name for name in services if "eks" in name]


def test_what_hyperpod_is_told_with_continuous_provisioning(plain: Synthesis) -> None:
    """A strategy would be refused there; the empty mapping says Slurm."""
    assert hyperpod(plain)["Orchestrator"] == {"Slurm": {}}
    assert hyperpod(plain)["NodeProvisioningMode"] == "Continuous"
    assert {name: group["SlurmConfig"] for name, group in groups(plain).items()} == {
        "controller": {"NodeType": "Controller"},
        "cpu": {"NodeType": "Compute", "PartitionNames": ["cpu"]},
        "login": {"NodeType": "Login"},
    }
    for group in groups(plain).values():
        assert group["LifeCycleConfig"].keys() == {"SourceS3Uri", "OnInitComplete"}
        assert group["LifeCycleConfig"]["OnInitComplete"] == "on_init_complete.sh"


@pytest.mark.parametrize("strategy", ["merge", "managed", "overwrite"])
def test_a_strategy_is_told_where_hyperpod_takes_one(strategy: str) -> None:
    made = hyperpod(synthesized({"provisioning": "all_or_nothing", "slurm": {"strategy": strategy}}))
    assert made["Orchestrator"] == {"Slurm": {"SlurmConfigStrategy": strategy.capitalize()}}
    assert "NodeProvisioningMode" not in made


def test_the_entry_scripts_are_published() -> None:
    scripts = Path(__file__).parents[3] / "lifecycle_scripts"
    assert (scripts / "on_init_complete.sh").is_file()
    assert (scripts / "on_create.sh").is_file()


def test_node_json_is_what_the_model_says() -> None:
    made = synthesis("slurm-classic")
    facts = json.loads(text(published(made)["NodeFacts"]))
    slurm = SlurmFacts.model_validate(facts["slurm"])
    assert facts["cluster"]["orchestrator"] == "slurm"
    assert slurm.partitions == {"cpu": ("cpu",), "training": ("h200",)}
    assert slurm.accounting
    assert (slurm.accounting.host, slurm.accounting.port) == ("?", 3306)
    assert [team.name for team in slurm.teams] == ["product", "research"]
    assert {user.name for user in slurm.users} == set(environment("slurm-classic").users)


def test_the_older_file_takes_the_place_of_the_api() -> None:
    made = synthesized({"provisioning": "all_or_nothing", "slurm": {"configuration": "provisioning_parameters"}})
    assert "Orchestrator" not in hyperpod(made)
    for group in groups(made).values():
        assert "SlurmConfig" not in group
        assert group["LifeCycleConfig"]["OnCreate"] == "on_create.sh"
    parameters = json.loads(text(published(made)["ProvisioningParameters"]))
    assert parameters["controller_group"] == "controller"
    assert parameters["fsx_dns_name"] == parameters["fsx_mountname"] == "?"
    assert "slurm_configurations" not in parameters


def test_one_of_the_two_configures_slurm(plain: Synthesis) -> None:
    assert "ProvisioningParameters" not in published(plain)


def test_several_controllers_share_database_folder_and_topic() -> None:
    many = deepcopy(BASE["instance_groups"])
    many["controller"]["count"] = "2"
    slurm = {"configuration": "provisioning_parameters", "accounting": {}, "failover_topic": TOPIC}
    made = synthesized({"provisioning": "all_or_nothing", "slurm": slurm}, instance_groups=many)
    assert json.loads(text(published(made)["ProvisioningParameters"]))["slurm_configurations"] == {
        "slurm_database_endpoint": "?",
        "slurm_database_secret_arn": "?",
        "slurm_database_user": "slurm",
        "slurm_shared_directory": "/fsx",
        "slurm_sns_arn": TOPIC,
    }
    policies = str(made.resources("AWS::IAM::Policy"))
    assert f"'Action': 'sns:Publish', 'Effect': 'Allow', 'Resource': '{TOPIC}'" in policies
    endpoints = {str(value["Properties"]["ServiceName"]) for value in made.resources("AWS::EC2::VPCEndpoint").values()}
    assert {"com.amazonaws.us-west-2.sns", "com.amazonaws.us-west-2.secretsmanager"} <= endpoints


def test_accounts_in_aurora_reach_cluster_and_role() -> None:
    made = synthesized({"slurm": {"accounting": {"name": "accounts"}}})
    messages = hyperpod(made)["Orchestrator"]["Slurm"]["AccountingDatabase"]
    assert (messages["Name"], messages["Port"]) == ("accounts", 3306)
    assert "test-storage:" in str(messages["Endpoint"])
    reads = [
        statement
        for policy in made.resources("AWS::IAM::Policy").values()
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        if statement["Action"] == "secretsmanager:GetSecretValue"
    ]
    assert [statement["Resource"] for statement in reads] == [messages["SecretArn"]]
    assert "secretsmanager" in str(made.resources("AWS::EC2::VPCEndpoint"))


def test_accounts_on_the_controller_make_no_database(plain: Synthesis) -> None:
    assert plain.resources("AWS::RDS::DBCluster") == plain.resources("AWS::SecretsManager::Secret") == {}
    assert "secretsmanager" not in str(plain.templates)


def define(stack: cdk.Stack, protection: str = "retain", **settings: Any) -> None:
    vpc = ec2.Vpc.from_vpc_attributes(
        stack,
        "Vpc",
        vpc_id="vpc-1",
        availability_zones=["a", "b"],
        private_subnet_ids=["subnet-1", "subnet-2"],
        private_subnet_route_table_ids=["rtb-1", "rtb-2"],
    )
    SlurmAccounting(
        stack,
        "Accounting",
        settings=AccountingDatabase.model_validate(settings),
        vpc=vpc,
        subnets=vpc.private_subnets,
        clients=ec2.SecurityGroup.from_security_group_id(stack, "Nodes", "sg-0123456789abcdef0"),
        key=kms.Key.from_key_arn(stack, "Key", KEY),
        protection=cast(Any, protection),
    )


def accounting(stack: cdk.Stack, protection: str = "retain", **settings: Any) -> Template:
    define(stack, protection, **settings)
    return Template.from_stack(stack)


def test_the_database_is_encrypted_private_and_kept(stack: cdk.Stack) -> None:
    template = accounting(stack)
    for kind in ("DBCluster", "DBSubnetGroup", "DBClusterParameterGroup"):
        value = one_of(template, f"AWS::RDS::{kind}")
        assert (value["DeletionPolicy"], value["UpdateReplacePolicy"]) == ("RetainExceptOnCreate", "Retain"), kind
    cluster = one_of(template, "AWS::RDS::DBCluster")["Properties"]
    assert cluster["StorageEncrypted"] is True
    assert cluster["KmsKeyId"] == KEY
    assert cluster["DeletionProtection"] is True
    assert cluster["ServerlessV2ScalingConfiguration"] == {"MinCapacity": 0.5, "MaxCapacity": 4}
    instances = template.find_resources("AWS::RDS::DBInstance")
    assert len(instances) == 2
    assert {value["Properties"]["PubliclyAccessible"] for value in instances.values()} == {False}
    assert [value.get("DependsOn") for value in instances.values()].count(None) == 1


def one_of(template: Template, resource_type: str) -> dict[str, Any]:
    (values,) = template.find_resources(resource_type).values()
    return dict(values)


def test_the_password_is_made_by_secrets_manager_and_stands_nowhere(stack: cdk.Stack) -> None:
    template = accounting(stack)
    secret = one_of(template, "AWS::SecretsManager::Secret")["Properties"]
    assert json.loads(secret["GenerateSecretString"]["SecretStringTemplate"]) == {"username": "slurm"}
    assert secret["GenerateSecretString"]["ExcludePunctuation"] is True
    password = one_of(template, "AWS::RDS::DBCluster")["Properties"]["MasterUserPassword"]
    assert text(password) == "{{resolve:secretsmanager:?:SecretString:password}}"


def test_only_nodes_reach_the_database(stack: cdk.Stack) -> None:
    template = accounting(stack)
    (rule,) = template.find_resources("AWS::EC2::SecurityGroupIngress").values()
    assert rule["Properties"]["SourceSecurityGroupId"] == "sg-0123456789abcdef0"
    assert (rule["Properties"]["FromPort"], rule["Properties"]["ToPort"]) == (3306, 3306)
    assert "SecurityGroupIngress" not in one_of(template, "AWS::EC2::SecurityGroup")["Properties"]


def test_a_database_for_a_sandbox_goes_with_its_stack(stack: cdk.Stack) -> None:
    template = accounting(stack, "destroy", standby=False, max_capacity=1)
    cluster = one_of(template, "AWS::RDS::DBCluster")
    assert (cluster["DeletionPolicy"], cluster["Properties"]["DeletionProtection"]) == ("Delete", False)
    assert len(template.find_resources("AWS::RDS::DBInstance")) == 1


@pytest.mark.parametrize("group", [None, "sg-0123456789abcdef1"])
def test_an_existing_database_is_only_opened(stack: cdk.Stack, group: str | None) -> None:
    existing = AdoptedDatabase(endpoint="db.example.com", port=3307, secret=SECRET, security_group=group)
    resources = accounting(stack, existing=existing).to_json().get("Resources", {})
    assert {value["Type"] for value in resources.values()} == (
        {"AWS::EC2::SecurityGroupIngress", "AWS::EC2::SecurityGroupEgress"} if group else set()
    )
    assert {value["Properties"]["FromPort"] for value in resources.values()} <= {3307}


@pytest.mark.parametrize("protection", ["retain", "destroy"])
def test_nag_has_nothing_to_say_that_nobody_answered(stack: cdk.Stack, protection: str) -> None:
    define(stack, protection)
    app = cast(cdk.App, cdk.App.of(stack))
    cdk.Validations.of(app).add_plugins(cdk_nag.AwsSolutionsChecks())
    # A finding makes the synthesis fail, after it has written the report.
    with suppress(RuntimeError):
        app.synth()
    report = json.loads((Path(app.outdir) / "validation-report.json").read_text())
    assert [str(violation) for plugin in report["pluginReports"] for violation in plugin["violations"]] == []
