"""Access entries: which IAM principals are which Kubernetes users of a cluster.

Sources: EKS's API reference; Amazon EKS User Guide, "Create access entries", 2026-11; EKS Workshop, "Associating access
policies", for EKS's answers about a user; EKS's error messages, for the rules about group names. Our assumptions: the
names of HYPERPOD_LINUX and EC2 nodes; that the account's root user administers every cluster; and that the list of
entries does not contain the creator.
"""

from typing import Final

from botocore.exceptions import ClientError

from ..protocol.arns import account_of
from ..protocol.json_objects import JsonObject
from ..protocol.service import refuse
from .service import Eks, EksCluster
from .tokens import Caller, Unauthorized, caller_of

_STANDARD: Final = "STANDARD"
_BY_INSTANCE, _BY_SESSION = "system:node:{{EC2PrivateDNSName}}", "system:node:{{SessionName}}"
_NODES: Final = ("system:bootstrappers", "system:nodes")
_NODE_USERS: Final = {
    "EC2": _BY_INSTANCE,
    "EC2_LINUX": _BY_INSTANCE,
    "EC2_WINDOWS": _BY_INSTANCE,
    "FARGATE_LINUX": _BY_SESSION,
    "HYBRID_LINUX": _BY_SESSION,
    "HYPERPOD_LINUX": _BY_SESSION,
}
_MORE_GROUPS: Final = {"EC2_WINDOWS": ("eks:kube-proxy-windows",), "FARGATE_LINUX": ("system:node-proxier",)}
_RESERVED: Final = ("system:", "eks:", "aws:", "amazon:", "iam:")
_INVALID: Final = "InvalidParameterException"


def canonical(arn: str) -> str:
    """Return the ARN of a principal as Kubernetes' users have it: without the path of a role."""
    if ":role/" not in arn:
        return arn
    return f"{arn.partition('/')[0]}/{arn.rpartition('/')[2]}"


def user_of(eks: Eks, region: str, name: str, token: str) -> JsonObject:
    """Return the Kubernetes user of a token's caller, in the form of a TokenReview's answer.

    Raises:
        Unauthorized: The token is not valid, or its caller has no access.
    """
    cluster = eks.clusters.get((region, name))
    if cluster is None:
        raise Unauthorized(f"the cluster {name} does not exist")
    caller = caller_of(token, name)
    identity = caller.identity
    username, groups = _access(eks, region, cluster, caller)
    account, (user_id, *_) = account_of(identity.arn), identity.user_id.split(":")
    return {
        "username": username,
        "uid": f"aws-iam-authenticator:{account}:{user_id}",
        "groups": groups,
        "extra": {
            "accessKeyId": [caller.access_key],
            "arn": [identity.arn],
            "canonicalArn": [canonical(identity.principal)],
            "principalId": [user_id],
            "sessionName": [identity.session_name],
        },
    }


def _access(eks: Eks, region: str, cluster: EksCluster, caller: Caller) -> tuple[str, list[str]]:
    """Return user name and groups of a caller, from its entry or as the cluster's creator."""
    identity = caller.identity
    if entry := entry_of(cluster, identity.principal):
        return _rendered(eks, region, entry["username"], caller), list(entry["kubernetesGroups"])
    # The creator has access without an entry, unless the cluster was created without this.
    administrators = [f"arn:aws:iam::{eks.clients.account}:root"]
    if cluster.description["accessConfig"]["bootstrapClusterCreatorAdminPermissions"]:
        administrators.append(cluster.creator)
    if identity.principal not in administrators:
        raise Unauthorized(f"{identity.principal} has no access entry")
    return identity.arn, ["system:masters"]


def entry_of(cluster: EksCluster, principal: str) -> JsonObject | None:
    """Return the entry of a principal. Role names are unique in an account, even with different paths."""
    entries = (item for arn, item in cluster.entries.items() if canonical(arn) == canonical(principal))
    return next(entries, None)


def _rendered(eks: Eks, region: str, username: str, caller: Caller) -> str:
    session = caller.identity.session_name
    values = {
        "{{AccountID}}": account_of(caller.identity.arn),
        "{{SessionName}}": session.replace("@", "-"),
        "{{SessionNameRaw}}": session,
    }
    if "{{EC2PrivateDNSName}}" in username:
        values["{{EC2PrivateDNSName}}"] = _private_name(eks, region, session)
    for pattern, value in values.items():
        username = username.replace(pattern, value)
    return username


def _private_name(eks: Eks, region: str, instance: str) -> str:
    """Return the private DNS name of an EC2 instance. The session of its role has the instance's id as its name."""
    try:
        answer = eks.clients.client("ec2", region).describe_instances(InstanceIds=[instance])
    except ClientError as error:
        raise Unauthorized(f"{instance} is not an instance: {error}") from None
    return answer["Reservations"][0]["Instances"][0]["PrivateDnsName"]


def new_names(values: JsonObject) -> JsonObject:
    """Return user name and groups of a new entry: the requested ones, or EKS's defaults.

    Raises:
        Refusal: The requested names are reserved, or the entry is for nodes, which allows none.
    """
    kind, principal = values.get("type", _STANDARD), values["principalArn"]
    if kind == _STANDARD:
        check_names(values)
        return {
            "username": values.get("username") or _username(principal),
            "kubernetesGroups": values.get("kubernetesGroups", []),
        }
    if values.get("kubernetesGroups") or values.get("username"):
        raise refuse(_INVALID, f"An access entry of type {kind} takes neither a user name nor groups (sandbox)")
    if kind not in _NODE_USERS:
        raise refuse(_INVALID, f"{kind} is not a type of access entries (sandbox)")
    return {"username": _NODE_USERS[kind], "kubernetesGroups": [*_NODES, *_MORE_GROUPS.get(kind, ())]}


def _username(principal: str) -> str:
    name = principal.rpartition("/")[2]
    session = f"arn:aws:sts::{account_of(principal)}:assumed-role/{name}/{{{{SessionName}}}}"
    return session if ":role/" in principal else principal


def check_names(values: JsonObject) -> None:
    """Refuse reserved user and group names, and a user name without a colon before the session's name."""
    username = values.get("username", "")
    named = [
        ("username", username),
        *(("kubernetes group name", group) for group in values.get("kubernetesGroups", [])),
    ]
    for what, name in named:
        for prefix in _RESERVED:
            if name.startswith(prefix):
                raise refuse(_INVALID, f"The {what} {name} is invalid, it cannot start with {prefix}")
    before, session, _ = username.partition("{{SessionName")
    if session and ":" not in before:
        raise refuse(_INVALID, f"The username {username} needs a colon before the session's name (sandbox)")


def check_takes_policies(entry: JsonObject) -> None:
    """Refuse access policies for an entry of nodes, except those of EKS Auto Mode."""
    if entry["type"] not in (_STANDARD, "EC2"):
        raise refuse(_INVALID, f"An access entry of type {entry['type']} takes no access policies (sandbox)")
