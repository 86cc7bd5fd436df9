"""What AWS answers instead of what was asked."""

from typing import Any, NoReturn

from botocore.exceptions import ClientError


def refusal(code: str, message: str = "", operation: str = "Operation", status: int = 400) -> ClientError:
    """A service's refusal with that error code."""
    answer: Any = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, operation)


def refuse(code: str, message: str = "", operation: str = "Operation") -> NoReturn:
    """Refuse, where a double can only call something."""
    raise refusal(code, message, operation)
