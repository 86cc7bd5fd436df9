"""The stack of training plans in the sandbox: its function runs for real, buys once, and finds that purchase again."""

import io
import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import aws_cdk as cdk
import pytest
from aws_cdk import aws_kms as kms

from podwright.config.settings.groups import InstanceGroup
from podwright.config.settings.plan_reminders import PlanReminders
from podwright.config.settings.plans import TrainingPlan
from podwright.constructs.hyperpod.reminder_topic import ReminderTopic
from podwright.constructs.hyperpod.training_plan.construct import TrainingPlans
from podwright.operations.aws.sandbox_server import Running
from podwright.stacks.feature_flags import FEATURE_FLAGS
from sandbox_stacks import StackUnderTest, turn

Aws = Callable[[str], Any]
REGION, ACCOUNT, BUCKET = "us-west-2", "123456789012", "training-plan-assets"
TYPE = "ml.p5e.48xlarge"


@pytest.fixture
def template(aws: Aws, tmp_path: Path) -> Iterator[Callable[..., dict[str, Any]]]:
    """Gives resources and outputs of the stack for a plan and the number of instances that a group wants of it."""
    s3 = aws("s3")
    s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})

    def synthesized(plan: dict[str, Any], count: int) -> dict[str, Any]:
        app = cdk.App(outdir=str(tmp_path / f"out-{count}-{'arn' in plan}"), context=FEATURE_FLAGS)
        synthesizer = cdk.DefaultStackSynthesizer(file_assets_bucket_name=BUCKET, generate_bootstrap_version_rule=False)
        environment = cdk.Environment(account=ACCOUNT, region=REGION)
        stack = cdk.Stack(app, "Capacity", env=environment, synthesizer=synthesizer)
        key = cast(kms.IKey, kms.Key(stack, "Key"))
        topic = ReminderTopic(stack, "Topic", settings=PlanReminders(emails=("oncall@example.com",)), key=key)
        group = {"instance_type": TYPE, "count": count, "zone": plan["zone"], "capacity": {"training_plan": "q1"}}
        plans = TrainingPlans(
            stack,
            "Plans",
            environment="deployed",
            plans={"q1": TrainingPlan.model_validate(plan)},
            groups={"gpu": InstanceGroup.model_validate(group)},
            topic=topic,
            key=key,
            tags={"team": "x"},
        )
        cdk.CfnOutput(stack, "Arn", value=plans.arns["q1"])
        app.synth()
        for folder in Path(app.outdir).glob("asset.*"):
            content = io.BytesIO()
            with zipfile.ZipFile(content, "w") as archive:
                for file in (path for path in folder.rglob("*") if path.is_file()):
                    archive.write(file, file.relative_to(folder))
            s3.put_object(Bucket=BUCKET, Key=f"{folder.name.removeprefix('asset.')}.zip", Body=content.getvalue())
        return json.loads((Path(app.outdir) / "Capacity.template.json").read_text())

    yield synthesized
    for item in s3.list_objects_v2(Bucket=BUCKET).get("Contents", []):
        s3.delete_object(Bucket=BUCKET, Key=item["Key"])
    s3.delete_bucket(Bucket=BUCKET)


@pytest.fixture(autouse=True)
def paid_at_once(sandbox: Running) -> None:
    turn(sandbox.endpoint, "training-plans", {"region": REGION, "payment_seconds": 0})


def plans(aws: Aws) -> list[str]:
    """The ARNs of the plans that this deployment bought."""
    listed = aws("sagemaker").list_training_plans()["TrainingPlanSummaries"]
    return [plan["TrainingPlanArn"] for plan in listed if plan["TrainingPlanName"].startswith("deployed-")]


def topic_policy(aws: Aws, stack: StackUnderTest) -> dict[str, Any]:
    resources = stack.client.describe_stack_resources(StackName=stack.name)["StackResources"]
    (topic,) = [item["PhysicalResourceId"] for item in resources if item["ResourceType"] == "AWS::SNS::Topic"]
    return json.loads(aws("sns").get_topic_attributes(TopicArn=topic)["Attributes"]["Policy"])


def schedules(aws: Aws, stack: StackUnderTest) -> list[str]:
    resources = stack.client.describe_stack_resources(StackName=stack.name)["StackResources"]
    (group,) = [item for item in resources if item["ResourceType"] == "AWS::Scheduler::ScheduleGroup"]
    return [
        item["Name"] for item in aws("scheduler").list_schedules(GroupName=group["PhysicalResourceId"])["Schedules"]
    ]


def test_a_purchase_in_the_life_of_a_stack(
    stack: StackUnderTest, other_stack: StackUnderTest, aws: Aws, template: Callable[..., dict[str, Any]]
) -> None:
    wish = {"zone": "usw2-az2", "instance_type": TYPE, "count": 4, "days": 28}
    wish |= {"start_after": "2026-01-01", "purchase": True, "max_upfront_usd": 500_000}
    two, five = (template(wish, count) for count in (2, 5))

    assert stack.create(two["Resources"], Outputs=two["Outputs"]) == "CREATE_COMPLETE", stack.log()
    arn = stack.outputs()["Arn"]
    assert plans(aws) == [arn]
    assert len(schedules(aws, stack)) == 4
    (only,) = topic_policy(aws, stack)["Statement"]
    assert (only["Effect"], only["Condition"]) == ("Deny", {"Bool": {"aws:SecureTransport": "false"}})
    item = aws("dynamodb").get_item(TableName="podwright-training-plans", Key={"plan": {"S": "deployed/q1"}})["Item"]
    assert (item["state"]["S"], item["arn"]["S"]) == ("bought", arn)
    assert f":stack/{stack.name}/" in item["buyer"]["S"]

    # An update that asks for too much is refused, and rolled back by another one.
    assert stack.update(five["Resources"], Outputs=five["Outputs"]) == "UPDATE_ROLLBACK_COMPLETE"
    assert "never has more than 4 there; lower the counts by 1" in "".join(map(str, stack.events()))
    assert plans(aws) == [arn]

    # The plan outlives its stack, and the next one finds it: by its record, and then by the ARN in the file.
    assert stack.delete() == "DELETE_COMPLETE"
    assert plans(aws) == [arn]
    written = template({"zone": "usw2-az2", "arn": arn}, 2)
    assert other_stack.create(two["Resources"], Outputs=two["Outputs"]) == "CREATE_COMPLETE", other_stack.log()
    assert other_stack.update(written["Resources"], Outputs=written["Outputs"]) == "UPDATE_COMPLETE"
    assert other_stack.outputs()["Arn"] == arn
    assert plans(aws) == [arn]
    assert other_stack.delete() == "DELETE_COMPLETE"
