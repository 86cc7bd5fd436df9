"""Who may do what: the roles of the environment in plain words."""

from typing import Any, Final

from ..iam import KINDS, foreigners, roles
from ..markup import Markup, badge, facts, joined, table, tag
from ..scene import Scene

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


def collect(scene: Scene) -> dict[str, Any]:
    """Roles, and whatever lets another account in."""
    found = roles(scene.assembly)
    wildcards = [card for role in found for statement in role["statements"] for card in statement["wildcards"]]
    return {
        "roles": found,
        "cross_account": foreigners(scene.assembly, scene.environment.account),
        "wildcards": len(wildcards),
        "without_reason": sum(not card["reason"] for card in wildcards),
    }


def shown(data: dict[str, Any], document: dict[str, Any]) -> Markup:
    """Cross-account trust, then role by role."""
    stray = data["without_reason"]
    words = (
        f"{len(data['roles'])} roles. {data['wildcards']} wildcards, "
        f"{'each with a written reason' if not stray else f'{stray} of them without a written reason'}."
    )
    rows = [(item["what"], item["type"], item["who"], ", ".join(item["actions"])) for item in data["cross_account"]]
    return joined(
        [
            tag("p", words),
            table("Lets another account in", ("what", "type", "who", "what they may do"), rows)
            if rows
            else tag(
                "p", badge("no other account", "green"), " No role and no resource policy trusts another account."
            ),
            tag("ul", *(tag("li", badge(kind, _HUES[kind]), _says(kind)) for kind in KINDS), class_="legend"),
            [_role(role) for role in data["roles"]],
        ]
    )


def _says(kind: str) -> str:
    return {
        "reads": " looks and leaves all as it is",
        "changes": " makes or changes things",
        "deletes": " takes things away",
        "hands on": " passes roles or grants on",
    }[kind]


def _role(role: dict[str, Any]) -> Markup:
    taken = ", ".join(dict.fromkeys(_TAKERS.get(who, who) for who in role["trusted"]))
    kinds = [kind for kind in KINDS if any(kind in kinds for kinds in role["may"].values())]
    head = [tag("strong", role["name"]), [badge(kind, _HUES[kind]) for kind in kinds]]
    head.append(tag("div", " · ".join(filter(None, (f"taken by {taken}", role["description"]))), class_="by"))
    may = [
        tag(
            "li",
            tag("strong", _SERVICES.get(service, service)),
            ": ",
            "; ".join(f"{kind} ({', '.join(names)})" for kind, names in kinds.items()),
        )
        for service, kinds in role["may"].items()
    ]
    cards = [card for statement in role["statements"] for card in statement["wildcards"]]
    reasons = [
        tag("li", tag("code", on), " ", why or badge("no written reason", "red"))
        for on, why in dict.fromkeys((card["on"], card["reason"]) for card in cards)
    ]
    managed = ", ".join(role["managed"])
    body = [
        facts([("Stack", role["stack"]), ("AWS's policies", managed), ("Boundary", role["boundary"])]),
        tag("ul", *may, class_="plain") if may else tag("p", "Nothing of its own."),
        [tag("p", tag("strong", "Wildcards, and why")), tag("ul", *reasons, class_="plain")] if reasons else None,
    ]
    return tag("details", tag("summary", *head), *body, class_="role")
