"""What an account does not show, and why: the one form of it for every command."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

from ...config.errors import CommandError, PodwrightError

T = TypeVar("T")
_DENIED: Final = {
    "403",
    "AccessDenied",
    "AccessDeniedException",
    "AuthorizationError",
    "AuthorizationErrorException",
    "Client.UnauthorizedOperation",
    "Forbidden",
    "OptInRequired",
    "SubscriptionRequiredException",
    "UnauthorizedOperation",
}
_THROTTLED: Final = {
    "RequestLimitExceeded",
    "SlowDown",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
}
_UNSERVED: Final = {"InvalidAction", "NotImplemented", "UnknownOperationException", "UnsupportedOperation"}
_SERVER_ERROR: Final = 500


class Unseen(PodwrightError):
    """A question that the account does not answer. The rest of a command continues without it."""

    def __init__(self, what: str, why: str, code: str = "") -> None:
        """`what` was asked; `why` there is no answer; AWS's error `code`, where it gave one."""
        super().__init__(f"{what}: {why}")
        self.what, self.why, self.code = what, why, code

    @property
    def denied(self) -> bool:
        """Whether the caller lacks a permission."""
        return self.code in _DENIED


def code_of(error: Any) -> str:
    """The error code of a ClientError."""
    return str(error.response["Error"]["Code"])


def is_denied(error: Any) -> bool:
    """Whether a ClientError says that the caller lacks a permission."""
    return code_of(error) in _DENIED


def unseen(error: Exception, call: str) -> Unseen | None:
    """Why a call was not answered, for a reason that has nothing to do with what was asked; None for other errors."""
    from botocore import exceptions
    from botocore.parsers import ResponseParserError

    match error:
        case exceptions.ParamValidationError():
            return None
        case exceptions.ClientError():
            code = code_of(error)
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            if code in _DENIED:
                return Unseen(call, f"you may not make this call ({code})", code)
            if code in _THROTTLED:
                return Unseen(call, f"AWS answers too many calls at the moment ({code})", code)
            if status >= _SERVER_ERROR or code in _UNSERVED:
                return Unseen(call, f"the service does not answer it ({code})", code)
        case ResponseParserError():
            return Unseen(call, "something that is not the service answered, such as a proxy")
        case exceptions.BotoCoreError():
            return Unseen(call, " ".join(str(error).split()))
    return None


def permitted(question: Callable[[], T]) -> T | Unseen:
    """The answer of `question`; where the caller lacks a permission, that. Other errors are raised."""
    from botocore.exceptions import ClientError

    try:
        return question()
    except ClientError as error:
        if not is_denied(error):
            raise
        return Unseen(error.operation_name, str(error.response["Error"].get("Message", "")), code_of(error))


def attempt(question: Callable[[], T], *also: type[Exception]) -> T | Unseen:
    """The answer of `question`; where AWS refuses it or is not reached, why. `also` are errors that count the same."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        return question()
    except ClientError as error:
        reason: Exception = error
        resolved_unseen = Unseen(error.operation_name, str(error.response["Error"].get("Message", "")), code_of(error))
    except (BotoCoreError, CommandError, *also) as error:
        reason = error
        resolved_unseen = Unseen("AWS", str(error))
    resolved_unseen.__cause__ = reason
    return resolved_unseen


def noted(name: str, question: Callable[[], T], unseen: dict[str, str], *also: type[Exception]) -> T | None:
    """The answer of `question`; where there is none, None, and the reason in `unseen` under `name`. See `attempt`."""
    answer = attempt(question, *also)
    if isinstance(answer, Unseen):
        unseen[name] = f"{answer.code} on {answer.what}" if answer.code else answer.why
        return None
    return answer
