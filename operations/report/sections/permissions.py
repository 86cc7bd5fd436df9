"""Who may do what: the roles of the environment in plain words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ..iam import KINDS, foreigners, roles
from ..scene import Scene
from ..views import Badge, Fact, Table

ID: Final = "permissions"
TITLE: Final = "Permissions"
_HUES: Final = {"reads": "green", "changes": "blue", "deletes": "red", "hands on": "orange"}
_TAKERS: Final = {
    "lambda.amazonaws.com": "Lambda functions",
    "sagemaker.amazonaws.com": "SageMaker, for the nodes of the cluster",
    "pods.eks.amazonaws.com": "pods, by EKS Pod Identity",
    "eks.amazonaws.com": "the EKS control plane",
    "codebuild.amazonaws.com": "CodeBuild",
    "vpc-flow-logs.amazonaws.com": "VPC flow logs",
    "grafana.amazonaws.com": "Amazon Managed Grafana",
    "scheduler.amazonaws.com": "EventBridge Scheduler",
    "ssm.amazonaws.com": "Systems Manager",
    "capabilities.eks.amazonaws.com": "EKS capabilities",
    "batch.amazonaws.com": "AWS Batch",
    "codepipeline.amazonaws.com": "CodePipeline",
}
_SERVICES: Final = {
    "aps": "Managed Prometheus",
    "autoscaling": "Auto Scaling",
    "cloudformation": "CloudFormation",
    "cloudwatch": "CloudWatch",
    "codebuild": "CodeBuild",
    "dynamodb": "DynamoDB",
    "ec2": "EC2 and its network",
    "ecr": "ECR images",
    "eks": "EKS",
    "eks-auth": "EKS Pod Identity",
    "elasticfilesystem": "EFS",
    "events": "EventBridge",
    "fsx": "FSx",
    "grafana": "Managed Grafana",
    "iam": "IAM",
    "kms": "KMS keys",
    "lambda": "Lambda",
    "logs": "CloudWatch Logs",
    "pricing": "price lists",
    "s3": "S3",
    "sagemaker": "SageMaker",
    "scheduler": "EventBridge Scheduler",
    "secretsmanager": "Secrets Manager",
    "sns": "SNS",
    "sqs": "SQS",
    "ssm": "Systems Manager",
    "ssmmessages": "Systems Manager sessions",
    "sts": "STS",
}


@dataclass(frozen=True)
class Role:
    """A role."""

    name: str
    kinds: Sequence[Badge]
    taken: str
    """By whom, and what for."""
    facts: Sequence[Fact]
    may: Mapping[str, str]
    """What it may do, by service."""
    wildcards: Sequence[tuple[str, str]]
    """Each with its reason, which may be missing."""


@dataclass(frozen=True)
class View:
    """Cross-account trust, then role by role."""

    intro: str
    foreign: Table
    roles: Sequence[Role]


def collect(scene: Scene) -> dict[str, Any]:
    """Roles, and whatever lets another account in."""
    result = roles(scene.assembly)
    wildcards = [card for role in result for card in _wildcards(role)]
    return {
        "roles": result,
        "cross_account": foreigners(scene.assembly, scene.environment.account),
        "wildcards": len(wildcards),
        "without_reason": sum(not card["reason"] for card in wildcards),
    }


def view(data: dict[str, Any], document: dict[str, Any]) -> View:
    """Roles by what they may do."""
    stray = data["without_reason"]
    reasons = "each with a written reason" if not stray else f"{stray} of them without a written reason"
    rows = [(item["what"], item["type"], item["who"], ", ".join(item["actions"])) for item in data["cross_account"]]
    return View(
        intro=f"{len(data['roles'])} roles. {data['wildcards']} wildcards, {reasons}.",
        foreign=Table("Lets another account in", ("what", "type", "who", "what they may do"), rows),
        roles=[_role(role) for role in data["roles"]],
    )


def _role(role: dict[str, Any]) -> Role:
    """A role as the page shows it, with each wildcard once."""
    may = role["may"]
    kinds = {kind for by_kind in may.values() for kind in by_kind}
    takers = ", ".join(dict.fromkeys(_TAKERS.get(who, who) for who in role["trusted"]))
    cards = [(card["on"], card["reason"]) for card in _wildcards(role)]
    return Role(
        name=role["name"],
        kinds=[Badge(kind, _HUES[kind]) for kind in KINDS if kind in kinds],
        taken=" · ".join(filter(None, (f"taken by {takers}", role["description"]))),
        facts=[
            Fact("Stack", role["stack"]),
            Fact("AWS's policies", ", ".join(role["managed"])),
            Fact("Boundary", role["boundary"]),
        ],
        may={_SERVICES.get(service, service): _actions(by_kind) for service, by_kind in may.items()},
        wildcards=list(dict.fromkeys(cards)),
    )


def _wildcards(role: dict[str, Any]) -> list[dict[str, Any]]:
    return [card for statement in role["statements"] for card in statement["wildcards"]]


def _actions(by_kind: Mapping[str, Sequence[str]]) -> str:
    return "; ".join(f"{kind} ({', '.join(names)})" for kind, names in by_kind.items())
