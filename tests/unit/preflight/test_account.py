from pathlib import Path

import boto3
import pytest
from botocore import exceptions

from podwright.config.errors import CommandError
from podwright.config.settings.environment import Environment
from podwright.operations.aws.account import Account, account_of

ENVIRONMENT = Environment.model_validate(
    {
        "name": "prod",
        "account": "111122223333",
        "region": "us-west-2",
        "network": {"zones": ["usw2-az1", "usw2-az2"]},
        "instance_groups": {"system": {"instance_type": "ml.m5.4xlarge", "count": 2}},
    }
)


class Sts:
    """STS as far as `podwright deploy` calls it: it answers with an identity, an error code or not at all."""

    def __init__(self, answer: dict[str, str] | str | Exception) -> None:
        self.answer = answer

    def get_caller_identity(self) -> dict[str, str]:
        if isinstance(self.answer, dict):
            return self.answer
        if isinstance(self.answer, str):
            raise exceptions.ClientError({"Error": {"Code": self.answer, "Message": "wrong"}}, "GetCallerIdentity")
        raise self.answer


def opened(monkeypatch: pytest.MonkeyPatch, answer: dict[str, str] | str | Exception) -> Account:
    """The account as `podwright deploy` opens it while STS answers so."""
    sessions = type("Session", (), {"__init__": lambda *_, **__: None, "client": lambda *_, **__: Sts(answer)})
    monkeypatch.setattr(boto3, "Session", sessions)
    return account_of(ENVIRONMENT, Path(), sandbox=False)


def test_the_users_credentials_open_the_account(monkeypatch: pytest.MonkeyPatch) -> None:
    identity = {"Account": "111122223333", "Arn": "arn:aws:sts::111122223333:assumed-role/Admin/me", "UserId": "me"}
    account = opened(monkeypatch, identity)
    assert str(account) == "AWS, account 111122223333, us-west-2"
    assert account.variables["AWS_REGION"] == "us-west-2"


@pytest.mark.parametrize(
    ("answer", "output", "hint"),
    [
        pytest.param(
            {"Account": "444455556666", "Arn": "arn:aws:iam::444455556666:user/me", "UserId": "me"},
            "the credentials belong to account 444455556666 (arn:aws:iam::444455556666:user/me), "
            "and prod is in account 111122223333",
            "AWS_PROFILE",
            id="another account",
        ),
        pytest.param(exceptions.NoCredentialsError(), "the default profile has no AWS credentials", "sso", id="none"),
        pytest.param(
            exceptions.PartialCredentialsError(provider="env", cred_var="aws_secret_access_key"),
            "incomplete: Partial credentials found in env, missing: aws_secret_access_key",
            "aws configure list",
            id="half of a key pair",
        ),
        pytest.param(
            "ExpiredToken", "the AWS credentials of the default profile have expired", "sign in", id="expired"
        ),
        pytest.param(
            exceptions.UnauthorizedSSOTokenError(),
            "does not accept the credentials of the default profile: The SSO session",
            "sso login",
            id="SSO session over",
        ),
        pytest.param("InvalidClientTokenId", "AWS in us-west-2 does not accept", "enable us-west-2", id="refused"),
        pytest.param(
            exceptions.EndpointConnectionError(endpoint_url="https://sts.us-west-2.amazonaws.com/"),
            "AWS in us-west-2 cannot be reached",
            "the region",
            id="no way there",
        ),
    ],
)
def test_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, answer: dict[str, str] | str | Exception, output: str, hint: str
) -> None:
    with pytest.raises(CommandError) as stopped:
        opened(monkeypatch, answer)
    assert output in str(stopped.value)
    assert hint in stopped.value.hint
    assert stopped.value.code == 1


def test_names_the_profile_that_was_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "acme-prod")
    with pytest.raises(CommandError, match="profile acme-prod has no AWS credentials"):
        opened(monkeypatch, exceptions.NoCredentialsError())


def test_names_the_keys_of_the_process_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    with pytest.raises(CommandError, match="the AWS credentials of AWS_ACCESS_KEY_ID have expired"):
        opened(monkeypatch, "ExpiredToken")


def test_a_profile_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "acme-prod")
    with pytest.raises(CommandError, match=r"incomplete: The config profile \(acme-prod\) could not be found"):
        account_of(ENVIRONMENT, Path(), sandbox=False)


def test_clients_of_an_account_come_from_one_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each session lists all services and reads their endpoints again."""
    sessions = []
    session = boto3.Session

    def counted(*keys: str, region_name: str) -> boto3.Session:
        sessions.append(session(*keys, region_name=region_name))
        return sessions[-1]

    monkeypatch.setattr(boto3, "Session", counted)
    account = Account("111122223333", "us-west-2", "http://localhost:1", {})
    assert account.client("s3") is account.client("s3")
    assert account.client("sts") is not account.client("s3")
    assert len(sessions) == 1
