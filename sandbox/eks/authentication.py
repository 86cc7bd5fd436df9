"""The webhooks that kube-apiserver asks who a token's bearer is, and what EKS's access policies allow a user.

EKS has both beside each API server. Here the sandbox's HTTPS server answers for all clusters, at
`/podwright/eks/token-review/ACCOUNT/REGION/CLUSTER` and the same with `access-review`, and only to who knows a secret
that lies in the API servers' files.

Sources: Kubernetes documentation, "Webhook Token Authentication" and "Webhook Mode", v1.34.
"""

import hmac
import json
import secrets
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from werkzeug.exceptions import BadRequest, HTTPException, NotFound
from werkzeug.exceptions import Unauthorized as WithoutBearer
from werkzeug.wrappers import Request, Response

from ..protocol.json_objects import JsonObject
from .access_entries import user_of
from .access_policies import decision
from .service import Eks
from .tokens import Unauthorized

PREFIX: Final = "/podwright/eks/"
# EKS's changes take several seconds, too.
_TRUSTED_FOR: Final = "5s"
_REFUSED_FOR: Final = "1s"


class AccessWebhooks:
    """A WSGI application for everything below PREFIX; `clusters` are those of an account."""

    def __init__(self, clusters: Callable[[str], Eks], bearer: str) -> None:
        self._clusters, self._bearer = clusters, bearer

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Answer one review."""
        try:
            answer: Any = self._answer(Request(environ))
        except HTTPException as error:
            answer = error
        return answer(environ, start_response)

    def _answer(self, request: Request) -> Response:
        """Judge what a review asks, once its sender has shown the secret."""
        expected = f"Bearer {self._bearer}".encode()
        if not hmac.compare_digest(request.headers.get("Authorization", "").encode(), expected):
            raise WithoutBearer
        parts = request.path.removeprefix(PREFIX).split("/")
        review = request.get_json()
        if len(parts) != 4 or not isinstance(review, dict) or not isinstance(review.get("spec"), dict):
            raise BadRequest
        kind, account, region, cluster = parts
        eks = self._clusters(account)
        if kind == "token-review":
            status = _token_status(eks, region, cluster, review["spec"].get("token", ""))
        elif kind == "access-review" and (region, cluster) in eks.clusters:
            status = decision(eks.clusters[region, cluster], review["spec"])
        else:
            raise NotFound
        answer = {"apiVersion": review.get("apiVersion"), "kind": review.get("kind"), "status": status}
        return Response(json.dumps(answer), content_type="application/json")


def _token_status(eks: Eks, region: str, cluster: str, token: str) -> JsonObject:
    try:
        return {"authenticated": True, "user": user_of(eks, region, cluster, token)}
    except Unauthorized as error:
        # With an error the API server asks again the next time, so that a new access entry works at once.
        return {"authenticated": False, "error": f"{error} (sandbox)"}


def bearer_in(folder: Path) -> str:
    """The secret of the webhooks, made on the first call, in a file for its owner alone."""
    file = folder / "webhooks.secret"
    if not file.exists():
        new = file.with_suffix(".new")
        new.touch(0o600)
        new.write_text(secrets.token_hex(32), encoding="ascii")
        new.replace(file)
    return file.read_text(encoding="ascii")


def api_server_options(folder: Path, server: str, trusted: Path, bearer: str, cluster: str) -> dict[str, str]:
    """The options by which kube-apiserver asks these webhooks. Their kubeconfigs are written into the folder.

    Args:
        folder: For the kubeconfigs, which hold the secret.
        server: URL of the sandbox's HTTPS server, without a path.
        trusted: The authority that signed that server's certificate.
        bearer: The secret, as `bearer_in` gives it.
        cluster: Account, region and name with slashes between them.
    """
    files = {
        kind: _kubeconfig(folder / f"{kind}.kubeconfig", f"{server}{PREFIX}{kind}/{cluster}", trusted, bearer)
        for kind in ("token-review", "access-review")
    }
    return {
        "authentication-token-webhook-config-file": str(files["token-review"]),
        "authentication-token-webhook-version": "v1",
        "authentication-token-webhook-cache-ttl": _TRUSTED_FOR,
        "authorization-mode": "Node,RBAC,Webhook",
        "authorization-webhook-config-file": str(files["access-review"]),
        "authorization-webhook-version": "v1",
        "authorization-webhook-cache-authorized-ttl": _TRUSTED_FOR,
        "authorization-webhook-cache-unauthorized-ttl": _REFUSED_FOR,
    }


def _kubeconfig(file: Path, url: str, trusted: Path, bearer: str) -> Path:
    """Write the kubeconfig of a webhook, for its owner alone. JSON is YAML, too."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "webhook",
        "clusters": [{"name": "webhook", "cluster": {"server": url, "certificate-authority": str(trusted)}}],
        "users": [{"name": "kube-apiserver", "user": {"token": bearer}}],
        "contexts": [{"name": "webhook", "context": {"cluster": "webhook", "user": "kube-apiserver"}}],
    }
    file.touch(0o600)
    file.write_text(json.dumps(config), encoding="utf-8")
    return file
