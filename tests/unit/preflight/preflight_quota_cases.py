"""What has to be wrong for preflight's checks of quotas and training plans to speak, and what they say."""

from datetime import UTC, datetime
from typing import Any

from preflight_answers import PLAN, clusters, plan, quotas, refusal
from preflight_case import Case

QUOTA = ("service-quotas", "list_service_quotas")
IN_ALL = "request-service-quota-increase --region us-west-2 --service-code"


def summary(**changed: Any) -> dict[str, Any]:
    retained = ("TrainingPlanArn", "TrainingPlanName", "Status", "ReservedCapacitySummaries")
    return {"TrainingPlanSummaries": [{key: value for key, value in (plan() | changed).items() if key in retained}]}


CASES = [
    Case(
        "PRE030",
        "new",
        "'ml.p5en.48xlarge for cluster usage' is 5; wanted: 4 beside 2 elsewhere in the account, 6 in all",
        f"{IN_ALL} sagemaker --quota-code L-12345678 --desired-value 6",
        {QUOTA: quotas({"ml.p5en.48xlarge for cluster usage": 5}), **clusters("other")},
    ),
    Case(
        "PRE030",
        "new",
        "'ml.g5.48xlarge for cluster spot instance usage' is 0; wanted: 2",
        "--desired-value 2",
        {QUOTA: quotas({"ml.g5.48xlarge for cluster spot instance usage": 0})},
    ),
    Case(
        "PRE031",
        "new",
        "is 7; wanted: 8",
        "--desired-value 8",
        {QUOTA: quotas({"Maximum number instances allowed per SageMaker HyperPod cluster": 7})},
    ),
    Case(
        "PRE032",
        "adopted",
        "is 100; wanted: 500",
        "--desired-value 500",
        {QUOTA: quotas({"Maximum size of EBS volume in GB for a SageMaker HyperPod cluster instance": 100})},
    ),
    Case(
        "PRE033",
        "new",
        "'EC2-VPC Elastic IPs' is 1; wanted: 2",
        f"{IN_ALL} ec2",
        {QUOTA: quotas({"EC2-VPC Elastic IPs": 1})},
    ),
    Case("PRE033", "new", "'VPCs per Region' is 1; wanted: 1 beside 1", "vpc", {QUOTA: quotas({"VPCs per Region": 1})}),
    Case(
        "PRE034",
        "new",
        "'Lustre Persistent_2 storage capacity' is 1,200",
        f"{IN_ALL} fsx",
        {QUOTA: quotas({"Lustre Persistent_2 storage capacity": 1200})},
    ),
    Case(
        "PRE035",
        "new",
        "across training plans per Region' is 10; wanted: 4 beside 8",
        "--desired-value 12",
        {
            QUOTA: quotas(
                {"Number of ml.p5en.48xlarge instances in reserved capacity across training plans per Region": 10}
            ),
            ("sagemaker", "list_training_plans"): summary(),
        },
    ),
    Case(
        "PRE040",
        "adopted",
        f"no training plan {PLAN}",
        "podwright capacity reserve",
        {("sagemaker", "describe_training_plan"): refusal("ResourceNotFound")},
    ),
    Case(
        "PRE041",
        "adopted",
        "q1 is in usw2-az1, and the file says usw2-az2",
        "either write zone: usw2-az1 and add usw2-az1 to network.zones, with the file system of its groups there too; "
        "or reserve another plan in usw2-az2",
        {("sagemaker", "describe_training_plan"): plan(zone="usw2-az1")},
    ),
    *(
        Case("PRE042", "adopted", says, fix, {("sagemaker", "describe_training_plan"): plan(**changed)})
        for says, fix, changed in (
            ("q1 is Failed (payment)", "another plan", {"Status": "Failed", "StatusMessage": "payment"}),
            ("bought for training-job", "hyperpod-cluster", {"TargetResources": ["training-job"]}),
            ("groups want 4 instances of q1, which has 3", "lower", {"TotalInstanceCount": 3}),
            ("2 of 8 are theirs or free", "take from others", {"AvailableInstanceCount": 2}),
            ("count of q1 is 8 in the file and 16 in AWS", "write count: 16", {"TotalInstanceCount": 16}),
        )
    ),
    Case(
        "PRE042",
        "adopted",
        "h200 has ml.p5.48xlarge; q1 holds ml.p5en.48xlarge",
        "plan's type",
        more="instance_groups: {h200: {instance_type: ml.p5.48xlarge}}",
    ),
    Case(
        "PRE043",
        "adopted",
        "q1 is Scheduled: its capacity comes on 2026-12-04 12:00 UTC, in 13 days",
        "min_count: 0",
        {
            ("sagemaker", "describe_training_plan"): plan(
                Status="Scheduled", StartTime=datetime(2026, 12, 4, 12, tzinfo=UTC)
            )
        },
    ),
    Case(
        "PRE043",
        "adopted",
        "q1 ends on 2026-11-24 11:30 UTC, in 2 days; its instances go 30 minutes before",
        "capacity extend example q1",
        {("sagemaker", "describe_training_plan"): plan(EndTime=datetime(2026, 11, 24, 11, 30, tzinfo=UTC))},
    ),
    Case(
        "PRE044",
        "new",
        "there is a plan example-q2 already (Scheduled",
        f"write arn: {PLAN}",
        {("sagemaker", "list_training_plans"): summary(TrainingPlanName="example-q2", Status="Scheduled")},
    ),
]
