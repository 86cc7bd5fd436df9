"""Admission policies from when a real API server refuses by them until they are gone."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kubernetes.client.exceptions import ApiException

from api_server import ApiServer, Object
from waiting import until


def refusal(error: ApiException) -> str:
    """What the server says of it."""
    return json.loads(str(error.body))["message"]


@contextmanager
def in_force(server: ApiServer, policies: list[Object], probe: Callable[[], object]) -> Iterator[None]:
    """Policies, from when the server refuses what each probe does until they are gone."""

    def refuses() -> bool:
        try:
            probe()
        except ApiException as error:
            return "ValidatingAdmissionPolicy" in refusal(error)
        return False

    for item in policies:
        server.apply(item)
    try:
        until(refuses)
        yield
    finally:
        for item in reversed(policies):
            server.delete(item)
