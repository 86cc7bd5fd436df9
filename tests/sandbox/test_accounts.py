"""Several accounts and regions in one sandbox: credentials decide, state is apart, roles and buckets are let in."""

import json
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from podwright.config.catalog.sandbox_account import SANDBOX_ACCOUNT, access_key
from podwright.config.settings.environment import Environment
from podwright.operations.aws.account import Account
from podwright.operations.aws.sandbox_server import Running
from podwright.operations.cdk.deployment import deployed_stacks, is_bootstrapped
from podwright.operations.gates.gate import Context
from podwright.planning.delivery.gate_table import gate_table
from podwright.planning.kubernetes.eks_token import eks_token
from sandbox_network import eks_cluster, surroundings
from sandbox_stacks import StackUnderTest

DEV, PROD = "111122223333", "444455556666"
CONFIG = Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"})
Clients = Callable[..., Any]


@pytest.fixture(scope="module")
def clients_of(sandbox: Running) -> Clients:
    """Gives a boto3 client of a service of an account."""

    def client(account: str, service: str, region: str = "us-west-2") -> Any:
        session = boto3.Session(access_key(account), "sandbox", region_name=region)
        return session.client(service, endpoint_url=sandbox.endpoint, config=CONFIG)

    return client


@pytest.mark.parametrize("account", [SANDBOX_ACCOUNT, DEV, PROD])
def test_the_access_key_decides_the_account(clients_of: Clients, account: str) -> None:
    assert clients_of(account, "sts").get_caller_identity()["Account"] == account


def test_an_unknown_key_is_of_the_first_account(sandbox: Running) -> None:
    session = boto3.Session("anything", "else", region_name="us-west-2")
    identity = session.client("sts", endpoint_url=sandbox.endpoint).get_caller_identity()
    assert identity["Account"] == SANDBOX_ACCOUNT


def test_stacks_are_apart_by_account_and_region(clients_of: Clients, sandbox: Running) -> None:
    name = f"apart-{uuid.uuid4().hex[:8]}"
    values = [(DEV, "us-west-2"), (DEV, "us-east-2"), (PROD, "us-west-2")]
    for account, region in values:
        stack = StackUnderTest(clients_of(account, "cloudformation", region), name)
        who = {"Fn::Join": [" ", [{"Ref": "AWS::AccountId"}, {"Ref": "AWS::Region"}]]}
        parameter = {"Type": "AWS::SSM::Parameter", "Properties": {"Name": f"/{name}", "Type": "String", "Value": who}}
        exports = {"Here": {"Value": who, "Export": {"Name": name}}}
        assert stack.create({"P": parameter}, Outputs=exports) == "CREATE_COMPLETE", stack.events()
        assert stack.describe()["StackId"].startswith(f"arn:aws:cloudformation:{region}:{account}:stack/{name}/")
    for account, region in values:
        shown = clients_of(account, "ssm", region).get_parameter(Name=f"/{name}")["Parameter"]["Value"]
        exported = {
            item["Name"]: item["Value"]
            for item in clients_of(account, "cloudformation", region).list_exports()["Exports"]
        }
        assert shown == exported[name] == f"{account} {region}"
    with pytest.raises(ClientError, match="does not exist"):
        clients_of(PROD, "cloudformation", "us-east-2").describe_stacks(StackName=name)
    assert StackUnderTest(clients_of(PROD, "cloudformation"), name).delete() == "DELETE_COMPLETE"
    assert StackUnderTest(clients_of(DEV, "cloudformation"), name).describe()["StackStatus"] == "CREATE_COMPLETE"


def trust(principal: Any, **more: Any) -> str:
    statement = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": principal}, **more}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def test_a_role_of_another_account_is_taken_by_those_whom_it_trusts(clients_of: Clients, sandbox: Running) -> None:
    iam, name = clients_of(PROD, "iam"), f"deploy-{uuid.uuid4().hex[:8]}"
    wish = {"RoleArn": f"arn:aws:iam::{PROD}:role/{name}", "RoleSessionName": "test"}
    with pytest.raises(ClientError, match="not authorized to perform: sts:AssumeRole"):
        clients_of(SANDBOX_ACCOUNT, "sts").assume_role(**wish)
    iam.create_role(RoleName=name, AssumeRolePolicyDocument=trust(f"arn:aws:iam::{SANDBOX_ACCOUNT}:root"))
    with pytest.raises(ClientError, match="AccessDenied"):
        clients_of(DEV, "sts").assume_role(**wish)
    provided = clients_of(SANDBOX_ACCOUNT, "sts").assume_role(**wish)["Credentials"]
    session = boto3.Session(provided["AccessKeyId"], provided["SecretAccessKey"], provided["SessionToken"], "us-west-2")
    identity = session.client("sts", endpoint_url=sandbox.endpoint).get_caller_identity()
    assert (identity["Account"], identity["Arn"].split("/")[1]) == (PROD, name)

    iam.update_assume_role_policy(
        RoleName=name, PolicyDocument=trust(SANDBOX_ACCOUNT, Condition={"StringEquals": {"sts:ExternalId": "agreed"}})
    )
    with pytest.raises(ClientError, match="AccessDenied"):
        clients_of(SANDBOX_ACCOUNT, "sts").assume_role(**wish)
    clients_of(SANDBOX_ACCOUNT, "sts").assume_role(**wish, ExternalId="agreed")

    both = [
        *json.loads(trust(SANDBOX_ACCOUNT))["Statement"],
        *json.loads(trust(SANDBOX_ACCOUNT, Effect="Deny"))["Statement"],
    ]
    iam.update_assume_role_policy(
        RoleName=name, PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": both})
    )
    with pytest.raises(ClientError, match="AccessDenied"):
        clients_of(SANDBOX_ACCOUNT, "sts").assume_role(**wish)


def test_names_of_buckets_are_everybodys_and_their_objects_are_not(clients_of: Clients) -> None:
    name = f"artifacts-{uuid.uuid4().hex[:8]}"
    here = {"LocationConstraint": "us-west-2"}
    clients_of(DEV, "s3").create_bucket(Bucket=name, CreateBucketConfiguration=here)
    clients_of(DEV, "s3").put_object(Bucket=name, Key="proof", Body=b"passed")
    with pytest.raises(ClientError, match="BucketAlreadyExists"):
        clients_of(PROD, "s3").create_bucket(Bucket=name, CreateBucketConfiguration=here)
    with pytest.raises(ClientError, match="AccessDenied"):
        clients_of(PROD, "s3").get_object(Bucket=name, Key="proof")
    statement = {"Effect": "Allow", "Action": "s3:GetObject", "Principal": {"AWS": PROD}, "Resource": "*"}
    clients_of(DEV, "s3").put_bucket_policy(Bucket=name, Policy=json.dumps({"Statement": [statement]}))
    assert clients_of(PROD, "s3").get_object(Bucket=name, Key="proof")["Body"].read() == b"passed"
    with pytest.raises(ClientError, match="AccessDenied"):
        clients_of(SANDBOX_ACCOUNT, "s3").get_object(Bucket=name, Key="proof")
    assert name not in [bucket["Name"] for bucket in clients_of(PROD, "s3").list_buckets()["Buckets"]]


def test_clusters_and_their_kubernetes_are_apart(clients_of: Clients, sandbox: Running) -> None:
    name, endpoints = f"twin-{uuid.uuid4().hex[:8]}", []
    for account in (DEV, PROD):
        around = surroundings(lambda service, account=account: clients_of(account, service))
        eks_cluster(lambda service, account=account: clients_of(account, service), around, name)
        endpoints.append(clients_of(account, "eks").describe_cluster(name=name)["cluster"]["endpoint"])
    assert len(set(endpoints)) == 2

    import ssl

    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

    def ask(account: str, endpoint: str) -> int:
        session = boto3.Session(access_key(account), "sandbox", region_name="us-west-2")
        header = {"Authorization": f"Bearer {eks_token(session, name)}"}
        asked = urllib.request.Request(f"{endpoint}/api/v1/namespaces/only-{DEV}", headers=header)
        try:
            with urllib.request.urlopen(asked, context=context) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    assert [ask(DEV, endpoints[0]), ask(PROD, endpoints[1])] == [404, 404]
    assert [ask(PROD, endpoints[0]), ask(DEV, endpoints[1])] == [401, 401]


def test_commands_find_only_the_stacks_of_their_environment(
    clients_of: Clients, sandbox: Running, tmp_path: Any
) -> None:
    account = Account(DEV, "eu-west-1", sandbox.endpoint, {})
    assert not is_bootstrapped(account)
    clients_of(DEV, "ssm", "eu-west-1").put_parameter(
        Name="/cdk-bootstrap/hnb659fds/version", Value="30", Type="String"
    )
    assert is_bootstrapped(account)
    assert not is_bootstrapped(Account(PROD, "eu-west-1", sandbox.endpoint, {}))
    assert not is_bootstrapped(Account(DEV, "eu-central-1", sandbox.endpoint, {}))
    topic = {"T": {"Type": "AWS::SNS::Topic"}}
    assert (
        StackUnderTest(clients_of(DEV, "cloudformation", "eu-west-1"), "dev-network").create(topic) == "CREATE_COMPLETE"
    )
    assert [stack.name for stack in deployed_stacks(account, "dev", tmp_path)] == ["dev-network"]
    assert deployed_stacks(Account(PROD, "eu-west-1", sandbox.endpoint, {}), "dev", tmp_path) == []


def test_an_environment_lives_in_the_account_of_its_file(sandbox: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    from podwright.operations.aws import account as accounts

    monkeypatch.setattr(accounts, "start", lambda project: sandbox)
    values = {"name": "prod", "account": PROD, "region": "us-east-2", "network": {"zones": ["use2-az1", "use2-az2"]}}
    groups = {"system": {"instance_type": "ml.m5.4xlarge", "count": 2}}
    environment = Environment.model_validate(values | {"instance_groups": groups})
    account = accounts.account_of(environment, None, sandbox=True)  # pyrefly: ignore[bad-argument-type]
    assert account.client("sts").get_caller_identity()["Account"] == account.id == PROD
    assert account.variables["AWS_ACCESS_KEY_ID"] == access_key(PROD)


def test_variables_of_the_sandbox_mean_the_sandbox_without_the_option(
    sandbox: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gates there say at once what a store never does, and their evidence is marked as simulated."""
    from podwright.operations.aws import account as accounts

    for name, value in sandbox.environment("us-west-2", PROD).items():
        monkeypatch.setenv(name, value)
    settings = {"name": "prod", "account": PROD, "region": "us-west-2", "network": {"zones": ["usw2-az1"]}}
    groups = {"system": {"instance_type": "ml.m5.4xlarge", "count": 2}}
    environment = Environment.model_validate({**settings, "instance_groups": groups})
    account = accounts.account_of(environment, None, sandbox=False)  # pyrefly: ignore[bad-argument-type]
    assert (account.id, account.endpoint) == (PROD, sandbox.endpoint)
    loaded = SimpleNamespace(environment=environment)
    context = Context(loaded, account, None, gate_table()["nccl"], 1)  # pyrefly: ignore[bad-argument-type]
    monkeypatch.setattr(Context, "kubectl", SimpleNamespace(is_real=False))
    assert context.without_scheduler is not None
    assert "without a scheduler" in context.without_scheduler.reason
    # Another endpoint on this machine is whatever the user has there.
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setattr(accounts, "shell_account", lambda region: SimpleNamespace(reader=lambda _: Named()))
    assert accounts.account_of(environment, None, sandbox=False).endpoint is None  # pyrefly: ignore[bad-argument-type]


class Named:
    """Answers as STS does for the account of `prod`."""

    def client(self, service: str) -> Any:
        assert service == "sts"
        return SimpleNamespace(get_caller_identity=lambda: {"Account": PROD, "Arn": f"arn:aws:iam::{PROD}:user/one"})
