"""The webhooks of kube-apiserver for authentication by tokens, and for authorization by EKS's access policies.

In EKS each API server has both. Here the sandbox's HTTPS server answers for all clusters, at
`/podwright/eks/token-review/ACCOUNT/REGION/CLUSTER` and the same with `access-review`. It requires a secret that only
the API servers' files contain.

Sources: Kubernetes documentation, "Webhook Token Authentication" and "Webhook Mode", v1.34.
"""

import hmac
import json
from collections.abc import Callable, Iterable
from typing import Any

from werkzeug.exceptions import BadRequest, HTTPException, NotFound
from werkzeug.exceptions import Unauthorized as WithoutBearer
from werkzeug.wrappers import Request, Response

from ..protocol.json_objects import JsonObject
from .access_entries import user_of
from .access_policies import decision
from .service import Eks
from .tokens import Unauthorized
from .webhook_files import PREFIX


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
        """Answer a review, if its sender knows the secret."""
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
        # The API server does not cache errors, so a new access entry works at once.
        return {"authenticated": False, "error": f"{error} (sandbox)"}
