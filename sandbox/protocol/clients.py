"""Clients of the sandbox's own API, as its services use them among each other."""

from typing import Any, Protocol


class Clients(Protocol):
    """Gives boto3 clients that talk to the sandbox at `endpoint`."""

    @property
    def endpoint(self) -> str:
        """The sandbox's URL."""
        ...

    @property
    def account(self) -> str:
        """The account that they belong to."""
        ...

    def client(self, service: str, region: str) -> Any:
        """The client of a service in a region."""
        ...
