"""The account that an environment is deployed to: an AWS account that the user's credentials open, or the sandbox's."""

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from ...config.catalog.sandbox_account import SANDBOX_ACCOUNT, access_key
from ...config.errors import CommandError
from ...config.settings.environment import Environment
from ...planning.purchase.steps import ONE_ATTEMPT
from .calls import Reader
from .sandbox_plans import register_plan
from .sandbox_server import start

_EXPIRED: Final = {"ExpiredToken", "ExpiredTokenException", "RequestExpired"}
_UNKNOWN: Final = {"InvalidClientTokenId", "UnrecognizedClientException", "SignatureDoesNotMatch", "AuthFailure"}

# AWS throttles calls by account, not by command: botocore waits and asks again, each time longer.
_ATTEMPTS: Final = 6
# Making a client reads shared files and is not safe in threads; using one is.
_MAKING: Final = threading.Lock()


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a client waits for an answer."""

    connect_timeout: float
    read_timeout: float
    attempts: int
    connections: int = 10
    """Requests that may be under way at once."""


@dataclass(frozen=True, slots=True)
class Account:
    """An account and a region, and how clients and processes reach them."""

    id: str
    region: str
    endpoint: str | None
    """URL of the sandbox; None for AWS."""
    variables: Mapping[str, str]
    """The process environment of whatever works on the account, such as the CDK CLI."""
    _clients: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    _sessions: list[Any] = field(default_factory=list, init=False, repr=False, compare=False)
    """The session of `client`, once it has made one. Each session lists all services and reads their endpoints."""

    def session(self) -> Any:
        """A boto3 session of the account. Its clients still need `endpoint`; making several from one is far quicker."""
        import boto3

        keys = (access_key(self.id), "sandbox") if self.endpoint else ()
        return boto3.Session(*keys, region_name=self.region or None)

    def client(self, service: str) -> Any:
        """The boto3 client of `service`, which takes a quarter of a second to make and so is made once."""
        from botocore.config import Config

        with _MAKING:
            if service not in self._clients:
                config = Config(retries={"mode": "standard", "total_max_attempts": _ATTEMPTS})
                if not self._sessions:
                    self._sessions.append(self.session())
                [shared] = self._sessions
                self._clients[service] = shared.client(service, endpoint_url=self.endpoint, config=config)
            return self._clients[service]

    def clients(self, *services: str) -> dict[str, Any]:
        """The clients of several services, for the purchase engine, which drives them itself."""
        return {service: self.client(service) for service in services}

    def reader(self, patience: Patience) -> Reader:
        """A reader for many checks at once, whose clients give up soon: no service holds the others up."""
        from botocore.config import Config

        config = Config(
            connect_timeout=patience.connect_timeout,
            read_timeout=patience.read_timeout,
            retries={"total_max_attempts": patience.attempts},
            max_pool_connections=patience.connections,
        )
        return Reader(partial(self.session().client, endpoint_url=self.endpoint, config=config))

    def purchase_clients(self) -> dict[str, Any]:
        """The clients that the purchase of a plan needs; `seller` sends what buys once, and never again by itself."""
        from botocore.config import Config

        clients = self.clients("sagemaker", "dynamodb", "ec2")
        config = Config(**ONE_ATTEMPT)
        return clients | {"seller": self.session().client("sagemaker", endpoint_url=self.endpoint, config=config)}

    def __str__(self) -> str:
        where = f"the sandbox at {self.endpoint}" if self.endpoint else "AWS"
        return f"{where}, account {self.id}, {self.region}"


def is_sandboxed(environment: Environment, sandbox: bool) -> bool:
    """Whether `environment` goes to the sandbox: because its account says so, or the user does."""
    return sandbox or environment.account == SANDBOX_ACCOUNT


def account_of(environment: Environment, project: Path, sandbox: bool) -> Account:
    """The account that `environment` is deployed to; its sandbox is started when it is not running.

    Raises:
        CommandError: the sandbox does not start, or AWS does not let the user in.
    """
    if is_sandboxed(environment, sandbox):
        return _sandbox_account(environment, project)
    return _aws_account(environment)


def shell_account(region: str = "") -> Account:
    """Whatever account the credentials of this shell open, in `region` or the shell's own. Nothing is checked."""
    return Account("", region, None, os.environ)


def opened_shell(region: str = "") -> Account:
    """The account that the credentials of this shell open, once AWS has said which, in `region` or the shell's own.

    Raises:
        CommandError: no region, no credentials, expired or refused ones.
    """
    region = region or shell_account().session().region_name or ""
    if not region:
        raise CommandError("which region?", "--region us-west-2, or set AWS_REGION", 2)
    id = _identity(region)["Account"]
    return Account(id, region, _sandbox_of_shell(id), os.environ)


def sandbox_shell(project: Path, account: str = SANDBOX_ACCOUNT, region: str = "us-west-2") -> Account:
    """An account of the sandbox, for what belongs to no environment. The sandbox is started when it is not running."""
    require_sandbox()
    return Account(account, region, start(project).endpoint, {})


def require_sandbox() -> None:
    """Raise CommandError where the sandbox's libraries are not installed."""
    if find_spec("moto") is None:
        raise CommandError("the sandbox is not installed", "pip install 'podwright[sandbox]'")


def _sandbox_account(environment: Environment, project: Path) -> Account:
    require_sandbox()
    running = start(project)
    register_plan(environment, running.endpoint)
    account, region = environment.account, environment.region
    # Nothing of the user's AWS set-up is used, and no proxy of theirs sees what stays on this machine.
    retained = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    loopback = {"NO_PROXY": "localhost,127.0.0.1", "no_proxy": "localhost,127.0.0.1"}
    return Account(account, region, running.endpoint, retained | running.environment(region, account) | loopback)


def _aws_account(environment: Environment) -> Account:
    """The AWS account of `environment`, after one call that proves that the user's credentials open it.

    Raises:
        CommandError: no credentials, expired or refused ones, those of another account, a region out of reach; it says
            of these, and what to do.
    """
    region = environment.region
    identity = _identity(region)
    if identity["Account"] != environment.account:
        raise CommandError(
            f"the credentials belong to account {identity['Account']} ({identity['Arn']}), "
            f"and {environment.name} is in account {environment.account}",
            "set AWS_PROFILE to a profile of that account, or fix `account:` in the file",
        )
    variables = dict(os.environ) | {"AWS_REGION": region, "AWS_DEFAULT_REGION": region}
    endpoint = _sandbox_of_shell(environment.account)
    if endpoint:
        register_plan(environment, endpoint)
    return Account(environment.account, region, endpoint, variables)


def _identity(region: str) -> dict[str, Any]:
    """Whom AWS takes this shell for. Raises CommandError, which says why it does not let anybody in."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        return shell_account(region).reader(Patience(5, 10, attempts=2)).client("sts").get_caller_identity()
    except (BotoCoreError, ClientError) as error:
        raise _explained(error, region) from None


def _sandbox_of_shell(account: str) -> str | None:
    """The sandbox that this shell's variables point at, which `podwright sandbox status` prints; None for AWS.

    What is seen there is simulated, and its Kubernetes may be a store, whether or not anybody said --sandbox.
    """
    url, key = os.environ.get("AWS_ENDPOINT_URL", ""), os.environ.get("AWS_ACCESS_KEY_ID")
    return url if key == access_key(account) and url.startswith("http://localhost:") else None


def _explained(error: Exception, region: str) -> CommandError:
    """What a failed sign-in means to a person."""
    from botocore import exceptions

    if os.environ.get("AWS_PROFILE"):
        whose = f"profile {os.environ['AWS_PROFILE']}"
    else:
        whose = "AWS_ACCESS_KEY_ID" if os.environ.get("AWS_ACCESS_KEY_ID") else "the default profile"
    sign_in = "sign in again, for instance with `aws sso login`, and run this again"
    match error:
        case exceptions.NoCredentialsError():
            return CommandError(
                f"{whose} has no AWS credentials, and AWS_ACCESS_KEY_ID is not set",
                "set AWS_PROFILE, or run `aws configure sso`; without an account, `podwright deploy --sandbox` works",
            )
        case exceptions.PartialCredentialsError() | exceptions.ProfileNotFound():
            return CommandError(
                f"the AWS credentials are incomplete: {error}", "`aws configure list` shows what is used"
            )
        case exceptions.HTTPClientError() | exceptions.ConnectionError():
            return CommandError(
                f"AWS in {region} cannot be reached: {error}", "check the network, HTTPS_PROXY and the region"
            )
        case exceptions.ClientError(response={"Error": {"Code": code}}) if code in _EXPIRED:
            return CommandError(f"the AWS credentials of {whose} have expired", sign_in)
        case exceptions.ClientError(response={"Error": {"Code": code}}) if code in _UNKNOWN:
            return CommandError(
                f"AWS in {region} does not accept the credentials of {whose} ({code})",
                f"if the keys are right, enable {region} for the account: AWS account settings, AWS Regions",
            )
    return CommandError(f"AWS does not accept the credentials of {whose}: {error}", sign_in)
