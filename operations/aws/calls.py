"""Calls of AWS services. Every other module asks through this folder; none makes a client or pages by itself."""

import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any, Final, Protocol

from .unseen import code_of, unseen

# Names by which AWS calls what changes nothing. A new service that breaks with them is refused, not let through.
_READS: Final = re.compile(r"(batch_get|describe|get|head|list|search|simulate)_[a-z_0-9]+")


class Clients(Protocol):
    """Whatever has boto3's clients, such as an Account."""

    def client(self, service: str) -> Any:
        """The client of a service."""
        ...


def get(clients: Clients, service: str, operation: str, **arguments: Any) -> dict[str, Any]:
    """The answer of an operation that reads.

    Raises:
        ClientError: the service refuses.
        ValueError: an operation that may change something.
    """
    _check_reads(service, operation)
    return getattr(clients.client(service), operation)(**arguments)


def find(
    clients: Clients, service: str, operation: str, absent: Collection[str], **arguments: Any
) -> dict[str, Any] | None:
    """As `get`; None when the service refuses with one of the `absent` codes: there is no such thing."""
    from botocore.exceptions import ClientError

    try:
        return get(clients, service, operation, **arguments)
    except ClientError as error:
        if code_of(error) in absent:
            return None
        raise


def pages(
    clients: Clients,
    service: str,
    operation: str,
    *keys: str,
    until: Callable[[list[Any]], bool] | None = None,
    **arguments: Any,
) -> list[Any]:
    """The items under `keys` of all pages; no more pages are read once `until` is true of the items so far."""
    _check_reads(service, operation)
    results: list[Any] = []
    for page in clients.client(service).get_paginator(operation).paginate(**arguments):
        for key in keys:
            results += page.get(key) or []
        # Paging costs a request each; who looks for one thing stops at it.
        if until and until(results):
            break
    return results


def pages_by_token(
    clients: Clients, service: str, operation: str, key: str, token: str = "NextToken", **arguments: Any
) -> list[Any]:
    """As `pages`, for operations that botocore knows no paginator of. `token` is the member that leads on."""
    answer = get(clients, service, operation, **arguments)
    results: list[Any] = [*answer[key]]
    while answer.get(token):
        answer = get(clients, service, operation, **arguments, **{token: answer[token]})
        results += answer[key]
    return results


def change(clients: Clients, service: str, operation: str, **arguments: Any) -> dict[str, Any]:
    """Call an operation that changes something, and return its answer."""
    return getattr(clients.client(service), operation)(**arguments)


def make(clients: Clients, service: str, operation: str, existing: Collection[str], **arguments: Any) -> bool:
    """As `change`, for what may be there already: False where the service refuses with one of the `existing` codes."""
    from botocore.exceptions import ClientError

    try:
        change(clients, service, operation, **arguments)
    except ClientError as error:
        if code_of(error) not in existing:
            raise
        return False
    return True


class CallCount:
    """Counts the requests that a service's client sends, retries included."""

    def __init__(self, clients: Clients, service: str) -> None:
        self._counts: Counter[str] = Counter()
        self._counting = threading.Lock()
        # Before it is sent, and so once for each retry.
        clients.client(service).meta.events.register(f"before-send.{service}", self._count)

    def clear(self) -> None:
        """Begin anew."""
        with self._counting:
            self._counts.clear()

    @property
    def by_operation(self) -> dict[str, int]:
        """How often each operation was called."""
        with self._counting:
            return dict(sorted(self._counts.items()))

    def _count(self, event_name: str, **_: Any) -> None:
        with self._counting:
            # The event is called `before-send.sagemaker.ListClusterNodes`.
            self._counts[event_name.rpartition(".")[2]] += 1


class Reader:
    """Reads an account for many checks at once: threads share it, and each call is made once.

    What keeps a call from being answered (no permission, no such endpoint, no time) is Unseen, with the reason.
    """

    def __init__(self, client: Callable[[str], Any]) -> None:
        """Reads by the clients that `client` makes of a service's name, one for each service."""
        self._make = client
        self._clients: dict[str, Any] = {}
        self._answers: dict[str, Any] = {}
        self._turns: dict[str, threading.Lock] = {}
        # Making a client reads shared files and is not safe in threads.
        self._making, self._asking = threading.Lock(), threading.Lock()

    def client(self, service: str) -> Any:
        """The client of a service, made once."""
        with self._making:
            if service not in self._clients:
                self._clients[service] = self._make(service)
            return self._clients[service]

    def get(self, service: str, operation: str, **arguments: Any) -> dict[str, Any]:
        """The answer of one operation.

        Raises:
            Unseen: there is none, for a reason that has nothing to do with what was asked.
            ClientError: the service's own refusal.
            ValueError: an operation that may change something.
        """
        return self._once(service, operation, "", arguments, lambda: get(self, service, operation, **arguments))

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
        return self._once(
            service, operation, key, arguments, lambda: pages(self, service, operation, key, until=until, **arguments)
        )

    def _once(self, service: str, operation: str, part: str, arguments: dict[str, Any], read: Callable[[], Any]) -> Any:
        """The answer of `read`, kept for whoever asks the same again; errors are kept as well."""
        _check_reads(service, operation)
        from botocore.exceptions import BotoCoreError, ClientError
        from botocore.parsers import ResponseParserError

        # Times and the like as text: the key only has to be the same for the same question.
        key = json.dumps([service, operation, part, arguments], sort_keys=True, default=str)
        with self._asking:
            # One lock for each question: others run meanwhile, and whoever asks the same waits for the first answer.
            turn = self._turns.setdefault(key, threading.Lock())
        with turn:
            if key not in self._answers:
                try:
                    self._answers[key] = read()
                except (BotoCoreError, ClientError, ResponseParserError) as error:
                    self._answers[key] = unseen(error, f"{service} {operation.replace('_', '-')}") or error
        answer = self._answers[key]
        if isinstance(answer, Exception):
            raise answer
        return answer


def _check_reads(service: str, operation: str) -> None:
    if not _READS.fullmatch(operation):
        raise ValueError(f"{service}.{operation} may change something, and this only reads")
