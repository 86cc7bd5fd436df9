"""Grafana's HTTP API, as far as dashboards, folders and data sources need it.

Sources: Grafana 10.4 documentation, "HTTP API"; Amazon Managed Grafana User Guide, "Using Grafana HTTP APIs", 2026-11.
"""

import json
import logging
import time
import urllib.error
import urllib.request
from typing import Any, Final
from urllib.parse import urlencode

_ATTEMPTS: Final = 6
_TIMEOUT_SECONDS: Final = 20
# A workspace that was just created or has a new token answers these for some seconds, and a busy one 429.
_AGAIN: Final = frozenset({401, 429, 500, 502, 503, 504})

logger = logging.getLogger()


class Refused(Exception):
    """Grafana does not take what it is given, or what is there belongs to somebody else."""


class Grafana:
    """A workspace, spoken to with a token of one of its service accounts."""

    def __init__(self, endpoint: str, token: str) -> None:
        # AWS documents the endpoint as an address in one place, and as a host's name in another.
        self._root = f"https://{endpoint.removeprefix('https://')}/api"
        self._token = token

    def find(self, path: str) -> dict[str, Any] | None:
        """What is at a path; None when there is nothing."""
        return self._call("GET", path, missing_is_fine=True)

    def search(self, **desired: str) -> list[dict[str, Any]]:
        """Dashboards and folders."""
        return self._call("GET", f"/search?{urlencode(desired)}")

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Make something."""
        return self._call("POST", path, body)

    def put(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Change something."""
        return self._call("PUT", path, body)

    def delete(self, path: str) -> None:
        """Delete something, if it is there."""
        self._call("DELETE", path, missing_is_fine=True)

    def _call(self, method: str, path: str, body: Any = None, *, missing_is_fine: bool = False) -> Any:
        """Grafana's answer as JSON; None for a 404 where `missing_is_fine`. Raises Refused after the last attempt."""
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json"}
        data = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(body).encode()
        request = urllib.request.Request(self._root + path, data=data, method=method, headers=headers)
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:
                    # Some answers have no body, which is no JSON.
                    return json.loads(answer.read() or b"null")
            except urllib.error.HTTPError as error:
                if error.code == 404 and missing_is_fine:
                    return None
                if error.code not in _AGAIN or attempt == _ATTEMPTS:
                    # CloudFormation keeps a reason short, and a proxy may answer with a whole page of HTML.
                    message = error.read().decode(errors="replace")[:500]
                    raise Refused(f"Grafana answers {method} {path} with {error.code}: {message}") from error
                logger.warning("Grafana answers %s %s with %d, attempt %d", method, path, error.code, attempt)
            except OSError as error:
                if attempt == _ATTEMPTS:
                    raise Refused(f"{self._root} cannot be reached: {error}") from error
                logger.warning("%s cannot be reached, attempt %d: %s", self._root, attempt, error)
            time.sleep(2 ** (attempt - 1))
        raise AssertionError("the last attempt returns or raises")
