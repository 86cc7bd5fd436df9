"""Who a caller of an EKS cluster is, and what access policies allow: as the webhooks tell kube-apiserver."""

import base64
import json
import stat
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore import auth
from moto.core.exceptions import ServiceException
from werkzeug.test import Client

from access_cluster import NAME, REGION, ROLE, ROOT, AccessCluster, root_session, session_of, session_of_user, token
from podwright.config.catalog.sandbox_account import SANDBOX_ACCOUNT, access_key
from podwright.sandbox.eks.access_entries import check_takes_policies, new_names
from podwright.sandbox.eks.access_policies import RULES, decision
from podwright.sandbox.eks.authentication import AccessWebhooks
from podwright.sandbox.eks.webhook_files import PREFIX, api_server_options, bearer_in

BEARER = "open-sesame"
PATH = f"{SANDBOX_ACCOUNT}/{REGION}/{NAME}"
TEAM, ADMIN = f"{ROLE}teams/Llm", f"{ROLE}Admin"


@pytest.fixture
def access() -> AccessCluster:
    cluster = AccessCluster()
    cluster.add_entry(TEAM, kubernetesGroups=["podwright:llm"])
    return cluster


@pytest.fixture
def review(access: AccessCluster) -> Callable[..., Any]:
    """Asks a webhook of the cluster; gives the status of its answer."""
    client = Client(AccessWebhooks(lambda _: access.eks, BEARER))

    def ask(kind: str = "token-review", path: str = PATH, **spec: Any) -> Any:
        body = {"apiVersion": "v1", "kind": "Review", "spec": spec}
        answer = client.post(f"{PREFIX}{kind}/{path}", json=body, headers={"Authorization": f"Bearer {BEARER}"})
        assert answer.status_code == 200, answer.text
        content: Any = answer.json
        assert content["kind"] == "Review"
        return content["status"]

    return ask


def refusal(status: dict[str, Any]) -> str:
    assert status["authenticated"] is False
    assert "user" not in status
    return status["error"].removesuffix(" (sandbox)")


def test_a_role_is_the_user_that_eks_makes_of_it(review: Callable[..., Any]) -> None:
    session = session_of(TEAM, "ana@example.com")
    status = review(token=token(session))
    assert status["authenticated"] is True
    user, credentials = status["user"], session.get_credentials()
    assert credentials
    assert user["username"] == f"arn:aws:sts::{SANDBOX_ACCOUNT}:assumed-role/Llm/ana-example.com"
    assert user["groups"] == ["podwright:llm"]
    assert user["uid"].startswith(f"aws-iam-authenticator:{SANDBOX_ACCOUNT}:AROA")
    principal_id = user["extra"].pop("principalId")
    assert user["uid"].endswith(principal_id[0])
    assert user["extra"] == {
        "accessKeyId": [credentials.access_key],
        "arn": [f"arn:aws:sts::{SANDBOX_ACCOUNT}:assumed-role/Llm/ana@example.com"],
        "canonicalArn": [f"{ROLE}Llm"],
        "sessionName": ["ana@example.com"],
    }


def test_a_user_name_of_ones_own_takes_the_raw_session_name(access: AccessCluster, review: Callable[..., Any]) -> None:
    access.add_entry(TEAM, username="llm:{{AccountID}}:{{SessionNameRaw}}")
    status = review(token=token(session_of(TEAM, "a@b")))
    assert status["user"]["username"] == f"llm:{SANDBOX_ACCOUNT}:a@b"


def test_an_iam_user_needs_an_entry_and_keeps_its_arn(access: AccessCluster, review: Callable[..., Any]) -> None:
    session, arn = session_of_user("ben"), f"arn:aws:iam::{SANDBOX_ACCOUNT}:user/ben"
    assert refusal(review(token=token(session))) == f"{arn} has no access entry"
    access.add_entry(arn)
    status = review(token=token(session))
    assert (status["user"]["username"], status["user"]["groups"]) == (arn, [])


def test_a_role_without_an_entry_is_nobody(access: AccessCluster, review: Callable[..., Any]) -> None:
    assert refusal(review(token=token(session_of(ADMIN)))) == f"{ADMIN} has no access entry"
    signed = token(session_of(TEAM))
    assert review(token=signed)["authenticated"]
    del access.cluster.entries[TEAM]
    assert refusal(review(token=signed)) == f"{TEAM} has no access entry"


def test_a_token_is_for_one_cluster(access: AccessCluster, review: Callable[..., Any]) -> None:
    access.eks.clusters[REGION, "dev-eks"] = access.cluster
    other = token(session_of(TEAM), "dev-eks")
    assert review(path=PATH.replace(NAME, "dev-eks"), token=other)["authenticated"]
    assert refusal(review(token=other)) == "the token was signed for another cluster, or with another secret"
    assert refusal(review(path=PATH.replace(NAME, "none"), token=other)) == "the cluster none does not exist"


def test_a_token_needs_the_secret_of_its_key(review: Callable[..., Any]) -> None:
    credentials = session_of(TEAM).get_credentials()
    assert credentials
    forged = boto3.Session(credentials.access_key, "guessed", credentials.token, region_name=REGION)
    assert "another secret" in refusal(review(token=token(forged)))


@pytest.mark.parametrize(("minutes", "good"), [(14, True), (16, False)])
def test_a_token_is_good_for_fifteen_minutes(
    review: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, minutes: int, good: bool
) -> None:
    signed = datetime.now(UTC).replace(tzinfo=None) - timedelta(minutes=minutes)
    with monkeypatch.context() as earlier:
        earlier.setattr(auth, "get_current_datetime", lambda: signed)
        old = token(session_of(TEAM))
    status = review(token=old)
    assert status["authenticated"] is good
    assert good or "has expired" in refusal(status)


def bearing(url: str) -> str:
    return "k8s-aws-v1." + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    ("bearer", "reason"),
    [
        ("", "none of `aws eks get-token`"),
        ("eyJhbGciOi.J9.x", "none of `aws eks get-token`"),
        ("k8s-aws-v1.x", "holds no URL"),
        ("k8s-aws-v1.%%%%", "holds no URL"),
        ("k8s-aws-v1." + "A" * 5000, "none of `aws eks get-token`"),
        (bearing("https://sts.amazonaws.com/?Action=GetCallerIdentity"), "no signed GetCallerIdentity"),
        (bearing("https://sts.amazonaws.com/?Action=AssumeRole&X-Amz-Credential=a%2Fb"), "no signed GetCallerIdentity"),
        (
            bearing("https://sts.amazonaws.com/?Action=GetCallerIdentity&X-Amz-Credential=a&X-Amz-Date=now"),
            "has no date",
        ),
        (
            bearing("https://sts.amazonaws.com/?Action=GetCallerIdentity&X-Amz-Credential=a&X-Amz-Expires=901"),
            "to be good for 901 s",
        ),
        (
            bearing("https://sts.amazonaws.com/?Action=GetCallerIdentity&X-Amz-Credential=a&X-Amz-Signature=b"),
            "without the header x-k8s-aws-id",
        ),
    ],
)
def test_what_is_no_token_is_refused(review: Callable[..., Any], bearer: str, reason: str) -> None:
    assert reason in refusal(review(token=bearer))


def test_the_root_user_is_an_administrator_of_its_accounts_clusters_alone(review: Callable[..., Any]) -> None:
    user = review(token=token(root_session()))["user"]
    assert (user["username"], user["groups"]) == (ROOT, ["system:masters"])
    stranger = boto3.Session(access_key("210987654321"), "any", region_name=REGION)
    assert "210987654321:root has no access entry" in refusal(review(token=token(stranger)))


@pytest.mark.parametrize("allowed", [True, False])
def test_the_creator_is_an_administrator_unless_the_request_said_otherwise(allowed: bool) -> None:
    access = AccessCluster(creator=ADMIN, creator_is_admin=allowed)
    client = Client(AccessWebhooks(lambda _: access.eks, BEARER))
    body = {"spec": {"token": token(session_of(ADMIN, "maker"))}}
    answer = client.post(f"{PREFIX}token-review/{PATH}", json=body, headers={"Authorization": f"Bearer {BEARER}"}).json
    assert answer
    if allowed:
        assert answer["status"]["user"]["groups"] == ["system:masters"]
        assert answer["status"]["user"]["username"] == f"arn:aws:sts::{SANDBOX_ACCOUNT}:assumed-role/Admin/maker"
    else:
        assert "has no access entry" in refusal(answer["status"])


def test_a_node_is_named_after_its_instance(access: AccessCluster, review: Callable[..., Any]) -> None:
    access.add_entry(f"{ROLE}Node", type="EC2_LINUX")
    access.add_entry(f"{ROLE}HyperPod", type="HYPERPOD_LINUX")
    access.instances["i-0abc"] = "ip-10-0-0-1.us-west-2.compute.internal"
    user = review(token=token(session_of(f"{ROLE}Node", "i-0abc")))["user"]
    assert user["username"] == "system:node:ip-10-0-0-1.us-west-2.compute.internal"
    assert user["groups"] == ["system:bootstrappers", "system:nodes"]
    assert "i-0none is not an instance" in refusal(review(token=token(session_of(f"{ROLE}Node", "i-0none"))))
    user = review(token=token(session_of(f"{ROLE}HyperPod", "hyperpod-i-0def")))["user"]
    assert (user["username"], user["groups"][-1]) == ("system:node:hyperpod-i-0def", "system:nodes")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"kubernetesGroups": ["a", "system:masters"]}, "group name system:masters is invalid, it cannot start with"),
        ({"username": "eks:me"}, "username eks:me is invalid, it cannot start with eks:"),
        ({"username": "me{{SessionName}}"}, "needs a colon before the session's name"),
        ({"type": "EC2_LINUX", "kubernetesGroups": ["a"]}, "takes neither a user name nor groups"),
        ({"type": "EC3"}, "EC3 is not a type"),
    ],
)
def test_entries_with_reserved_names_are_refused(values: dict[str, Any], words: str) -> None:
    with pytest.raises(ServiceException, match=words):
        new_names({"principalArn": TEAM, **values})


def test_entries_of_nodes_take_no_policies() -> None:
    check_takes_policies({"type": "STANDARD"})
    with pytest.raises(ServiceException, match="takes no access policies"):
        check_takes_policies({"type": "HYPERPOD_LINUX"})


@pytest.mark.parametrize(
    ("headers", "path", "body", "code"),
    [
        ({}, f"token-review/{PATH}", {"spec": {"token": ""}}, 401),
        ({"Authorization": "Bearer guess"}, f"token-review/{PATH}", {"spec": {"token": ""}}, 401),
        ({"Authorization": f"Bearer {BEARER}"}, f"token-review/{PATH}", {}, 400),
        ({"Authorization": f"Bearer {BEARER}"}, f"token-review/{PATH}", [], 400),
        ({"Authorization": f"Bearer {BEARER}"}, "token-review", {"spec": {}}, 400),
        ({"Authorization": f"Bearer {BEARER}"}, f"review/{PATH}", {"spec": {}}, 404),
        ({"Authorization": f"Bearer {BEARER}"}, f"access-review/{PATH}-2", {"spec": {}}, 404),
    ],
)
def test_nobody_without_the_secret_gets_answers(
    access: AccessCluster, headers: dict[str, str], path: str, body: Any, code: int
) -> None:
    client = Client(AccessWebhooks(lambda _: access.eks, BEARER))
    assert client.post(PREFIX + path, json=body, headers=headers).status_code == code


def test_the_secret_is_for_its_owner_and_stays(tmp_path: Path) -> None:
    secret = bearer_in(tmp_path)
    assert bearer_in(tmp_path) == secret
    assert len(secret) == 64
    options = api_server_options(tmp_path, "https://localhost:1", tmp_path / "ca.crt", secret, PATH)
    files = [Path(value) for name, value in options.items() if name.endswith("config-file")]
    assert [stat.S_IMODE(file.stat().st_mode) for file in (*files, tmp_path / "webhooks.secret")] == [0o600] * 3
    config = json.loads(files[0].read_text())
    assert config["clusters"][0]["cluster"]["server"] == f"https://localhost:1{PREFIX}token-review/{PATH}"
    assert config["users"][0]["user"] == {"token": secret}


def allowed(access: AccessCluster, verb: str, resource: str, namespace: str = "", group: str = "") -> bool:
    name, _, subresource = resource.partition("/")
    asked = {"verb": verb, "resource": name, "subresource": subresource, "namespace": namespace, "group": group}
    status = decision(access.cluster, {"extra": {"canonicalArn": [f"{ROLE}Llm"]}, "resourceAttributes": asked})
    return status["allowed"]


@pytest.mark.parametrize(
    ("policy", "yes", "no"),
    [
        ("AmazonEKSViewPolicy", ["get pods", "list pods/log"], ["get secrets", "create pods", "get pods/exec"]),
        ("AmazonEKSSecretReaderPolicy", ["get secrets"], ["get pods", "create secrets"]),
        (
            "AmazonEKSEditPolicy",
            ["create pods", "get secrets", "create pods/exec", "impersonate serviceaccounts"],
            ["create namespaces", "create resourcequotas", "delete nodes", "get nodes"],
        ),
        ("AmazonEKSAdminPolicy", ["create pods", "list namespaces"], ["create namespaces", "update resourcequotas"]),
        ("AmazonEKSAdminViewPolicy", ["get secrets", "watch nodes"], ["create pods"]),
        ("AmazonEKSClusterAdminPolicy", ["create pods", "delete nodes", "escalate anything/at-all"], []),
    ],
)
def test_each_policy_allows_what_eks_documents(
    access: AccessCluster, policy: str, yes: list[str], no: list[str]
) -> None:
    access.associate(TEAM, policy)
    assert [item for item in yes if not allowed(access, *item.split())] == []
    assert [item for item in no if allowed(access, *item.split())] == []


def test_rules_are_of_their_api_groups(access: AccessCluster) -> None:
    access.associate(TEAM, "AmazonEKSEditPolicy")
    assert allowed(access, "create", "jobs", "dev", "batch")
    assert not allowed(access, "create", "jobs", "dev", "example.com")
    assert not allowed(access, "create", "roles", "dev", "rbac.authorization.k8s.io")
    access.associate(TEAM, "AmazonEKSAdminPolicy")
    assert allowed(access, "create", "roles", "dev", "rbac.authorization.k8s.io")


def test_a_scope_of_namespaces_takes_patterns(access: AccessCluster) -> None:
    access.associate(TEAM, "AmazonEKSClusterAdminPolicy", "llm", "dev-*")
    assert [name for name in ("llm", "dev-a", "dev", "llm-2", "") if allowed(access, "create", "pods", name)] == [
        "llm",
        "dev-a",
    ]


def test_every_namespace_is_not_the_cluster(access: AccessCluster) -> None:
    access.associate(TEAM, "AmazonEKSClusterAdminPolicy", "*")
    assert allowed(access, "create", "pods", "any")
    assert not allowed(access, "create", "namespaces")


def test_urls_that_are_no_resources_are_for_cluster_admins(access: AccessCluster) -> None:
    review = {"extra": {"canonicalArn": [f"{ROLE}Llm"]}, "nonResourceAttributes": {"verb": "get", "path": "/metrics"}}
    for policy, expected in (("AmazonEKSAdminViewPolicy", False), ("AmazonEKSClusterAdminPolicy", True)):
        access.associate(TEAM, policy)
        assert decision(access.cluster, review)["allowed"] is expected


def test_nobody_has_the_rights_of_another(access: AccessCluster) -> None:
    access.add_entry(ADMIN)
    access.associate(ADMIN, "AmazonEKSClusterAdminPolicy")
    assert not allowed(access, "get", "pods")
    asked = {"verb": "get", "resource": "pods"}
    # As the API server writes the extras of an impersonated user.
    for extra in ({}, {"canonicalarn": [ADMIN]}):
        assert not decision(access.cluster, {"extra": extra, "resourceAttributes": asked})["allowed"]


def test_a_policy_that_the_sandbox_does_not_know_says_so(access: AccessCluster) -> None:
    access.associate(TEAM, "AmazonSagemakerHyperpodTrainingPolicy")
    status = decision(
        access.cluster,
        {"extra": {"canonicalArn": [f"{ROLE}Llm"]}, "resourceAttributes": {"verb": "get", "resource": "pods"}},
    )
    assert status == {
        "allowed": False,
        "reason": "the sandbox does not know what AmazonSagemakerHyperpodTrainingPolicy allows",
    }
    assert "AmazonSagemakerHyperpodTrainingPolicy" not in RULES
