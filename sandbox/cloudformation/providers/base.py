"""What a resource handler gets and gives."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from ...protocol.arns import PARTITION
from ...protocol.clients import Clients
from ...protocol.json_objects import JsonObject

_GONE: Final = ("NotFound", "NoSuch", "DoesNotExist", "NonExistent")
"""In the codes by which services say that they have no such thing."""


class HandlerError(Exception):
    """A handler refuses; the text is the whole status reason of the resource.

    `physical_id` names what was made before the failure, so that the rollback deletes it.
    """

    def __init__(self, reason: str, physical_id: str = ""):
        super().__init__(reason)
        self.physical_id = physical_id

    @classmethod
    def of(cls, error: ClientError | BotoCoreError) -> "HandlerError":
        """An API error in the form that CloudFormation's own handlers report it."""
        message, status = str(error), 500
        if isinstance(error, ClientError):
            detail = error.response.get("Error", {})
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400)
            message = f"{detail.get('Message')} (Service: {error.operation_name}, Status Code: {status})"
        code = "InvalidRequest" if status < 500 else "GeneralServiceException"
        return cls.saying(message, code)

    @classmethod
    def saying(cls, message: str, code: str = "InvalidRequest", physical_id: str = "") -> "HandlerError":
        """A refusal with a handler error code (AWS: "Handler error codes" of the CloudFormation CLI)."""
        return cls(
            f'Resource handler returned message: "{message}" (RequestToken: {uuid.uuid4()}, HandlerErrorCode: {code})',
            physical_id,
        )


@dataclass
class Request:
    """One call of a handler: what the resource should be, and what it was."""

    resource_type: str
    logical_id: str
    stack_name: str
    stack_id: str
    region: str
    properties: JsonObject
    clients: Clients
    physical_id: str = ""
    attributes: JsonObject = field(default_factory=dict)
    previous: JsonObject = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)

    def client(self, service: str) -> Any:
        """A boto3 client of this service in the stack's region."""
        return self.clients.client(service, self.region)

    def arn(self, service: str, resource: str) -> str:
        """An ARN of this account and region."""
        return f"arn:{PARTITION}:{service}:{self.region}:{self.clients.account}:{resource}"

    def name(self, limit: int = 63, lower: bool = False) -> str:
        """A physical name as CloudFormation makes it: stack, logical id, random end; shortened to the limit."""
        end = uuid.uuid4().hex[:12]
        stem = f"{self.stack_name}-{self.logical_id}"[: limit - len(end) - 1].rstrip("-")
        name = f"{stem}-{end}"
        return name.lower() if lower else name


@dataclass
class Outcome:
    """What a handler made: the physical id and the attributes that `Fn::GetAtt` can read."""

    physical_id: str
    attributes: JsonObject = field(default_factory=dict)


@contextmanager
def unless_gone() -> Iterator[None]:
    """Delete what may be gone already, which is a success as for CloudFormation."""
    try:
        yield
    except ClientError as error:
        if not any(word in error.response["Error"]["Code"] for word in _GONE):
            raise


class Provider(Protocol):
    """A resource handler. Methods may block until the resource is stable, and raise HandlerError or a boto3 error."""

    def create(self, request: Request) -> Outcome:
        """Make the resource."""
        ...

    def update(self, request: Request) -> Outcome:
        """Change it in place; an outcome with another physical id means that it was replaced."""
        ...

    def delete(self, request: Request) -> None:
        """Remove it. The caller takes an error by which a service says that it has no such thing for a success."""
        ...
