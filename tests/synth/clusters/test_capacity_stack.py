"""Training plans in a stack of their own: what is bought or resolved, by whom, and who hears of the ends."""

from functools import cache
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_kms as kms
from aws_cdk.assertions import Template

from podwright.config.errors import InvalidSettings
from podwright.config.settings.plan_reminders import PlanReminders
from podwright.config.settings.plans import TrainingPlan
from podwright.constructs.hyperpod.reminder_topic import ReminderTopic
from podwright.constructs.hyperpod.training_plan.construct import RESOURCE_TYPE, TrainingPlans
from podwright.planning.purchase.purchase import SHIPPED
from synthesis import Synthesis, environment_of, synthesize
from synthesis import synthesis as synthesis_of

ARN = "arn:aws:sagemaker:us-west-2:111122223333:training-plan/q1"
EXISTS = f'{{arn: "{ARN}", zone: usw2-az2, end: 2027-03-01T11:30Z}}'
PURCHASE = (
    "{zone: usw2-az2, instance_type: ml.p5.48xlarge, count: 4, days: 28, start_after: 2027-01-04, "
    "end_before: 2027-02-10, purchase: true, max_upfront_usd: 900000}"
)
BASE = """
account: "111122223333"
region: us-west-2
network: {{zones: [usw2-az1, usw2-az2]}}
tags: {{cost-center: ai}}
plan_reminders: {{emails: [oncall@example.com]}}
training_plans:
  q1: {plan}
instance_groups:
  system: {{instance_type: ml.m5.4xlarge, count: 2}}
  one: {{instance_type: ml.p5.48xlarge, count: 2, min_count: 0, capacity: {{training_plan: q1}}}}
  two: {{instance_type: ml.p5.48xlarge, count: 1, min_count: 0, capacity: {{training_plan: q1}}}}
"""


@cache
def synthesis(plan: str) -> Synthesis:
    return synthesize(environment_of(BASE.format(plan=plan)))


def one(plan: str, resource_type: str) -> dict[str, Any]:
    (values,) = synthesis(plan).resources(resource_type).values()
    return values["Properties"]


def allowed(plan: str) -> dict[str, Any]:
    """Resources by action of the function's role."""
    statements = [
        statement
        for address, policy in synthesis(plan).resources("AWS::IAM::Policy").items()
        if address.startswith(("capacity/PlansHandler", "capacity/PlansInvokes"))
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
    ]
    listed = [(statement["Action"], statement["Resource"]) for statement in statements]
    return {
        action: resource
        for actions, resource in listed
        for action in (actions if isinstance(actions, list) else [actions])
    }


def test_a_plan_that_exists_is_only_looked_at() -> None:
    properties = one(EXISTS, RESOURCE_TYPE)
    assert (properties["Arn"], properties["End"]) == (ARN, "2027-03-01T11:30Z")
    assert "Request" not in properties
    actions = allowed(EXISTS)
    assert {action for action in actions if action.startswith("sagemaker:")} == {"sagemaker:DescribeTrainingPlan"}
    assert actions["sagemaker:DescribeTrainingPlan"] == ARN
    assert not any(action.startswith("dynamodb:") for action in actions)


def test_a_plan_to_buy_says_what_is_asked_for() -> None:
    properties = one(PURCHASE, RESOURCE_TYPE)
    assert "Arn" not in properties
    assert properties["Request"] == {
        "environment": "test",
        "plan": "q1",
        "zones": ["usw2-az2"],
        "instance_type": "ml.p5.48xlarge",
        "count": "4",
        "hours": "672",
        "start_after": "2027-01-04T00:00:00+00:00",
        "end_before": "2027-02-10T00:00:00+00:00",
        "max_upfront_usd": "900000",
    }
    assert "End" not in properties
    extended = PURCHASE.replace("purchase:", "end: 2027-03-01T11:30Z, purchase:")
    assert one(extended, RESOURCE_TYPE) == properties | {"End": "2027-03-01T11:30Z"}
    assert properties["Tags"] == {"podwright:environment": "test", "cost-center": "ai"}


def test_the_buyer_may_buy_this_plan_and_write_its_record() -> None:
    actions = allowed(PURCHASE)
    plan = "arn:aws:sagemaker:us-west-2:111122223333:training-plan/test-q1"
    assert actions["sagemaker:CreateTrainingPlan"] == [plan, f"{plan}-*"]
    table = "arn:aws:dynamodb:us-west-2:111122223333:table/podwright-training-plans"
    assert {actions[action] for action in actions if action.startswith("dynamodb:")} == {table}
    assert "dynamodb:DeleteItem" not in actions
    assert "dynamodb:DeleteTable" not in actions


@pytest.mark.parametrize("plan", [EXISTS, PURCHASE], ids=["exists", "purchase"])
def test_groups_wait_for_the_plan_and_are_known_to_it(plan: str) -> None:
    groups = one(plan, "AWS::SageMaker::Cluster")["InstanceGroups"]
    arns = [group["TrainingPlanArn"] for group in groups if "TrainingPlanArn" in group]
    assert len(arns) == 2
    assert all(arn == arns[0] for arn in arns)
    outputs = synthesis(plan).templates["capacity"]["Outputs"].values()
    (exported,) = [output for output in outputs if output.get("Export", {}).get("Name") == arns[0]["Fn::ImportValue"]]
    assert synthesis(plan).templates["capacity"]["Resources"][exported["Value"]["Ref"]]["Type"] == RESOURCE_TYPE
    assert one(plan, RESOURCE_TYPE)["Needs"] == [
        {"Group": "one", "Zone": "usw2-az2", "InstanceType": "ml.p5.48xlarge", "Count": 2},
        {"Group": "two", "Zone": "usw2-az2", "InstanceType": "ml.p5.48xlarge", "Count": 1},
    ]


def test_writing_the_arn_into_the_file_changes_neither_export_nor_group() -> None:
    bought, written = (synthesis(plan).templates for plan in (PURCHASE, EXISTS))
    assert bought["capacity"]["Outputs"] == written["capacity"]["Outputs"]
    assert bought["cluster"]["Resources"].keys() == written["cluster"]["Resources"].keys()
    assert one(PURCHASE, "AWS::SageMaker::Cluster") == one(EXISTS, "AWS::SageMaker::Cluster")


def test_reminders_are_encrypted_and_reach_who_is_named() -> None:
    topic = one(EXISTS, "AWS::SNS::Topic")
    assert "ExportsOutputFnGetAttKey" in str(topic["KmsMasterKeyId"])
    assert one(EXISTS, "AWS::SNS::TopicPolicy")["PolicyDocument"]["Statement"][0]["Effect"] == "Deny"
    subscription = one(EXISTS, "AWS::SNS::Subscription")
    assert (subscription["Protocol"], subscription["Endpoint"]) == ("email", "oncall@example.com")
    reminders = one(EXISTS, RESOURCE_TYPE)["Reminders"]
    resources = synthesis(EXISTS).templates["capacity"]["Resources"]
    assert resources[reminders["Group"]["Ref"]]["Type"] == "AWS::Scheduler::ScheduleGroup"
    assert resources[reminders["Topic"]["Ref"]]["Type"] == "AWS::SNS::Topic"
    role = resources[reminders["Role"]["Fn::GetAtt"][0]]["Properties"]["AssumeRolePolicyDocument"]["Statement"][0]
    assert role["Principal"] == {"Service": "scheduler.amazonaws.com"}
    assert role["Condition"] == {"StringEquals": {"aws:SourceAccount": "111122223333"}}
    assert reminders["ReclaimMinutes"] == 30


def test_the_function_ships_what_buys_and_nothing_else() -> None:
    functions = synthesis(EXISTS).resources("AWS::Lambda::Function")
    (function,) = [actual for address, actual in functions.items() if address.startswith("capacity/")]
    digest = function["Properties"]["Code"]["S3Key"].removesuffix(".zip")
    (folder,) = synthesis(EXISTS).directory.parent.glob(f"asset.{digest}")
    shipped = {file.relative_to(folder / "podwright").as_posix() for file in folder.rglob("*") if file.is_file()}
    handler = {f"constructs/hyperpod/training_plan/handler/{name}.py" for name in ("index", "fit", "reminders")}
    assert shipped == handler | {"constructs/common/handler_runtime/response.py"} | set(SHIPPED)


def test_without_a_plan_there_is_no_stack() -> None:
    assert "capacity" not in synthesis_of("sandbox").templates


@pytest.fixture
def parts(stack: cdk.Stack) -> dict[str, Any]:
    key = kms.Key.from_key_arn(
        stack, "Key", "arn:aws:kms:us-west-2:111122223333:key/01234567-89ab-cdef-0123-456789abcdef"
    )
    return {
        "environment": "test",
        "groups": {},
        "topic": ReminderTopic(stack, "Topic", settings=PlanReminders(), key=key),
        "key": key,
    }


def test_a_plan_that_nobody_reserved_is_refused(stack: cdk.Stack, parts: dict[str, Any]) -> None:
    expected = TrainingPlan(zone="usw2-az2", instance_type="ml.p5.48xlarge", count=4, days=28)
    with pytest.raises(InvalidSettings, match="CAP017"):
        TrainingPlans(stack, "Plans", plans={"q1": expected}, **parts)


def test_no_wait_is_longer_than_cloudformation_s(stack: cdk.Stack, parts: dict[str, Any]) -> None:
    plan = TrainingPlan(zone="usw2-az2", arn=ARN)
    with pytest.raises(ValueError, match="timeout is 61 minutes; CloudFormation waits 60 at most"):
        TrainingPlans(stack, "Plans", plans={"q1": plan}, timeout=cdk.Duration.minutes(61), **parts)


def test_names_are_allowed_as_an_arn_may_spell_them(stack: cdk.Stack, parts: dict[str, Any]) -> None:
    wish = {"instance_type": "ml.p5.48xlarge", "count": 1, "days": 1, "start_after": "2027-01-04"}
    plan = TrainingPlan.model_validate({"zone": "usw2-az2", "purchase": True, "max_upfront_usd": 1, **wish})
    TrainingPlans(stack, "Plans", plans={"H200": plan}, **parts)
    template = str(Template.from_stack(stack).to_json())
    assert "training-plan/test-H200-*" in template
    assert "training-plan/test-h200-*" in template
