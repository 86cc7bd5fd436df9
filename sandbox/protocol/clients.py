"""Clients by which the sandbox's services call each other."""

from typing import Any, Protocol


class Clients(Protocol):
    """Creates boto3 clients of the sandbox at `endpoint`."""

    @property
    def endpoint(self) -> str:
        """The sandbox's URL."""
        ...

    @property
    def account(self) -> str:
        """Account of the clients."""
        ...

    def client(self, service: str, region: str) -> Any:
        """Return the client of a service in a region."""
        ...
