"""A double of a client of AWS's SDK that takes no call which the SDK's own model refuses."""

from collections.abc import Callable
from functools import cache
from typing import Any

from botocore.exceptions import ParamValidationError
from botocore.session import get_session
from botocore.validate import ParamValidator


@cache
def _client(service: str) -> Any:
    # Of botocore: tests give handlers a double for boto3's session.
    return get_session().create_client(service, "us-west-2", aws_access_key_id="key", aws_secret_access_key="secret")


def check(service: str, method: str, parameters: dict[str, Any]) -> str:
    """The operation behind a client's method. Raises for one that the model lacks, and for wrong parameters."""
    client = _client(service)
    operation = client.meta.method_to_api_mapping[method]
    report = ParamValidator().validate(parameters, client.meta.service_model.operation_model(operation).input_shape)
    if report.has_errors():
        raise ParamValidationError(report=report.generate_report())
    return operation


class ModelledClient:
    """A client of `service` whose checked calls `double` answers. What is no operation of the service is `double`'s."""

    def __init__(self, service: str, double: Any) -> None:
        self._service, self._double = service, double

    def get_paginator(self, method: str) -> "_Paginator":
        """A paginator, as the double has it."""
        return _Paginator(self._checked(method, self._double.get_paginator(method).paginate))

    def __getattr__(self, name: str) -> Any:
        actual = getattr(self._double, name)
        return self._checked(name, actual) if name in _client(self._service).meta.method_to_api_mapping else actual

    def _checked(self, method: str, answer: Callable[..., Any]) -> Callable[..., Any]:
        def call(**parameters: Any) -> Any:
            check(self._service, method, parameters)
            return answer(**parameters)

        return call


class _Paginator:
    def __init__(self, paginate: Callable[..., Any]) -> None:
        self.paginate = paginate
