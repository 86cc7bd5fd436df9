"""The pipeline: what happens in which order, who may do what, and what people are told."""

import json
import re
from typing import Any

import pytest

from podwright.config.catalog.preflight_checks import preflight_checks
from promotion_account import Promotion, of_type, promotion, statements
from promotion_project import GITHUB, OVERRIDE, PIPELINE, POSITIONS

BUCKET = PIPELINE.replace('{repository: acme/clusters, connection: "', '{bucket: acme-releases, key: x.zip} #{"')


@pytest.fixture(scope="module")
def promoted() -> Promotion:
    return promotion()


@pytest.fixture(scope="module")
def pipeline(promoted: Promotion) -> dict[str, Any]:
    return next(item for item in of_type(promoted.pipeline, "AWS::CodePipeline::Pipeline").values())


def actions(pipeline: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    return {stage["Name"]: sorted(stage["Actions"], key=lambda item: item["RunOrder"]) for stage in pipeline["Stages"]}


def orders(pipeline: dict[str, Any], stage: str) -> dict[str, int]:
    return {item["Name"]: item["RunOrder"] for item in actions(pipeline)[stage]}


def commands(promoted: Promotion, word: str) -> list[str]:
    """The commands of the project whose commands contain the word."""
    specs = [
        json.loads(project["Source"]["BuildSpec"])
        for project in of_type(promoted.pipeline, "AWS::CodeBuild::Project").values()
        if isinstance(project["Source"].get("BuildSpec"), str) and project["Source"]["BuildSpec"].startswith("{")
    ]
    [spec] = [spec for spec in specs if word in json.dumps(spec)]
    return [
        pipeline
        for phase in ("install", "build", "post_build")
        for pipeline in spec["phases"].get(phase, {}).get("commands", [])
    ]


def test_stages_come_in_the_order_of_the_file(pipeline: dict[str, Any]) -> None:
    assert list(actions(pipeline)) == [
        "Source", "Build", "UpdatePipeline", "Assets", "roles", "dev", "staging-west-staging-east", "prod",
    ]  # fmt: skip


def test_no_promotion_overtakes_another(pipeline: dict[str, Any]) -> None:
    assert (pipeline["ExecutionMode"], pipeline["PipelineType"], pipeline["RestartExecutionOnUpdate"]) == (
        "QUEUED",
        "V2",
        True,
    )


def test_everything_is_looked_at_before_anything_is_deployed_and_proved_after(pipeline: dict[str, Any]) -> None:
    promoted = orders(pipeline, "staging-west-staging-east")
    reads = {promoted[f"staging-{side}.{kind}"] for side in ("west", "east") for kind in ("preflight", "effects")}
    deploys = {order for name, order in promoted.items() if name.endswith((".Prepare", ".Deploy"))}
    gates = {order for name, order in promoted.items() if name.endswith(".gate")}
    assert reads == {1}
    assert len([name for name in promoted if name.endswith(".gate")]) == 2
    assert min(deploys) > 1
    assert max(deploys) < min(gates)


def test_a_person_consents_after_the_looks_and_before_the_deployment(pipeline: dict[str, Any]) -> None:
    promoted = orders(pipeline, "prod")
    first = min(order for name, order in promoted.items() if name.endswith(".Prepare"))
    assert promoted["prod.preflight"] == promoted["prod.effects"] == 1
    assert promoted["prod.approval"] == 2 < first
    assert not [
        name for stage in ("dev", "staging-west-staging-east") for name in orders(pipeline, stage) if "approval" in name
    ]


def test_who_consents_sees_the_effects(pipeline: dict[str, Any]) -> None:
    [approval] = [item for item in actions(pipeline)["prod"] if item["Name"] == "prod.approval"]
    link = json.dumps(approval["Configuration"]["ExternalEntityLink"])
    assert "prefix=#{codepipeline.PipelineExecutionId}/" in link
    assert "console.aws.amazon.com/s3/buckets/" in link
    assert "effects.json" in approval["Configuration"]["CustomData"]


def test_effects_are_those_of_the_templates_that_are_deployed(promoted: Promotion, pipeline: dict[str, Any]) -> None:
    messages = commands(promoted, "podwright diff prod")
    assert any(
        "podwright diff prod --out evidence/prod/effects.json --require-approval --assembly ../assembly" in pipeline
        for pipeline in messages
    )
    [effects] = [item for item in actions(pipeline)["prod"] if item["Name"] == "prod.effects"]
    [prepare] = [item for item in actions(pipeline)["prod"] if item["Name"] == "network.Prepare"]
    assert {"Name": "build_templates"} in effects["InputArtifacts"]
    assert prepare["InputArtifacts"] == [{"Name": "build_templates"}]


def test_cloudformation_reads_no_assets(promoted: Promotion, pipeline: dict[str, Any]) -> None:
    """Its actions take 256 MB of input, less than what nodes install from."""
    deploys = [
        item
        for stage in actions(pipeline).values()
        for item in stage
        if item["ActionTypeId"]["Provider"] == "CloudFormation" and item.get("InputArtifacts")
    ]
    assert len(deploys) == 4 + 2 * 4
    for item in deploys:
        assert "build_Output" not in json.dumps(item)
        assert item["Configuration"]["TemplatePath"].startswith("build_templates::assembly-")
        assert item["Configuration"].get("TemplateConfiguration", "build_templates::").startswith("build_templates::")
    copied = commands(promoted, "podwright pipeline synth")
    assert any("-not -path './asset.*'" in pipeline and "../templates" in pipeline for pipeline in copied)


def test_the_build_checks_tests_synthesizes_and_waits(promoted: Promotion) -> None:
    messages = commands(promoted, "podwright pipeline synth")
    words = ["pip install", "s3 sync", "podwright check", "pytest tests", "podwright pipeline synth", "pipeline wait"]
    locations = [next(number for number, pipeline in enumerate(messages) if word in pipeline) for word in words]
    assert locations == sorted(locations)


def test_gates_follow_protection_and_the_record_of_what_is_deployed(promoted: Promotion) -> None:
    messages = commands(promoted, "podwright gate prod")
    words = ["deployed/prod/project.zip", "podwright pipeline protect prod", "podwright gate prod cluster canary"]
    locations = [next(number for number, pipeline in enumerate(messages) if word in pipeline) for word in words]
    assert locations == sorted(locations)
    # Also after a failure: CodeBuild runs the last phase whatever became of the one before.
    assert 'aws s3 cp --recursive --only-show-errors evidence "s3://$EVIDENCE_BUCKET/$EXECUTION/"' in messages[-1]


def test_what_is_installed_is_pinned(promoted: Promotion) -> None:
    text = (
        json.dumps(of_type(promoted.pipeline, "AWS::CodeBuild::Project"))
        + promoted.directory.joinpath(
            next(file.name for file in promoted.directory.glob("buildspec-*.yaml"))
        ).read_text()
    )
    assert set(re.findall(r"npm install -g ([\w-]+@?[\d.]*)", text)) == {"aws-cdk@2.1146.1", "cdk-assets@4.7.3"}
    assert "latest" not in text


@pytest.mark.parametrize("name", POSITIONS)
@pytest.mark.parametrize("location", ["read", "prove"])
def test_a_build_takes_on_one_role_and_that_role_trusts_it_alone(promoted: Promotion, name: str, location: str) -> None:
    account = POSITIONS[name][0]
    [builder] = [
        key
        for key, role in of_type(promoted.pipeline, "AWS::IAM::Role").items()
        if role.get("RoleName") == f"podwright-pipeline-{name}-{location}"
    ]
    taken = [item["Resource"] for item in statements(promoted.pipeline, builder) if item["Action"] == "sts:AssumeRole"]
    assert taken == [f"arn:aws:iam::{account}:role/podwright-{name}-{location}"]
    roles = {role["RoleName"]: role for role in of_type(promoted.access(name), "AWS::IAM::Role").values()}
    assert set(roles) == {f"podwright-{name}-read", f"podwright-{name}-prove"}
    [trust] = roles[f"podwright-{name}-{location}"]["AssumeRolePolicyDocument"]["Statement"]
    assert json.dumps(trust["Principal"]).count("012345678901") == 1
    expected = f"arn:aws:iam::012345678901:role/podwright-pipeline-{name}-{location}"
    assert trust["Condition"] == {"ArnEquals": {"aws:PrincipalArn": expected}}


def listed(statement: dict[str, Any]) -> list[str]:
    return statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]


def test_the_role_that_reads_does_nothing_else_and_all_that_preflight_asks(promoted: Promotion) -> None:
    allowed = {action for item in statements(promoted.access("prod"), "RolesRead") for action in listed(item)}
    changing = re.compile(r"^\w+:(?!Get|List|Describe|Simulate|BatchGet)")
    assert [action for action in allowed if changing.match(action)] == []
    assert {action for check in preflight_checks().values() for action in check.actions} <= allowed


def test_the_role_that_proves_changes_only_what_is_the_environments(promoted: Promotion) -> None:
    changing = re.compile(r"^\w+:(?!Get|List|Describe|BatchGet|QueryMetrics|Decrypt)")
    for item in statements(promoted.access("prod"), "RolesProve"):
        if [action for action in listed(item) if changing.match(action)]:
            tag = item.get("Condition", {}).get("StringEquals", {}).get("aws:ResourceTag/podwright:environment")
            named = json.dumps(item["Resource"])
            assert tag == "prod" or "stack/prod-*" in named or "session/*" in named or "document/" in named, item


def test_builds_cannot_write_evidence_about_another_environment(promoted: Promotion) -> None:
    [builder] = [
        key
        for key, role in of_type(promoted.pipeline, "AWS::IAM::Role").items()
        if role.get("RoleName") == "podwright-pipeline-dev-prove"
    ]
    puts = [item["Resource"] for item in statements(promoted.pipeline, builder) if "s3:PutObject" in listed(item)]
    assert puts
    assert all("/*/dev/*" in json.dumps(item) or "/deployed/dev/" in json.dumps(item) for item in puts)


def test_a_failed_stage_an_approval_and_drift_are_told_with_what_to_do(promoted: Promotion) -> None:
    rules = {
        name: rule
        for name, rule in of_type(promoted.pipeline, "AWS::Events::Rule").items()
        if name.startswith("Notices")
    }
    texts = {name: rule["Targets"][0]["InputTransformer"]["InputTemplate"] for name, rule in rules.items()}
    assert len(texts) == 3
    [failed] = [text for name, text in texts.items() if "Failed" in name]
    assert "Retry stage" in failed
    assert "revert the commit" in failed
    for name, rule in rules.items():
        transformer = rule["Targets"][0]["InputTransformer"]
        # EventBridge refuses a template with a name that no path gives it.
        assert set(re.findall(r"<([\w-]+)>", transformer["InputTemplate"])) <= set(transformer["InputPathsMap"]), name
        assert all(
            pipeline.startswith('"') and pipeline.endswith('"')
            for pipeline in transformer["InputTemplate"].splitlines()
        )
        assert transformer["InputTemplate"].count('"') == 2 * len(transformer["InputTemplate"].splitlines())


def test_drift_is_looked_for_from_the_files_that_are_deployed(promoted: Promotion) -> None:
    projects = of_type(promoted.pipeline, "AWS::CodeBuild::Project")
    reads = {name: item for name, item in projects.items() if name.startswith("Drift")}
    assert len(reads) == len(POSITIONS)
    for item in reads.values():
        assert re.search(r"/deployed/[a-z-]+/project\.zip", json.dumps(item["Source"]["Location"]))
    schedules = [
        item for item in of_type(promoted.pipeline, "AWS::Events::Rule").values() if "ScheduleExpression" in item
    ]
    assert {item["ScheduleExpression"] for item in schedules} == {"cron(0 6 * * ? *)"}
    assert len(schedules) == len(POSITIONS)


def test_the_connection_is_used_by_both_names(promoted: Promotion) -> None:
    used = [
        item for item in statements(promoted.pipeline, "LineSource") if "UseConnection" in json.dumps(item["Action"])
    ]
    assert {action for item in used for action in listed(item)} == {
        "codestar-connections:UseConnection",
        "codeconnections:UseConnection",
    }


def test_another_region_has_a_bucket_of_its_own(promoted: Promotion, pipeline: dict[str, Any]) -> None:
    assert {item["Region"] for item in pipeline["ArtifactStores"]} == {"us-west-2", "us-east-1"}
    assert promoted.template("cross-region-stack-*us-east-1.template.json")


def test_a_zip_in_a_bucket_starts_the_pipeline_by_its_event() -> None:
    template = promotion(BUCKET).pipeline
    [rule] = [item for item in of_type(template, "AWS::Events::Rule").values() if "aws.s3" in json.dumps(item)]
    assert rule["EventPattern"]["detail"] == {"bucket": {"name": ["acme-releases"]}, "object": {"key": ["x.zip"]}}
    assert "codepipeline" in json.dumps(rule["Targets"])


def test_github_needs_no_pipeline_and_its_roles_trust_branch_or_environment() -> None:
    promoted = promotion(GITHUB)
    assert not (promoted.directory / "pipeline.template.json").exists()
    roles = {role["RoleName"]: role for role in of_type(promoted.access("prod"), "AWS::IAM::Role").values()}
    subjects = {}
    for name, role in roles.items():
        [trust] = role["AssumeRolePolicyDocument"]["Statement"]
        assert trust["Action"] == "sts:AssumeRoleWithWebIdentity"
        known = trust["Condition"]["StringEquals"]
        assert known["token.actions.githubusercontent.com:aud"] == "sts.amazonaws.com"
        subjects[name.removeprefix("podwright-prod-")] = known["token.actions.githubusercontent.com:sub"]
        assert role["MaxSessionDuration"] == 21600
    assert subjects == {
        "read": "repo:acme/clusters:ref:refs/heads/main",
        "prove": "repo:acme/clusters:environment:prod",
        "deploy": "repo:acme/clusters:environment:prod",
    }
    deploys = statements(promoted.access("prod"), "RolesDeploy")
    taken = [json.dumps(item["Resource"]) for item in deploys if "sts:AssumeRole" in listed(item)]
    assert all(
        "role/cdk-hnb659fds-deploy-role" in item or "role/cdk-hnb659fds-file-publishing" in item for item in taken
    )


def test_an_account_gets_githubs_provider_once() -> None:
    promoted = promotion(GITHUB)
    existing = [name for name in POSITIONS if of_type(promoted.access(name), "AWS::IAM::OIDCProvider")]
    assert existing == ["dev", "staging-west", "prod"]


def test_an_execution_starts_whenever_quotas_begin_and_end(promoted: Promotion) -> None:
    dated = promotion(PIPELINE, OVERRIDE).pipeline
    rules = of_type(dated, "AWS::Events::Rule")
    starts = {rule["ScheduleExpression"]: rule["Targets"] for name, rule in rules.items() if "Override" in name}
    assert list(starts) == ["cron(0 8 4 1 ? *)", "cron(0 0 1 2 ? *)"]
    for [target] in starts.values():
        assert "codepipeline" in json.dumps(target["Arn"])
        assert target["RoleArn"]["Fn::GetAtt"][0].startswith("OverrideStarter")
    [allowed] = statements(dated, "OverrideStarter")
    assert allowed["Action"] == "codepipeline:StartPipelineExecution"
    assert not [name for name in of_type(promoted.pipeline, "AWS::Events::Rule") if "Override" in name]
