# ruff: noqa: D102 - the public methods of the response class are API operations; their names say which.
"""Separates accounts: the account of a request, roles of other accounts, and buckets of other accounts.

moto separates the state of accounts, but allows access to all roles and buckets. Here, the access key selects the
account. A role of another account must exist and trust the caller, and the policy of another account's bucket must
allow the caller's account. Of conditions, only the external id is checked. Within an account, this module enforces
nothing. Source: AWS IAM User Guide, "Cross-account resource access in IAM".
"""

import json
import re
from dataclasses import dataclass
from typing import Any, Final

import moto.iam.models
import moto.sts.urls
from moto.core.responses import ActionResult, BaseResponse
from moto.iam.exceptions import NotFoundException
from moto.iam.models import iam_backends
from moto.s3.exceptions import S3AccessDeniedError, S3ClientError
from moto.s3.models import FakeBucket, S3Backend, s3_backends
from moto.sts.models import sts_backends
from moto.sts.responses import TokenResponse

from ...config.catalog.sandbox_account import SANDBOX_ACCOUNT, named_account
from .arns import PARTITION, account_of
from .json_objects import JsonObject
from .service import refuse

_CREDENTIAL: Final = re.compile(r"Credential=([^/]+)/")
_ASSUME: Final = "sts:AssumeRole"
# moto's functions, which those below call.
_access_key = BaseResponse.get_access_key
_bucket, _create_bucket = S3Backend.get_bucket, S3Backend.create_bucket


def account_of_key(access_key: str) -> str:
    """Return the account of an access key."""
    return named_account(access_key) or _issuer(access_key)


def _issuer(access_key: str) -> str:
    """The account that issued an access key; the first one for a key that no account issued.

    moto searches all partitions, and by that creates each one's IAM with AWS's 1,500 policies.
    """
    # A copy, since other threads add accounts.
    accounts = list(iam_backends.items())
    return next((name for name, own in accounts if access_key in own[PARTITION].access_keys), SANDBOX_ACCOUNT)


def account_of_request(environ: dict[str, Any]) -> str:
    """Return the account of a request's signature; the first account without one."""
    match = _CREDENTIAL.search(environ.get("HTTP_AUTHORIZATION", ""))
    return account_of_key(match[1] if match else "")


@dataclass(frozen=True, slots=True)
class Identity:
    """The holder of an access key in STS's GetCallerIdentity: a role's session, a user, or the account."""

    arn: str
    user_id: str
    principal: str
    """ARN of the holder in policies and access entries: that of the role, not of its session."""
    session_name: str = ""
    secret: str | None = None
    """Secret of the key; None if the sandbox did not create the key."""


def identity_of_key(key: str) -> Identity:
    """Return the holder of a key. An unknown key belongs to the account."""
    account = account_of_key(key)
    if role := sts_backends[account][PARTITION].get_assumed_role_from_access_key(key):
        return Identity(role.arn, role.user_id, role.role_arn, role.session_name, role.secret_access_key)
    user = iam_backends[account][PARTITION].get_user_from_access_key_id(key)
    if user is None:
        arn = f"arn:{PARTITION}:iam::{account}:root"
        return Identity(arn, account, arn)
    secret = next(item.secret_access_key for item in user.access_keys if item.access_key_id == key)
    return Identity(user.arn, user.id, user.arn, secret=secret)


def principal_of_key(key: str) -> str:
    """Return the ARN of a key's holder in policies: of a role, a user, or the account."""
    return identity_of_key(key).principal


def lets_in(policy: JsonObject, principal: str, action: str = "", external_id: str | None = None) -> bool:
    """Return True if a statement of a policy allows a principal, and none denies it.

    Without `action` a statement about anything will do.
    """
    effects = {
        statement["Effect"]
        for statement in _listed(policy.get("Statement", []))
        if _named(statement, principal)
        and (not action or _matches(_listed(statement.get("Action", [])), action))
        and _external_id(statement) in (None, external_id)
    }
    # Denials of buckets depend on conditions that are not evaluated, such as TLS.
    return "Allow" in effects and not (action and "Deny" in effects)


def _named(statement: JsonObject, principal: str) -> bool:
    specified = statement.get("Principal", {})
    names = _listed(specified.get("AWS", []) if isinstance(specified, dict) else specified)
    account = account_of(principal)
    return bool({"*", account, f"arn:{PARTITION}:iam::{account}:root", principal} & set(names))


def _external_id(statement: JsonObject) -> str | None:
    return statement.get("Condition", {}).get("StringEquals", {}).get("sts:ExternalId")


def _matches(patterns: list[str], action: str) -> bool:
    return any(
        re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), action, re.IGNORECASE) is not None for pattern in patterns
    )


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


class _Taken(S3ClientError):
    """The name belongs to another account. moto's own error would read that account's bucket."""

    def __init__(self) -> None:
        words = (
            "The requested bucket name is not available. The bucket namespace is shared by all users of the system. "
        )
        super().__init__("BucketAlreadyExists", f"{words}Please select a different name and try again.")


class TrustingSts(TokenResponse):
    """STS's API, which checks the trust policy of another account's role."""

    def assume_role(self) -> ActionResult:
        arn = str(self._get_param("RoleArn"))
        if account_of(arn) != self.current_account and not self._trusted(arn):
            caller = principal_of_key(self.access_key)
            message = f"User: {caller} is not authorized to perform: {_ASSUME} on resource: {arn}"
            raise refuse("AccessDenied", message)
        return super().assume_role()

    def get_caller_identity(self) -> ActionResult:
        """Return the caller as the sandbox's services do: the account's key is that of its root user."""
        caller = identity_of_key(self.get_access_key())
        return ActionResult({"UserId": caller.user_id, "Account": account_of(caller.arn), "Arn": caller.arn})

    def _trusted(self, arn: str) -> bool:
        try:
            role = iam_backends[account_of(arn)][PARTITION].get_role_by_arn(arn)
        except NotFoundException:
            return False
        trust = json.loads(role.assume_role_policy_document)
        return lets_in(trust, principal_of_key(self.access_key), _ASSUME, self._get_param("ExternalId"))


def _key_of(response: BaseResponse) -> str:
    """Return the access key of a request, which a presigned URL has in its arguments."""
    signed = response.querystring.get("X-Amz-Credential")
    return signed[0].split("/")[0] if signed else _access_key(response)


def _bucket_for(backend: S3Backend, bucket_name: str) -> FakeBucket:
    """Return a bucket of an account, or of another one that allows access."""
    partition, owner = s3_backends.bucket_accounts.get(bucket_name, (PARTITION, backend.account_id))
    if owner != backend.account_id:
        policy = _bucket(s3_backends[owner][partition], bucket_name).policy
        if not policy or not lets_in(json.loads(policy), f"arn:{PARTITION}:iam::{backend.account_id}:root"):
            raise S3AccessDeniedError
    return _bucket(backend, bucket_name)


def _new_bucket(backend: S3Backend, bucket_name: str, *rest: Any, **more: Any) -> FakeBucket:
    """Create a bucket. Names are unique in all accounts."""
    if s3_backends.bucket_accounts.get(bucket_name, (PARTITION, backend.account_id))[1] != backend.account_id:
        raise _Taken
    return _create_bucket(backend, bucket_name, *rest, **more)


def mount() -> None:
    """Install the checks of this module into moto."""
    moto.iam.models.get_account_id_from = account_of_key
    moto.sts.urls.url_paths = {"{0}/$": TrustingSts.dispatch}
    BaseResponse.get_access_key = _key_of  # pyrefly: ignore[bad-assignment]
    S3Backend.get_bucket = _bucket_for  # pyrefly: ignore[bad-assignment]
    S3Backend.create_bucket = _new_bucket  # pyrefly: ignore[bad-assignment]
