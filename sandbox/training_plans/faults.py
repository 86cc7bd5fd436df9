"""Faults of calls: a refusal, a completed call without a response, or an expired offer."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, Literal, ParamSpec, Protocol, TypeVar

from botocore.exceptions import ClientError, ReadTimeoutError

P = ParamSpec("P")
R = TypeVar("R")
_STATUS = {"InternalFailure": 500}


@dataclass
class Fault:
    """A fault of the next call of an operation, by boto3's name of its method.

    throttle: refused with ThrottlingException. error: InternalFailure. timeout: no answer. vanish: every offer that was
    ever made is gone by the time of the call. With `after` an error or a timeout comes once the call is done. `skip`
    calls go well first; the fault meets `times` calls.
    """

    # The sandbox's operation refuses unknown keys.
    __pydantic_config__ = {"extra": "forbid"}

    operation: str
    kind: Literal["throttle", "error", "timeout", "vanish"]
    after: bool = False
    skip: int = 0
    times: int = 1


class Faulty(Protocol):
    """An object whose calls can have faults."""

    faults: list[Fault]

    def withdraw(self) -> None:
        """Expire all existing offers."""
        ...


def client_error(operation: str, code: str, message: str) -> ClientError:
    """Return an error as boto3 raises it. Its message ends with "(sandbox)"."""
    return ClientError(
        {
            "Error": {"Code": code, "Message": f"{message} (sandbox)"},
            # pyrefly: ignore[bad-typed-dict-key]
            "ResponseMetadata": {"HTTPStatusCode": _STATUS.get(code, 400), "RequestId": "sandbox"},
        },
        "".join(word.title() for word in operation.split("_")),
    )


def may_fail(method: Callable[P, R]) -> Callable[P, R]:
    """Return the operation with the faults of its owner applied."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        owner: Any = args[0]
        fault = _next(owner, call.__name__)
        if fault and fault.kind == "vanish":
            owner.withdraw()
        elif fault and not fault.after:
            raise _failure(fault)
        answer = method(*args, **kwargs)
        if fault and fault.after:
            raise _failure(fault)
        return answer

    return call


def _next(owner: Faulty, operation: str) -> Fault | None:
    for fault in owner.faults:
        if fault.operation == operation:
            if fault.skip:
                fault.skip -= 1
                return None
            fault.times -= 1
            if not fault.times:
                owner.faults.remove(fault)
            return fault
    return None


def _failure(fault: Fault) -> Exception:
    if fault.kind == "throttle":
        return client_error(fault.operation, "ThrottlingException", "Rate exceeded")
    if fault.kind == "error":
        return client_error(fault.operation, "InternalFailure", "The request failed for an unknown reason")
    return ReadTimeoutError(endpoint_url=f"https://sagemaker.invalid/{fault.operation}")
