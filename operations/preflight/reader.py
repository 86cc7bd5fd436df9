"""Reading an account: calls that change nothing, each made once however many checks want its answer.

What keeps a call from being answered (no permission, no such endpoint, no time) becomes Unavailable with the reason.
"""

import json
import re
import threading
from collections.abc import Callable, Collection
from typing import Any, Final

from ...config.errors import PodwrightError

_READS: Final = re.compile(r"(describe|get|list|head|simulate)_[a-z_]+")
_DENIED: Final = {
    "403",
    "AccessDenied",
    "AccessDeniedException",
    "AuthorizationError",
    "AuthorizationErrorException",
    "Forbidden",
    "OptInRequired",
    "SubscriptionRequiredException",
    "UnauthorizedOperation",
}
_THROTTLED: Final = {
    "RequestLimitExceeded",
    "SlowDown",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
}
_UNSERVED: Final = {"InvalidAction", "NotImplemented", "UnknownOperationException", "UnsupportedOperation"}
_SERVER_ERROR: Final = 500


class Unavailable(PodwrightError):
    """A question that the account does not answer, and why; the check that asked is skipped."""


class Reader:
    """Calls to one account. Threads may share it; each answer is kept for whoever asks the same again."""

    def __init__(self, client: Callable[[str], Any]) -> None:
        """Reads by the clients that `client` makes of a service's name, one for each service."""
        self._make = client
        self._clients: dict[str, Any] = {}
        self._answers: dict[str, Any] = {}
        self._turns: dict[str, threading.Lock] = {}
        # Making a client reads shared files and is not safe in threads.
        self._making, self._asking = threading.Lock(), threading.Lock()

    def get(self, service: str, operation: str, **arguments: Any) -> dict[str, Any]:
        """The answer of one operation.

        Raises:
            Unavailable: there is none, for a reason that has nothing to do with what was asked.
            ClientError: the service's own refusal.
            ValueError: an operation that may change something.
        """
        return self._once(service, operation, "", arguments, lambda client: getattr(client, operation)(**arguments))

    def find(self, service: str, operation: str, absent: Collection[str], **arguments: Any) -> dict[str, Any] | None:
        """As `get`; None when the service refuses with one of the `absent` codes: there is no such thing."""
        from botocore.exceptions import ClientError

        try:
            return self.get(service, operation, **arguments)
        except ClientError as error:
            if code_of(error) in absent:
                return None
            raise

    def pages(
        self, service: str, operation: str, key: str, *, until: Callable[[Any], bool] | None = None, **arguments: Any
    ) -> list[Any]:
        """The items under `key` of all pages; no more pages are read once `until` is true of one's items."""

        def read(client: Any) -> list[Any]:
            found: list[Any] = []
            for page in client.get_paginator(operation).paginate(**arguments):
                found += page.get(key, [])
                if until and until(found):
                    break
            return found

        return self._once(service, operation, key, arguments, read)

    def _once(
        self, service: str, operation: str, part: str, arguments: dict[str, Any], read: Callable[[Any], Any]
    ) -> Any:
        if not _READS.fullmatch(operation):
            raise ValueError(f"{service}.{operation} may change something; preflight only reads")
        from botocore.exceptions import BotoCoreError, ClientError
        from botocore.parsers import ResponseParserError

        key = json.dumps([service, operation, part, arguments], sort_keys=True, default=str)
        with self._asking:
            turn = self._turns.setdefault(key, threading.Lock())
        with turn:
            if key not in self._answers:
                try:
                    self._answers[key] = read(self._client(service))
                except (BotoCoreError, ClientError, ResponseParserError) as error:
                    self._answers[key] = _explained(error, service, operation)
        answer = self._answers[key]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _client(self, service: str) -> Any:
        with self._making:
            if service not in self._clients:
                self._clients[service] = self._make(service)
            return self._clients[service]


def code_of(error: Any) -> str:
    """The error code of a ClientError."""
    return str(error.response["Error"]["Code"])


def _explained(error: Exception, service: str, operation: str) -> Exception:
    """The error, or the Unavailable that it amounts to."""
    from botocore import exceptions
    from botocore.parsers import ResponseParserError

    call = f"{service} {operation.replace('_', '-')}"
    match error:
        case exceptions.ParamValidationError():
            return error
        case exceptions.ClientError():
            code = code_of(error)
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            if code in _DENIED:
                return Unavailable(f"{call}: you may not make this call ({code})")
            if code in _THROTTLED:
                return Unavailable(f"{call}: AWS answers too many calls at the moment ({code})")
            if status >= _SERVER_ERROR or code in _UNSERVED:
                return Unavailable(f"{call}: the service does not answer it ({code})")
            return error
        case ResponseParserError():
            return Unavailable(f"{call}: something that is not the service answered, such as a proxy")
        case exceptions.BotoCoreError():
            return Unavailable(f"{call}: {' '.join(str(error).split())}")
    return error
