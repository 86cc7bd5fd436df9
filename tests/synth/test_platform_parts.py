"""Parts of the platform: roles first, prerequisites before what needs them, and the same words as AWS's own set-up."""

import json
import re
import tarfile
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import aws_cdk as cdk
import cdk_nag
import pytest
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Template

from podwright.config.errors import InvalidSettings
from podwright.config.settings.cluster import Eks
from podwright.config.settings.governance.teams import Team
from podwright.config.settings.platform import InferenceOperator, Mlflow, TrainingJobQueue
from podwright.constructs.eks.addons import addon
from podwright.constructs.platform.inference_operator import InferenceEndpoints
from podwright.constructs.platform.inference_roles import load_balancer_permissions
from podwright.constructs.platform.mlflow import MlflowApp
from podwright.constructs.platform.spaces import Spaces
from podwright.constructs.platform.training_job_queue import TrainingJobs
from podwright.constructs.platform.training_operator import TrainingOperator
from podwright.constructs.platform.training_roles import TrainingRole
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
    bucket, key = s3.Bucket.from_bucket_name(stack, "Jobs", "runs"), kms.Key.from_key_arn(stack, "JobsKey", KEY)
    TrainingRole(stack, "Training", team="llm", bucket=bucket, key=key, inputs=["s3://data/llm/", "s3://open"])
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


ISSUER = "https://oidc.eks.us-west-2.amazonaws.com/id/0123456789ABCDEF0123456789ABCDEF"
PROVIDER = ISSUER.replace("https://", "arn:aws:iam::111122223333:oidc-provider/")


def inference(stack: cdk.Stack, settings: InferenceOperator, **more: Any) -> Resources:
    """Resources of a stack with the operator alone."""
    arguments = {"eks": Eks(), "cluster_name": "prod", "hyperpod_arn": HYPERPOD, **more}
    InferenceEndpoints(stack, "Inference", settings=settings, **arguments)
    return Template.from_stack(stack).to_json()["Resources"]


def operators(settings: InferenceOperator) -> Resources:
    """Resources with roles that are made, for models of one bucket."""
    app = cdk.App(context=FEATURE_FLAGS)
    stack = cdk.Stack(app, "Operator", env=cdk.Environment(account="111122223333", region="us-west-2"))
    cdk.Validations.of(app).add_plugins(cdk_nag.AwsSolutionsChecks())
    key = kms.Key.from_key_arn(stack, "Key", KEY)
    return inference(stack, settings, issuer=ISSUER, environment="prod", models=["models"], key=key)


def text(value: Any) -> str:
    """A property without its references, which stand as {}."""
    return value if isinstance(value, str) else "".join(v if isinstance(v, str) else "{}" for v in value["Fn::Join"][1])


def statements(resources: Resources, name: str) -> list[dict[str, Any]]:
    """What the policy of a role of the operator says."""
    policies = [item for key, item in resources.items() if key.startswith(f"InferenceRoles{name}DefaultPolicy")]
    return [item for policy in policies for item in policy["Properties"]["PolicyDocument"]["Statement"]]


def test_each_role_that_nobody_names_trusts_one_service_account() -> None:
    resources = operators(InferenceOperator())
    assert of(resources, "AWS::IAM::OIDCProvider")["Properties"] == {
        "ClientIdList": ["sts.amazonaws.com"],
        "Url": ISSUER,
    }
    system = "system:serviceaccount:hyperpod-inference-system"
    host = PROVIDER.partition("oidc-provider/")[2]
    expected = {
        "Operator": f"{system}:hyperpod-inference-controller-manager",
        "LoadBalancers": f"{system}:aws-load-balancer-controller",
        "Autoscaler": f"{system}:keda-operator",
        "S3Driver": "system:serviceaccount:kube-system:s3-csi-driver-sa",
    }
    for name, account in expected.items():
        (role,) = [item for key, item in resources.items() if re.fullmatch(f"InferenceRoles{name}[0-9A-F]{{8}}", key)]
        first, *others = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
        assert first["Condition"] == {"StringEquals": {f"{host}:aud": "sts.amazonaws.com", f"{host}:sub": account}}
        services = [item["Principal"]["Service"] for item in others]
        assert services == (["sagemaker.amazonaws.com"] if name == "Operator" else [])


def test_an_operator_hands_its_own_role_to_sagemaker_and_no_other() -> None:
    resources = operators(InferenceOperator())
    (role,) = [key for key in resources if re.fullmatch("InferenceRolesOperator[0-9A-F]{8}", key)]
    assert [item["Action"] for item in statements(resources, "Operator")] == ["iam:PassRole"]
    (passed,) = statements(resources, "Operator")
    assert passed["Resource"] == {"Fn::GetAtt": [role, "Arn"]}
    assert passed["Condition"] == {"StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}}


def test_a_driver_reads_the_buckets_of_models_alone() -> None:
    driver = statements(operators(InferenceOperator()), "S3Driver")
    assert {(item["Action"], text(item["Resource"])) for item in driver} == {
        ("s3:ListBucket", "arn:aws:s3:::models"),
        ("s3:GetObject", "arn:aws:s3:::models/*"),
        ("kms:Decrypt", KEY),
    }


def test_roles_of_ones_own_and_their_provider_win() -> None:
    named = {"execution_role": ROLE, "load_balancer_role": ROLE + "Alb", "autoscaler_role": ROLE + "Keda"}
    resources = operators(InferenceOperator.model_validate({**named, "oidc_provider": PROVIDER}))
    made = [item["Type"] for item in resources.values() if item["Type"].startswith("AWS::IAM")]
    assert sorted(made) == ["AWS::IAM::Policy", "AWS::IAM::Role"], "the driver's alone, and no provider"
    (role,) = [item for item in resources.values() if item["Type"] == "AWS::IAM::Role"]
    (trust,) = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Federated": PROVIDER}
    operator = of(resources, "AWS::EKS::Addon", AddonName="amazon-sagemaker-hyperpod-inference")
    values = operator["Properties"]["ConfigurationValues"]
    assert f'"executionRoleArn":"{ROLE}"' in text(values)
    bucket = of(resources, "AWS::S3::Bucket")
    assert bucket["Properties"]["BucketName"] == "hyperpod-tls-prod-111122223333-us-west-2"
    driver = of(resources, "AWS::EKS::Addon", AddonName="aws-mountpoint-s3-csi-driver")
    assert {bucket["id"], *(key for key in resources if key.startswith("InferenceRoles"))} <= {
        *driver.get("DependsOn", ())
    }
    assert driver["id"] in operator["DependsOn"]


def test_without_a_provider_nobody_could_take_a_role_on() -> None:
    stack = cdk.Stack(cdk.App(context=FEATURE_FLAGS), "Operator")
    with pytest.raises(InvalidSettings, match="no OIDC provider is known"):
        inference(stack, InferenceOperator(tls_bucket="hyperpod-tls-acme"))
    with pytest.raises(InvalidSettings, match="no bucket for certificates"):
        inference(cdk.Stack(), InferenceOperator(), issuer=ISSUER)


def test_a_load_balancer_controller_may_do_what_its_installation_names() -> None:
    """The CDK carries the policy that the controller's own installation guide attaches."""
    library = next((Path(cdk.__file__).parent / "_jsii").glob("aws-cdk-lib@*.jsii.tgz"))
    with tarfile.open(library) as archive:
        file = archive.extractfile("package/aws-eks-v2/lib/addons/alb-iam_policy-v2.13.0.json")
        assert file
        document = json.load(file)

    def normal(actions: Any, on: Any, conditions: Any) -> str:
        equals = {key: listed(values) for key, values in (conditions or {}).get("StringEquals", {}).items()}
        arns = sorted(arn.removeprefix("arn:aws:") for arn in listed(on))
        return json.dumps([sorted(listed(actions)), arns, equals, (conditions or {}).get("Null", {})], sort_keys=True)

    published = {normal(item["Action"], item["Resource"], item.get("Condition")) for item in document["Statement"]}
    assert {normal(*each) for each in load_balancer_permissions()} == published


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


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


def test_training_jobs_of_a_team_write_below_its_name_and_read_their_inputs(made: tuple[cdk.Stack, Resources]) -> None:
    _, resources = made
    (policy,) = [item for name, item in resources.items() if name.startswith("TrainingRoleDefaultPolicy")]
    touched: dict[str, list[str]] = {}
    for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
        actions = [statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"]
        for action in actions:
            touched.setdefault(action, []).append(str(statement["Resource"]))
    assert len(touched["s3:PutObject"]) == 1
    assert "runs/llm/*" in touched["s3:PutObject"][0]
    read = re.findall(r":s3:::([a-z/]+\*)", " ".join(touched["s3:GetObject"]))
    assert sorted(read) == ["data/llm/*", "open/*", "runs/llm/*"]
    (role,) = [item for name, item in resources.items() if name.startswith("TrainingRole") and "Role" in item["Type"]]
    (trust,) = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "sagemaker.amazonaws.com"}
    assert trust["Condition"] == {"StringEquals": {"aws:SourceAccount": "111122223333"}}
