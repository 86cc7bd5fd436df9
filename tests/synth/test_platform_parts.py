"""Parts of the platform: roles first, prerequisites before what needs them, and the same words as AWS's own set-up."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import aws_cdk as cdk
import cdk_nag
import pytest
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Template

from podwright.config.settings.cluster import Eks
from podwright.config.settings.governance.teams import Team
from podwright.config.settings.platform import InferenceOperator, Mlflow, TrainingJobQueue
from podwright.constructs.eks.addons import addon
from podwright.constructs.platform.inference_operator import InferenceEndpoints
from podwright.constructs.platform.mlflow import MlflowApp
from podwright.constructs.platform.spaces import Spaces
from podwright.constructs.platform.training_job_queue import TrainingJobs
from podwright.constructs.platform.training_operator import TrainingOperator
from podwright.stacks.feature_flags import FEATURE_FLAGS

HYPERPOD = "arn:aws:sagemaker:us-west-2:111122223333:cluster/abcdefghijkl"
ROLE = "arn:aws:iam::111122223333:role/Inference"
KEY = "arn:aws:kms:us-west-2:111122223333:key/01234567-89ab-cdef-0123-456789abcdef"
QUEUE = {
    "capacity": {"ml.p5.48xlarge": 16, "ml.g5.48xlarge": 4},
    "quota": {
        "llm": {"ml.p5.48xlarge": 10, "ml.g5.48xlarge": 4},
        "vision": {"ml.p5.48xlarge": 4},
        "audio": {"ml.p5.48xlarge": 2},
    },
}
TEAMS = {
    "llm": Team(share="lend_and_borrow", borrow_limit_percent=150),
    "vision": Team(share="lend", preempt="never"),
    "audio": Team(share="dont_lend"),
    "elsewhere": Team(),
}
Resources = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[cdk.Stack, Resources]:
    """All parts in one stack, with what cdk-nag says of it."""
    app = cdk.App(outdir=str(tmp_path_factory.mktemp("platform")), context=FEATURE_FLAGS)
    stack = cdk.Stack(app, "Test", env=cdk.Environment(account="111122223333", region="us-west-2"))
    eks = Eks(version="1.34", addons={"cert-manager": "v1.18.2-eksbuild.2"})
    certificates = addon(stack, "cert-manager", eks, "prod", {"webhook": {"tolerations": []}})
    TrainingOperator(stack, "Operator", settings=eks, cluster_name="prod", hyperpod_arn=HYPERPOD, after=[certificates])
    Spaces(stack, "Spaces", settings=eks, cluster_name="prod", hyperpod_arn=HYPERPOD, environment="prod")
    inference = InferenceOperator(
        execution_role=ROLE,
        tls_bucket="hyperpod-tls-acme",
        load_balancer_role=ROLE + "Alb",
        autoscaler_role=ROLE + "Keda",
        s3_driver_role=ROLE + "S3",
    )
    InferenceEndpoints(
        stack,
        "Inference",
        settings=inference,
        eks=eks,
        cluster_name="prod",
        hyperpod_arn=HYPERPOD,
        after=[certificates],
    )
    MlflowApp(
        stack,
        "Mlflow",
        name="prod",
        settings=Mlflow(register_models=True),
        bucket=s3.Bucket.from_bucket_name(stack, "Bucket", "runs"),
        prefix="mlflow",
        key=kms.Key.from_key_arn(stack, "Key", KEY),
    )
    TrainingJobs(stack, "Queue", name="prod-train", settings=TrainingJobQueue.model_validate(QUEUE), teams=TEAMS)
    cdk.Validations.of(app).add_plugins(cdk_nag.AwsSolutionsChecks())
    return stack, Template.from_stack(stack).to_json()["Resources"]


def of(resources: Resources, resource_type: str, **properties: Any) -> dict[str, Any]:
    """The one resource of a type with such properties, its logical id as `id`."""
    (actual,) = [
        {"id": name, **resource}
        for name, resource in resources.items()
        if resource["Type"] == resource_type and properties.items() <= resource["Properties"].items()
    ]
    return actual


def test_the_training_operator_comes_after_its_role_and_cert_manager(made: tuple[cdk.Stack, Resources]) -> None:
    _, resources = made
    operator = of(resources, "AWS::EKS::Addon", AddonName="amazon-sagemaker-hyperpod-training-operator")
    identity = of(
        resources,
        "AWS::EKS::PodIdentityAssociation",
        Namespace="aws-hyperpod",
        ServiceAccount="hp-training-operator-controller-manager",
    )
    certificates = of(resources, "AWS::EKS::Addon", AddonName="cert-manager")
    assert set(operator["DependsOn"]) == {identity["id"], certificates["id"]}
    assert operator["Properties"]["AddonVersion"] == "v1.2.1-eksbuild.1"
    assert "PodIdentityAssociations" not in operator["Properties"], "version 1.2.1 refuses the inline form"
    assert certificates["Properties"]["AddonVersion"] == "v1.18.2-eksbuild.2"
    assert json.loads(certificates["Properties"]["ConfigurationValues"]) == {"webhook": {"tolerations": []}}


def test_the_training_operator_may_look_at_nodes_of_its_cluster_only(made: tuple[cdk.Stack, Resources]) -> None:
    _, resources = made
    (policy,) = [item for name, item in resources.items() if name.startswith("OperatorPodsRoleDefaultPolicy")]
    assert policy["Properties"]["PolicyDocument"]["Statement"] == [
        {"Action": "sagemaker:DescribeClusterNode", "Effect": "Allow", "Resource": HYPERPOD}
    ]


def test_sessions_of_spaces_use_a_role_that_the_controller_may_pass(made: tuple[cdk.Stack, Resources]) -> None:
    stack, resources = made
    spaces = of(resources, "AWS::EKS::Addon", AddonName="amazon-sagemaker-spaces")
    text = stack.resolve(spaces["Properties"]["ConfigurationValues"])["Fn::Join"][1]
    assert "".join(part if isinstance(part, str) else "ROLE" for part in text) == json.dumps(
        {
            "jupyter-k8s": {"workspacePodWatching": {"enable": True}},
            "jupyter-k8s-aws-hyperpod": {"remoteAccess": {"enabled": True, "ssmManagedNodeRole": "ROLE"}},
        },
        separators=(",", ":"),
    )
    session = of(resources, "AWS::IAM::Role", RoleName="sagemaker-space-prod-us-west-2")
    assert session["id"] in json.dumps(text)
    (statement,) = session["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    assert statement["Condition"] == {
        "StringEquals": {"aws:SourceAccount": "111122223333"},
        "ArnEquals": {"aws:SourceArn": "arn:aws:ssm:us-west-2:111122223333:*"},
    }
    driver = of(resources, "AWS::EKS::Addon", AddonName="aws-ebs-csi-driver")
    assert driver["id"] in spaces["DependsOn"], "volumes of spaces come from it"


def test_the_inference_operator_is_told_its_roles(made: tuple[cdk.Stack, Resources]) -> None:
    _, resources = made
    operator = of(resources, "AWS::EKS::Addon", AddonName="amazon-sagemaker-hyperpod-inference")
    assert json.loads(operator["Properties"]["ConfigurationValues"]) == {
        "executionRoleArn": ROLE,
        "tlsCertificateS3Bucket": "hyperpod-tls-acme",
        "hyperpodClusterArn": HYPERPOD,
        "alb": {"enabled": True, "serviceAccount": {"create": True, "roleArn": ROLE + "Alb"}},
        "keda": {"enabled": True, "auth": {"aws": {"irsa": {"enabled": True, "roleArn": ROLE + "Keda"}}}},
    }
    driver = of(resources, "AWS::EKS::Addon", AddonName="aws-mountpoint-s3-csi-driver")
    assert driver["Properties"]["ServiceAccountRoleArn"] == ROLE + "S3"
    before = {
        driver["id"],
        *(of(resources, "AWS::EKS::Addon", AddonName=n)["id"] for n in ("cert-manager", "metrics-server")),
    }
    assert set(operator["DependsOn"]) == before


def test_mlflow_reaches_its_prefix_and_no_more(made: tuple[cdk.Stack, Resources]) -> None:
    stack, resources = made
    app = of(resources, "AWS::SageMaker::MlflowApp")["Properties"]
    assert (app["ArtifactStoreUri"], app["ModelRegistrationMode"]) == (
        "s3://runs/mlflow",
        "AutoModelRegistrationEnabled",
    )
    (policy,) = [item for name, item in resources.items() if name.startswith("MlflowRoleDefaultPolicy")]
    touched = {
        action: "".join(part if isinstance(part, str) else "aws" for part in where["Fn::Join"][1])
        if isinstance(where := statement["Resource"], dict)
        else where
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        for action in ([statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"])
    }
    assert touched["s3:PutObject"] == "arn:aws:s3:::runs/mlflow/*"
    assert touched["s3:ListBucket"] == "arn:aws:s3:::runs"
    assert touched["kms:GenerateDataKey"] == KEY
    assert touched["sagemaker:CreateModelPackage"] == "arn:aws:sagemaker:us-west-2:111122223333:model-package/*"
    assert stack.account not in touched["s3:PutObject"]


def test_a_queue_has_a_share_for_each_of_its_teams(made: tuple[cdk.Stack, Resources]) -> None:
    _, resources = made
    environment = of(resources, "AWS::Batch::ServiceEnvironment")
    assert environment["Properties"]["CapacityLimits"] == [
        {"CapacityUnit": "ml.g5.48xlarge", "MaxCapacity": 4},
        {"CapacityUnit": "ml.p5.48xlarge", "MaxCapacity": 16},
    ]
    queue = of(resources, "AWS::Batch::JobQueue")
    assert queue["Properties"]["ServiceEnvironmentOrder"] == [
        {"Order": 1, "ServiceEnvironment": {"Fn::GetAtt": [environment["id"], "ServiceEnvironmentArn"]}}
    ]
    shares = {
        item["Properties"]["QuotaShareName"]: item["Properties"]
        for item in resources.values()
        if item["Type"] == "AWS::Batch::QuotaShare"
    }
    assert {
        name: (
            {limit["CapacityUnit"]: limit["MaxCapacity"] for limit in share["CapacityLimits"]},
            share["ResourceSharingConfiguration"],
            share["PreemptionConfiguration"]["InSharePreemption"],
        )
        for name, share in shares.items()
    } == {
        "llm": (QUEUE["quota"]["llm"], {"Strategy": "LEND_AND_BORROW", "BorrowLimit": 150}, "ENABLED"),
        "vision": (QUEUE["quota"]["vision"], {"Strategy": "LEND"}, "DISABLED"),
        "audio": (QUEUE["quota"]["audio"], {"Strategy": "RESERVE"}, "ENABLED"),
    }


def test_a_job_at_the_head_is_terminated_in_time(stack: cdk.Stack) -> None:
    settings = TrainingJobQueue.model_validate(QUEUE | {"at_the_head": 3600, "state": "disabled"})
    TrainingJobs(stack, "Queue", name="train", settings=settings, teams={})
    queue = of(Template.from_stack(stack).to_json()["Resources"], "AWS::Batch::JobQueue")["Properties"]
    (limit,) = queue["JobStateTimeLimitActions"]
    # Batch knows no other action for queues of training jobs.
    assert (limit["Action"], limit["MaxTimeSeconds"], limit["State"]) == ("TERMINATE", 3600, "RUNNABLE")
    assert queue["State"] == "DISABLED"


def test_cdk_nag_has_nothing_left_to_say(made: tuple[cdk.Stack, Resources]) -> None:
    app = cast(cdk.App, cdk.App.of(made[0]))
    with suppress(RuntimeError):
        app.synth()
    report = json.loads((Path(app.outdir) / "validation-report.json").read_text())
    assert [str(violation) for plugin in report["pluginReports"] for violation in plugin["violations"]] == []
