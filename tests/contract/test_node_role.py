"""The role of nodes, judged on the calls that scripts of nodes and, as far as it is documented, HyperPod make with it.

Source of calls of HyperPod: SageMaker Developer Guide, "IAM for HyperPod", and the policies that it names, 2026-11.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

from podwright.config.catalog.instance_types import catalog
from podwright.config.catalog.names import benchmark_prefix
from podwright.planning.node.permissions import node_permissions
from podwright.sandbox.authorization.evaluation import Call, verdict
from synthesis import NAMES, Synthesis, environment, synthesis

WITH_ROLE = [name for name in NAMES if environment(name).has_cluster]
ROLE = "ExecutionRole"
_ARNS = {"AWS::S3::Bucket": "arn:aws:s3:::{}", "AWS::KMS::Key": "arn:aws:kms:{region}:{account}:key/{}"}


class Resolved:
    """Values of a template of an environment, each resource known by its logical id."""

    def __init__(self, name: str) -> None:
        self.environment, self.synthesis = environment(name), synthesis(name)
        self.exports: dict[str, Any] = {}
        self.resources: dict[str, Any] = {}
        for template in self.synthesis.templates.values():
            self.resources |= template["Resources"]
            for output in template.get("Outputs", {}).values():
                self.exports[output.get("Export", {}).get("Name", "")] = output["Value"]

    def text(self, value: Any) -> Any:
        """A value with its references replaced."""
        match value:
            case {"Fn::ImportValue": name}:
                return self.text(self.exports[name])
            case {"Ref": "AWS::Partition"}:
                return "aws"
            case {"Ref": name}:
                return name
            case {"Fn::GetAtt": [name, "Arn"]} if self.resources[name]["Type"] in _ARNS:
                pattern = _ARNS[self.resources[name]["Type"]]
                return pattern.format(name, region=self.environment.region, account=self.environment.account)
            case {"Fn::GetAtt": [name, attribute]}:
                return f"{name}.{attribute}"
            case {"Fn::Join": [delimiter, parts]}:
                return delimiter.join(self.text(part) for part in parts)
            case dict():
                return {key: self.text(item) for key, item in value.items()}
            case list():
                return [self.text(item) for item in value]
        return value


def policies(actual: Synthesis, resolved: Resolved) -> list[dict[str, Any]]:
    """The inline policies of the role."""
    return [
        resolved.text(policy["Properties"]["PolicyDocument"])
        for policy in actual.resources("AWS::IAM::Policy").values()
        if any(str(resolved.text(role)).startswith(ROLE) for role in policy["Properties"].get("Roles", []))
    ]


def needed(name: str, resolved: Resolved) -> Iterator[Call]:
    """What is called in an environment."""
    settings = environment(name)
    region, account, cluster = settings.region, settings.account, settings.cluster.name
    [publication] = synthesis(name).resources("Custom::PodwrightLifecycle").values()
    bucket = f"arn:aws:s3:::{resolved.text(publication['Properties']['Bucket'])}"
    # HyperPod's downloader asks for prefixes that nobody documents.
    for prefix in ("", "/", cluster, f"{cluster}/0123/", "anything"):
        yield Call("s3:ListBucket", (bucket,), {"s3:prefix": [prefix]})
    yield Call("s3:GetObject", (f"{bucket}/{cluster}/0123/on_create.sh",))
    group = f"arn:aws:logs:{region}:{account}:log-group:/aws/sagemaker/Clusters/{cluster}/abcdefghijkl"
    yield Call("logs:CreateLogGroup", (group,))
    yield Call("logs:CreateLogStream", (f"{group}:log-stream:LifecycleConfig/system/i-0",))
    yield Call("logs:PutLogEvents", (f"{group}:log-stream:LifecycleConfig/system/i-0",))
    yield Call("cloudwatch:PutMetricData", ("*",), {"cloudwatch:namespace": ["/aws/sagemaker/Clusters"]})
    for kind in ("CreateControl", "CreateData", "OpenControl", "OpenData"):
        yield Call(f"ssmmessages:{kind}Channel", ("*",))
    yield Call("ecr:GetAuthorizationToken", ("*",))
    yield Call("ecr:BatchGetImage", ("arn:aws:ecr:us-west-2:602401143452:repository/eks/pause",))
    interface = f"arn:aws:ec2:{region}:{account}:network-interface/eni-0"
    yield Call("ec2:CreateNetworkInterface", (interface,))
    yield Call("ec2:DescribeNetworkInterfaces", ("*",))
    own = f"arn:aws:sagemaker:{region}:{account}:cluster/abcdefghijkl"
    if settings.cluster.orchestrator == "eks":
        yield Call("sagemaker:AttachClusterNodeNetworkInterface", (own,))
    needs = node_permissions(settings.groups.values(), catalog())
    if needs and needs.writes_results:
        yield Call("s3:PutObject", (f"{bucket}/{benchmark_prefix(cluster)}/i-0.json",))
        yield Call("sagemaker:DescribeClusterNode", (own,))
    for key in keys(resolved):
        through = {"kms:viaservice": [f"s3.{region}.amazonaws.com"]}
        yield Call("kms:Decrypt", (key,), through)
        yield Call("kms:CreateGrant", (key,), {
            "kms:viaservice": [f"sagemaker.{region}.amazonaws.com"], "kms:grantisforawsresource": ["true"]
        })  # fmt: skip
        if needs and needs.writes_results:
            yield Call("kms:GenerateDataKey", (key,), through)


def keys(resolved: Resolved) -> list[str]:
    """The environment's own key; none where it is an existing one."""
    own = resolved.synthesis.resources("AWS::KMS::Key")
    names = [address.partition("/")[2] for address in own if address.startswith("network/")]
    return [resolved.text({"Fn::GetAtt": [name, "Arn"]}) for name in names]


@cache
def resolved_and_policies(name: str) -> tuple[Resolved, list[dict[str, Any]]]:
    """An environment's template values, and the policies of its role."""
    resolved = Resolved(name)
    return resolved, policies(synthesis(name), resolved)


def test_the_node_role_may_do_what_is_needed() -> None:
    denied = []
    for name in WITH_ROLE:
        resolved, documents = resolved_and_policies(name)
        for call in needed(name, resolved):
            if verdict(call, documents) != "allowed":
                denied.append(f"{name}: {call.action} {call.resources} {dict(call.context)}")
    assert not denied, "\n".join(denied)


def test_a_key_works_through_its_service_alone() -> None:
    wrong, judged = [], 0
    for name in WITH_ROLE:
        resolved, documents = resolved_and_policies(name)
        for key in keys(resolved):
            for action in ("kms:Decrypt", "kms:GenerateDataKey", "kms:CreateGrant"):
                judged += 1
                if verdict(Call(action, (key,)), documents) != "implicitDeny":
                    wrong.append(f"{name}: {action} on {key}")
    assert not wrong, "\n".join(wrong)
    assert judged
