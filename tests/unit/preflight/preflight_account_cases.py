"""What has to be wrong for preflight's checks of the account itself and of places to speak, and what they say."""

from datetime import UTC, datetime
from typing import Any

from preflight_answers import refusal, role, simulated, trust
from preflight_case import Case


def denied(*actions: str):
    def answer(**request: Any) -> dict[str, Any]:
        results = simulated(**request)["EvaluationResults"]
        return {
            "EvaluationResults": [
                result | ({"EvalDecision": "implicitDeny"} if result["EvalActionName"] in actions else {})
                for result in results
            ]
        }

    return answer


def stack_in(state: str, name: str = "example-cluster"):
    described = {"StackName": name, "StackStatus": state, "CreationTime": datetime(2026, 1, 1, tzinfo=UTC)}
    return lambda **request: {"Stacks": [described]} if request["StackName"] == name else refusal("ValidationError")


def without(missing: str):
    return lambda **request: refusal("TypeNotFoundException") if request["TypeName"] == missing else {}


CASES = [
    Case(
        "PRE001",
        "new",
        "is not prepared for the CDK",
        "--bootstrap",
        {("ssm", "get_parameter"): refusal("ParameterNotFound")},
    ),
    Case(
        "PRE001", "new", "has version 5; 6", "cdk bootstrap", {("ssm", "get_parameter"): {"Parameter": {"Value": "5"}}}
    ),
    Case(
        "PRE002",
        "new",
        "example-cluster is UPDATE_ROLLBACK_FAILED",
        "continue-update-rollback --stack-name example-cluster",
        {("cloudformation", "describe_stacks"): stack_in("UPDATE_ROLLBACK_FAILED")},
    ),
    Case(
        "PRE003",
        "new",
        "may not sts:AssumeRole",
        "allow sts:AssumeRole on",
        {("iam", "simulate_principal_policy"): denied("sts:AssumeRole")},
    ),
    Case(
        "PRE004",
        "new",
        "may not sagemaker:CreateCluster and fsx:CreateFileSystem",
        "--cloudformation-execution-policies",
        {("iam", "simulate_principal_policy"): denied("sagemaker:CreateCluster", "fsx:CreateFileSystem", "rds:Create")},
    ),
    Case(
        "PRE005",
        "adopted",
        "role/Nodes is not there",
        "correct the ARN",
        {("iam", "get_role"): refusal("NoSuchEntity")},
    ),
    Case(
        "PRE005",
        "adopted",
        "role/Nodes cannot be taken on by sagemaker.amazonaws.com",
        "trust policy",
        {
            ("iam", "get_role"): lambda **request: {
                "Role": role(**request)["Role"] | {"AssumeRolePolicyDocument": trust("lambda.amazonaws.com")}
            }
        },
    ),
    Case(
        "PRE005",
        "adopted",
        "policy/Boundary does not exist",
        "create",
        {("iam", "get_policy"): refusal("NoSuchEntity")},
    ),
    Case(
        "PRE006",
        "new",
        "team: not active",
        "Activate",
        {
            ("ce", "list_cost_allocation_tags"): {
                "CostAllocationTags": [{"TagKey": "team", "Type": "UserDefined", "Status": "Inactive"}]
            }
        },
    ),
    Case(
        "PRE006",
        "new",
        "podwright:environment: not active as cost allocation tag, so no report tells this environment's costs apart, "
        "and its budget of $9,000 a month counts nothing",
        "Activate",
        {
            ("ce", "list_cost_allocation_tags"): {
                "CostAllocationTags": [{"TagKey": "podwright:environment", "Type": "UserDefined", "Status": "Inactive"}]
            }
        },
        more="{observability: {budget_usd_per_month: 9000}}",
    ),
    Case(
        "PRE007", "adopted", "no alarm too-hot", "create it", {("cloudwatch", "describe_alarms"): {"MetricAlarms": []}}
    ),
    Case(
        "PRE010",
        "new",
        "no AWS::SageMaker::Cluster in us-west-2; the public lists show it in",
        "another region",
        {("cloudformation", "describe_type"): refusal("TypeNotFoundException")},
    ),
    Case(
        "PRE010",
        "new",
        "no AWS::Budgets::Budget in us-west-2",
        "remove budget_usd_per_month",
        {("cloudformation", "describe_type"): without("AWS::Budgets::Budget")},
        more="{observability: {budget_usd_per_month: 9000}}",
    ),
    Case(
        "PRE010",
        "adopted",
        "no AWS::SageMaker::ClusterSchedulerConfig in us-west-2",
        "add scheduler_config to fallback",
        {("cloudformation", "describe_type"): without("AWS::SageMaker::ClusterSchedulerConfig")},
    ),
    Case(
        "PRE011",
        "new",
        "has no zone usw2-az2 in us-west-2; it has usw2-az3",
        "choose one",
        {
            ("ec2", "describe_availability_zones"): {
                "AvailabilityZones": [{"ZoneId": "usw2-az3", "ZoneName": "us-west-2c", "State": "available"}]
            }
        },
    ),
    Case(
        "PRE011",
        "new",
        "usw2-az2 (us-west-2a) is not enabled",
        "--group-name group-1 --opt-in-status opted-in",
        {
            ("ec2", "describe_availability_zones"): {
                "AvailabilityZones": [
                    {
                        "ZoneId": id,
                        "ZoneName": name,
                        "State": "available",
                        "GroupName": "group-1",
                        "OptInStatus": status,
                    }
                    for id, name, status in (
                        ("usw2-az2", "us-west-2a", "not-opted-in"),
                        ("usw2-az3", "us-west-2c", "opted-in"),
                    )
                ]
            }
        },
    ),
    Case(
        "PRE012",
        "new",
        "ml.p5en.48xlarge in usw2-az2; it offers ml.p5en.48xlarge in usw2-az1 and usw2-az3",
        "move the group",
        {
            ("ec2", "describe_instance_type_offerings"): {
                "InstanceTypeOfferings": [
                    {"InstanceType": name, "Location": zone}
                    for name, zone in (
                        ("p5en.48xlarge", "usw2-az1"),
                        ("p5en.48xlarge", "usw2-az3"),
                        ("m5.4xlarge", "usw2-az2"),
                        ("g5.48xlarge", "usw2-az3"),
                    )
                ]
            }
        },
    ),
    Case(
        "PRE012",
        "new",
        "in no zone of us-west-2; price lists show it in",
        "another type",
        {("ec2", "describe_instance_type_offerings"): {"InstanceTypeOfferings": []}},
    ),
    Case("PRE013", "new", "does not list fsx-lustre", "guide", {("ssm", "get_parameters"): {"Parameters": []}}),
]
