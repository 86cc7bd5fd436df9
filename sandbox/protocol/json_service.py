"""Serves AWS services with JSON protocols that moto lacks, by botocore's service models.

In the REST-JSON protocol, method and path select the operation; in the JSON protocol, the header X-Amz-Target does.

A service is an object for each account, with a method for each operation, named as in boto3. A method takes the region
and the members of the request, and returns those of the response. They are checked against the model, so that SDKs can
parse all responses.
"""

import base64
import json
import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

from botocore import xform_name
from botocore.model import Shape
from botocore.session import Session
from botocore.validate import ParamValidator
from moto.core.exceptions import ServiceException
from werkzeug.wrappers import Request, Response

from .accounts import account_of_request
from .json_objects import JsonObject
from .service import refuse

_SCOPE = re.compile(r"Credential=[^/]+/[0-9]+/([^/]+)/([^/]+)/aws4_request")


def scope_of(environ: dict[str, Any]) -> tuple[str, str]:
    """Return the region and service of a request's signature; empty strings without one."""
    match = _SCOPE.search(environ.get("HTTP_AUTHORIZATION", ""))
    return (match[1], match[2]) if match else ("", "")


class JsonService:
    """A WSGI application for one service. `name` is boto3's; `backend` returns an account's service."""

    def __init__(self, name: str, kind: type, backend: Callable[[str], object]) -> None:
        self.backend = backend
        model: Any = Session().get_service_model(name)  # botocore's stubs hide what its cached properties give
        self._routes = list[tuple[str, re.Pattern[str], Any, str]]()
        self._target_prefix: str | None = model.metadata.get("targetPrefix")
        for operation in [model.operation_model(operation) for operation in model.operation_names]:
            method = xform_name(operation.name)
            if hasattr(kind, method):
                # An ARN in a path contains slashes and colons.
                pattern = re.sub(r"\{(\w+)\}$", r"(?P<\1>.+)", operation.http["requestUri"])
                pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", pattern)
                self._routes.append((operation.http["method"], re.compile(pattern), operation, method))
        # The most specific path first: /workspaces/{id}/alias before /workspaces/{id}.
        self._routes.sort(key=lambda route: -route[1].pattern.count("/"))

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Serve one call."""
        request = Request(environ)
        try:
            status, answer = self._serve(request, scope_of(environ)[0], self.backend(account_of_request(environ)))
            headers = {}
        except ServiceException as error:
            missing = "NotFound" in error.code and self._target_prefix is None
            status, headers = 404 if missing else 400, {"x-amzn-ErrorType": error.code}
            answer = {"__type": error.code, "message": error.message}
        return Response(json.dumps(answer), status, headers, content_type="application/json")(environ, start_response)

    def _serve(self, request: Request, region: str, backend: object) -> tuple[int, JsonObject]:
        """Run the operation of a request. Returns its response and status."""
        target = request.headers.get("X-Amz-Target", "")
        for method, pattern, operation, name in self._routes:
            match = pattern.fullmatch(request.path)
            meant = self._target_prefix is None or target == f"{self._target_prefix}.{operation.name}"
            if match and meant and method == request.method:
                specified: JsonObject = {name: unquote(value) for name, value in match.groupdict().items()}
                specified |= request.args.to_dict() | (request.get_json(force=True) if request.get_data() else {})
                specified = _read(specified, operation.input_shape)
                _check(specified, operation.input_shape, "1 validation error detected: ")
                answer = getattr(backend, name)(region, specified)
                _check(answer, operation.output_shape, "the answer is not one that AWS gives: ")
                return operation.http.get("responseCode", 200), _written(answer, operation.output_shape)
        asked = target or f"{request.method} {request.path}"
        raise refuse("NotImplemented", f"{asked} is not in the sandbox (sandbox)")


def _check(values: JsonObject, shape: Shape | None, words: str) -> None:
    if shape is None:
        return
    report = ParamValidator().validate(values, shape)
    if report.has_errors():
        raise refuse("ValidationException", f"{words}{report.generate_report()}")


def _read(value: Any, shape: Any) -> Any:
    """Convert a JSON value to boto3's form. Blobs are in base64."""
    if value is None or shape is None:
        return value
    if shape.type_name == "structure":
        members = {member.serialization.get("name", name): (name, member) for name, member in shape.members.items()}
        return {
            members[key][0]: _read(item, members[key][1])
            for key, item in value.items()
            if key in members and item is not None
        }
    if shape.type_name == "list":
        return [_read(item, shape.member) for item in value]
    if shape.type_name == "map":
        return {key: _read(item, shape.value) for key, item in value.items()}
    if shape.type_name in ("integer", "long"):
        return int(value)
    return base64.b64decode(value) if shape.type_name == "blob" else value


def _written(value: Any, shape: Any) -> Any:
    """Convert a value to its JSON form."""
    if shape is None:
        return {}
    if shape.type_name == "structure":
        return {name: _written(item, shape.members[name]) for name, item in value.items() if item is not None}
    if shape.type_name == "list":
        return [_written(item, shape.member) for item in value]
    if shape.type_name == "map":
        return {key: _written(item, shape.value) for key, item in value.items()}
    if isinstance(value, datetime):
        return value.astimezone(UTC).timestamp()
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value
