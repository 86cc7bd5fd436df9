"""Base classes of podwright's AWS services. moto serializes their responses by botocore's service models."""

from typing import Any

from moto.core.exceptions import ServiceException
from moto.core.responses import ActionResult, BaseResponse

from .json_objects import JsonObject


class Refusal(ServiceException):
    """An error response with the service's error code and a message. moto finds its shape in the service model."""


def refuse(code: str, message: str) -> Refusal:
    """Return an error response with the service's error code."""
    return Refusal(code, message)


class OwnResponse(BaseResponse):
    """A request to one of podwright's services. Subclasses have a method for each operation."""

    api_name = ""

    def __init__(self) -> None:
        super().__init__(service_name=self.api_name)
        self.automated_parameter_parsing = True

    def arguments(self) -> JsonObject:
        """Return the request's members, including those in the path."""
        merged = {**dict(self.params), **self.uri_match}
        return {key: value for key, value in merged.items() if value is not None}

    def page(
        self, items: list[Any], key: str, size_key: str = "MaxResults", token_key: str = "NextToken"
    ) -> ActionResult:
        """Return a page of a list operation."""
        size, start = int(self._get_param(size_key) or 100), int(self._get_param(token_key) or 0)
        more = {token_key: str(start + size)} if len(items) > start + size else {}
        return ActionResult({key: items[start : start + size], **more})
