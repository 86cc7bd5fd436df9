"""Determines the IAM actions of a request to AWS, their resources, and the values of condition keys.

Operations and members are those of botocore's service models. The resource is an ARN in the request, or the ARN of a
name in it. Without either, only the action is checked. Condition keys that a request does not contain are missing: tags
of resources, the service that uses a key, and organizations.
"""

import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, unquote

from botocore.exceptions import UnknownServiceError
from botocore.parsers import RpcV2CBORParser
from moto.core.utils import get_service_model

from ..protocol.arns import PARTITION
from .evaluation import Call
from .resource_arns import forms

# IAM's names of services that sign with another name, and botocore's names of their models.
_PREFIXES: Final = {"monitoring": "cloudwatch"}
_MODELS: Final = {"monitoring": "cloudwatch", "aps": "amp"}
# Operations of S3 whose action has another name. Source: S3 User Guide, "Required permissions for S3 API operations".
_S3_ACTIONS: Final = {
    "HeadObject": "GetObject",
    "HeadBucket": "ListBucket",
    "ListObjects": "ListBucket",
    "ListObjectsV2": "ListBucket",
    "ListObjectVersions": "ListBucketVersions",
    "DeleteObjects": "DeleteObject",
    "CopyObject": "PutObject",
    "CreateMultipartUpload": "PutObject",
    "UploadPart": "PutObject",
    "UploadPartCopy": "PutObject",
    "CompleteMultipartUpload": "PutObject",
    "ListParts": "ListMultipartUploadParts",
}
# Members that name a resource, with the ARN's service and resource, and whether it has region and account.
_RESOURCES: Final[dict[str, dict[str, str]]] = {
    "dynamodb": {"TableName": "table/{}"},
    "eks": {"name": "cluster/{}", "clusterName": "cluster/{}"},
    "kms": {"KeyId": "key/{}"},
    "lambda": {"FunctionName": "function:{}"},
    "logs": {"logGroupName": "log-group:{}"},
    "scheduler": {"Name": "schedule/{group}/{}"},
    "secretsmanager": {"SecretId": "secret:{}"},
    "ssm": {"Name": "parameter/{}"},
    "aps": {"workspaceId": "workspace/{}"},
    "grafana": {"workspaceId": "/workspaces/{}"},
    "sagemaker": {
        "ClusterSchedulerConfigId": "cluster-scheduler-config/{}",
        "ComputeQuotaId": "compute-quota/{}",
        "TrainingPlanName": "training-plan/{}",
    },
}
# Actions without a resource in the request that a policy could name.
_NO_RESOURCE: Final = re.compile(
    r"(ec2:Describe\w+|\w+:List(Clusters|ComputeQuotas|TrainingPlans)|cloudwatch:PutMetricData)"
)
_OPERATION_PATH: Final = re.compile(r"/service/[^/]+/operation/(\w+)")
_ARN_MEMBERS: Final = frozenset({"clustername", "resourcearn", "resourceidentifier", "topicarn"})
_ARN: Final = re.compile(r"arn:aws[a-z-]*:[a-z0-9-]+:[a-z0-9-]*:[0-9]*:.+")


@dataclass(frozen=True, slots=True)
class Sent:
    """A received request."""

    service: str
    """Service of its signature."""
    region: str
    account: str
    method: str
    path: str
    query: str
    target: str
    """The header X-Amz-Target."""
    copied: str
    """The header X-Amz-Copy-Source."""
    body: bytes


def calls(sent: Sent, cluster_arn: Callable[[str], str | None]) -> list[Call]:
    """Return the calls of a request; none for an operation that botocore does not know.

    Args:
        sent: The request.
        cluster_arn: The ARN of a HyperPod cluster by its name; None where there is none.
    """
    operation, members = _operation(sent)
    if operation is None:
        return []
    context = _context(sent, members)
    if sent.service == "s3":
        return list(_s3(sent, operation, members, context))
    action = f"{_PREFIXES.get(sent.service, sent.service)}:{operation}"
    if operation == "Invoke" and sent.service == "lambda":
        action = "lambda:InvokeFunction"
    resources = _resources(sent, action, members)
    if sent.service == "sagemaker" and not resources and "ClusterName" in members:
        arn = cluster_arn(str(members["ClusterName"]))
        resources = (arn,) if arn else ()
    return [Call(action, resources, context)]


def _operation(sent: Sent) -> tuple[str | None, Mapping[str, Any]]:
    """Return the operation's name, and its members that are strings."""
    if sent.target:
        return sent.target.rpartition(".")[2], _json(sent.body)
    if match := _OPERATION_PATH.fullmatch(sent.path):
        members = RpcV2CBORParser().parse_data_item(io.BufferedReader(io.BytesIO(sent.body))) if sent.body else {}
        return match[1], members
    specified = dict(parse_qsl(sent.query, keep_blank_values=True))
    form = dict(parse_qsl(sent.body.decode(errors="replace"))) if b"Action=" in sent.body[:4096] else {}
    if named := form.get("Action") or specified.get("Action"):
        return named, form or specified
    for route in _routes(_MODELS.get(sent.service, sent.service)):
        match = route.pattern.fullmatch(sent.path)
        if match and route.method == sent.method and route.fixed.items() <= specified.items():
            names = {key: unquote(value) for key, value in match.groupdict().items()}
            return route.operation, specified | ({} if sent.service == "s3" else _json(sent.body)) | names
    return None, {}


class _Route(NamedTuple):
    """The HTTP form of a REST operation."""

    method: str
    pattern: re.Pattern[str]
    """Pattern of the path."""
    fixed: dict[str, str]
    """Query arguments with a fixed value."""
    operation: str


@cache
def _routes(service: str) -> list[_Route]:
    """Return the REST operations of a service, the most specific first."""
    try:
        # moto's models, which keep S3's bucket in the path; those of clients remove it.
        model: Any = get_service_model(service)
    except UnknownServiceError:
        return []
    results = []
    for operation in [model.operation_model(name) for name in model.operation_names]:
        path, _, query = operation.http.get("requestUri", "/").partition("?")
        pattern = re.sub(r"\{(\w+)\+?\}$", r"(?P<\1>.+)", path)
        pattern = re.sub(r"\{(\w+)\+?\}", r"(?P<\1>[^/]+)", pattern)
        fixed = dict(parse_qsl(query, keep_blank_values=True))
        method = operation.http.get("method", "POST")
        results.append(_Route(method, re.compile(pattern + "/?"), fixed, operation.name))
    return sorted(results, key=lambda route: (-len(route.fixed), -route.pattern.pattern.count("/")))


def _json(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body or b"{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _context(sent: Sent, members: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the values of condition keys from a request, by lower-case key."""
    known = {"aws:requestedregion": [sent.region], "aws:securetransport": ["true"]}
    if sent.service == "s3":
        known["s3:prefix"] = [str(members.get("prefix", ""))]
    if sent.service == "monitoring" and "Namespace" in members:
        known["cloudwatch:namespace"] = [str(members["Namespace"])]
    return known


def _s3(sent: Sent, operation: str, members: Mapping[str, Any], context: dict[str, list[str]]) -> Iterator[Call]:
    bucket = f"arn:{PARTITION}:s3:::{members.get('Bucket', '')}"
    keys = [str(members["Key"])] if "Key" in members else []
    if operation == "DeleteObjects":
        keys = re.findall(r"<Key>([^<]+)</Key>", sent.body.decode(errors="replace"))
    action = f"s3:{_S3_ACTIONS.get(operation, operation)}"
    for resource in [f"{bucket}/{key}" for key in keys] or [bucket]:
        yield Call(action, (resource,), context)
    if sent.copied:
        source = unquote(sent.copied).lstrip("/").partition("?")[0]
        yield Call("s3:GetObject", (f"arn:{PARTITION}:s3:::{source}",), context)


def _resources(sent: Sent, action: str, members: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the ARNs of a request's resources, in all their forms."""
    if _NO_RESOURCE.fullmatch(action):
        return ("*",)
    service = action.partition(":")[0]
    for member, value in members.items():
        pattern = _RESOURCES.get(service, {}).get(member)
        if isinstance(value, str) and _ARN.fullmatch(value) and (pattern or member.lower() in _ARN_MEMBERS):
            return forms(value)
        if isinstance(value, str) and pattern:
            group = members.get("GroupName") or members.get("groupName") or "default"
            if action.endswith("ScheduleGroup"):
                pattern = "schedule-group/{}"
            name = pattern.format(value, group=group)
            if service == "ssm":
                # A parameter's name starts with a slash, which its ARN contains once.
                name = name.replace("//", "/", 1)
            return forms(f"arn:{PARTITION}:{service}:{sent.region}:{sent.account}:{name}")
    return ()
