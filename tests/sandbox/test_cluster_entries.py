"""Access entries of EKS through its API, and the webhooks by which the server tells API servers who a caller is."""

import base64
import json
import os
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from podwright.config.catalog.sandbox_account import SANDBOX_ACCOUNT
from podwright.operations.aws import sandbox_server as server
from podwright.planning.kubernetes.eks_token import eks_token
from podwright.sandbox.eks.authentication import PREFIX
from sandbox_network import eks_cluster, surroundings

Aws = Callable[[str], Any]
REGION, NAME = "us-west-2", "entries"
TRUST = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": SANDBOX_ACCOUNT}}


@pytest.fixture(scope="module")
def sessions(sandbox: server.Running, aws: Aws) -> dict[str, boto3.Session]:
    """Sessions of two roles: of the cluster's creator, and of one in a path."""
    document = json.dumps({"Version": "2012-10-17", "Statement": [TRUST]})
    taken = dict[str, boto3.Session]()
    for name, path in (("Creator", "/"), ("Worker", "/teams/llm/")):
        role = aws("iam").create_role(RoleName=name, Path=path, AssumeRolePolicyDocument=document)["Role"]["Arn"]
        keys = aws("sts").assume_role(RoleArn=role, RoleSessionName="ana")["Credentials"]
        names = (keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"])
        taken[name] = boto3.Session(*names, region_name=REGION)
    return taken


@pytest.fixture(scope="module")
def cluster(sandbox: server.Running, aws: Aws, sessions: dict[str, boto3.Session]) -> dict[str, Any]:
    clients = {"eks": sessions["Creator"].client("eks", endpoint_url=sandbox.endpoint)}
    return eks_cluster(lambda name: clients.get(name) or aws(name), surroundings(aws), NAME)


@pytest.fixture
def who(sandbox: server.Running, cluster: dict[str, Any]) -> Callable[..., Any]:
    """Who the bearer of a token is on the cluster, as an API server asks; None for nobody."""
    secret = Path(sandbox.log).parent / "tls/webhooks.secret"

    def ask(caller: boto3.Session | str, bearer: str = secret.read_text()) -> Any:
        token = caller if isinstance(caller, str) else eks_token(caller, NAME)
        url = f"https://localhost:{sandbox.kubernetes_port}{PREFIX}token-review/{SANDBOX_ACCOUNT}/{REGION}/{NAME}"
        body = json.dumps({"spec": {"token": token}}).encode()
        headers = {"Authorization": f"Bearer {bearer}", "Content-Type": "application/json"}
        trusted = base64.b64decode(cluster["certificateAuthority"]["data"]).decode()
        request = urllib.request.Request(url, body, headers)
        with urllib.request.urlopen(request, context=ssl.create_default_context(cadata=trusted)) as answer:
            return json.load(answer)["status"].get("user")

    return ask


def test_an_entry_gets_eks_own_names(
    aws: Aws, sessions: dict[str, boto3.Session], cluster: dict[str, Any], who: Callable[..., Any]
) -> None:
    eks, role = aws("eks"), f"arn:aws:iam::{SANDBOX_ACCOUNT}:role/teams/llm/Worker"
    assert who(sessions["Worker"]) is None
    entry = eks.create_access_entry(clusterName=NAME, principalArn=role, kubernetesGroups=["llm"])["accessEntry"]
    assert entry["username"] == f"arn:aws:sts::{SANDBOX_ACCOUNT}:assumed-role/Worker/{{{{SessionName}}}}"
    assert f"/{NAME}/role/{SANDBOX_ACCOUNT}/Worker/" in entry["accessEntryArn"]
    user = who(sessions["Worker"])
    assert user["username"] == f"arn:aws:sts::{SANDBOX_ACCOUNT}:assumed-role/Worker/ana"
    assert user["groups"] == ["llm"]
    with pytest.raises(ClientError, match="cannot start with system:"):
        eks.update_access_entry(clusterName=NAME, principalArn=role, kubernetesGroups=["system:masters"])
    eks.update_access_entry(
        clusterName=NAME, principalArn=role, kubernetesGroups=["vision"], username="a:{{SessionName}}"
    )
    user = who(sessions["Worker"])
    assert (user["username"], user["groups"]) == ("a:ana", ["vision"])
    eks.delete_access_entry(clusterName=NAME, principalArn=role)
    assert who(sessions["Worker"]) is None


def test_an_entry_of_nodes_has_the_groups_of_nodes(aws: Aws, cluster: dict[str, Any]) -> None:
    eks, role = aws("eks"), f"arn:aws:iam::{SANDBOX_ACCOUNT}:role/Node"
    entry = eks.create_access_entry(clusterName=NAME, principalArn=role, type="EC2_LINUX")["accessEntry"]
    assert entry["username"] == "system:node:{{EC2PrivateDNSName}}"
    assert entry["kubernetesGroups"] == ["system:bootstrappers", "system:nodes"]
    policy = {"policyArn": eks.list_access_policies()["accessPolicies"][0]["arn"], "accessScope": {"type": "cluster"}}
    with pytest.raises(ClientError, match="takes no access policies"):
        eks.associate_access_policy(clusterName=NAME, principalArn=role, **policy)


def test_the_creator_is_an_administrator(sessions: dict[str, boto3.Session], who: Callable[..., Any]) -> None:
    assert who(sessions["Creator"])["groups"] == ["system:masters"]


def test_the_aws_cli_makes_tokens_for_a_cluster(
    sandbox: server.Running, sessions: dict[str, boto3.Session], who: Callable[..., Any]
) -> None:
    def get_token(cluster: str) -> str:
        keys = sessions["Creator"].get_credentials()
        assert keys
        variables = {"AWS_ACCESS_KEY_ID": keys.access_key, "AWS_SECRET_ACCESS_KEY": keys.secret_key}
        variables |= {"AWS_SESSION_TOKEN": keys.token, "PATH": os.environ["PATH"]}
        command = [str(Path(sys.executable).parent / "aws"), "eks", "get-token", "--cluster-name", cluster]
        printed = subprocess.check_output(command, env=sandbox.environment(REGION) | variables)
        return json.loads(printed)["status"]["token"]

    assert who(get_token(NAME))["extra"]["sessionName"] == ["ana"]
    assert who(get_token("another")) is None


def test_nobody_else_on_the_machine_gets_answers(sessions: dict[str, boto3.Session], who: Callable[..., Any]) -> None:
    with pytest.raises(urllib.error.HTTPError, match="401"):
        who(sessions["Creator"], "guess")
