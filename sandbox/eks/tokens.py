"""Tokens of `aws eks get-token`: presigned GetCallerIdentity requests, which name the cluster in a signed header.

As in EKS, a token is valid only for the signed cluster, and for fifteen minutes after its date even if it requests
more. In EKS, STS checks the signature; the sandbox does if it created the caller's key. Our choice: a URL without a
date or signature is accepted.

Source: aws-iam-authenticator's `pkg/token`, 2026-11.
"""

import base64
import binascii
import hmac
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import parse_qs, urlsplit

from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from ..protocol.accounts import Identity, identity_of_key

_PREFIX: Final = "k8s-aws-v1."
_CLUSTER_HEADER: Final = "x-k8s-aws-id"
_LONGEST: Final = 4096
_VALID: Final = timedelta(minutes=15)
_LONGEST_EXPIRY: Final = 900


class Unauthorized(Exception):
    """The cluster does not accept a token; the message has the reason."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The signer of a token and its access key."""

    access_key: str
    identity: Identity


def caller_of(token: str, cluster: str) -> Caller:
    """Return the signer of a token for a cluster.

    Raises:
        Unauthorized: The token is malformed, expired, or signed for another cluster or with another secret.
    """
    url = _url(token)
    values = {name.lower(): items[0] for name, items in parse_qs(urlsplit(url).query).items()}
    access_key = values.get("x-amz-credential", "").partition("/")[0]
    if values.get("action") != "GetCallerIdentity" or not access_key:
        raise Unauthorized("the token is no signed GetCallerIdentity request")
    _check_age(values)
    identity = identity_of_key(access_key)
    if "x-amz-signature" in values:
        _check_signature(url, values, cluster, identity.secret)
    return Caller(access_key, identity)


def _url(token: str) -> str:
    if not token.startswith(_PREFIX) or len(token) > _LONGEST:
        raise Unauthorized("the token is none of `aws eks get-token`")
    encoded = token.removeprefix(_PREFIX)
    try:
        return base64.b64decode(encoded + "=" * (-len(encoded) % 4), b"-_", validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise Unauthorized("the token holds no URL") from None


def _check_age(values: dict[str, str]) -> None:
    expiry = values.get("x-amz-expires", "60")
    if not expiry.isdecimal() or int(expiry) > _LONGEST_EXPIRY:
        raise Unauthorized(f"the token asks to be good for {expiry} s")
    if "x-amz-date" not in values:
        return
    try:
        date = datetime.strptime(values["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:
        raise Unauthorized("the token has no date") from None
    if datetime.now(UTC) > date + _VALID:
        raise Unauthorized(f"the token of {date:%H:%M:%S} UTC has expired")


def _check_signature(url: str, values: dict[str, str], cluster: str, secret: str | None) -> None:
    """Check the signature if the sandbox knows the secret; otherwise check only that the request names a cluster."""
    if _CLUSTER_HEADER not in values.get("x-amz-signedheaders", "").lower().split(";"):
        raise Unauthorized(f"the token was signed without the header {_CLUSTER_HEADER}")
    if secret is None:
        return
    access_key, _, region, service, *_ = [*values["x-amz-credential"].split("/"), "", "", ""]
    unsigned = "&".join(part for part in url.split("&") if not part.lower().startswith("x-amz-signature="))
    request = AWSRequest("GET", unsigned, headers={_CLUSTER_HEADER: cluster})
    request.context["timestamp"] = values.get("x-amz-date", "")
    signer = SigV4QueryAuth(Credentials(access_key, secret), service, region)
    text = signer.string_to_sign(request, signer.canonical_request(request))
    if not hmac.compare_digest(signer.signature(text, request), values["x-amz-signature"]):
        raise Unauthorized("the token was signed for another cluster, or with another secret")
