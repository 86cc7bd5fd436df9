"""Steps: how code that buys is written apart from what carries it out.

A purchase is a generator. Whatever it wants from the world - a call, the time, a pause - it yields as a step, and gets
the answer back from an `Engine`. So a person's command, a Lambda function and tests that stop it between any two steps
run the same code; with clients called directly, a test could stop it only inside a client.

Standard library only: this module travels into the Lambda function that buys, beside `plan_purchase`.
"""

import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Literal, TypeAlias, TypeVar

T = TypeVar("T")
Service = Literal["sagemaker", "seller", "dynamodb", "ec2"]

ONE_ATTEMPT: Final[Mapping[str, Any]] = {
    "retries": {"total_max_attempts": 1, "mode": "standard"},
    "connect_timeout": 5,
    "read_timeout": 60,
}
"""Arguments of botocore's Config for the client `seller`: what charges money is never sent twice."""
_UNDECIDED: Final = frozenset({"ResourceInUse", "RequestTimeout", "RequestTimeoutException"})
"""Refusals after which something may have been bought all the same. ResourceInUse may mean that the name is taken, and
no source says whether by the very purchase that asks."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of AWS. `seller` is a client of SageMaker too, made with ONE_ATTEMPT."""

    service: Service
    operation: str
    """As boto3 names the method."""
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sleep:
    """A pause."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Now:
    """Asks for the time, a datetime in UTC."""


@dataclass(frozen=True, slots=True)
class Tell:
    """Something that whoever waits may want to know."""

    text: str


Step = Call | Sleep | Now | Tell
Steps: TypeAlias = Generator[Step, Any, T]


class Engine:
    """Carries steps out: with boto3's clients, and with a clock and pauses that whoever makes it may choose."""

    def __init__(
        self,
        clients: Mapping[Service, Any],
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        sleep: Callable[[float], object] = time.sleep,
        tell: Callable[[str], object] = lambda text: None,
    ) -> None:
        """Works with `clients`, and hands what somebody may want to know to `tell`.

        Raises:
            ValueError: the client `seller` would send a call again that had no answer.
        """
        if "seller" in clients:
            _refuse_retries(clients["seller"])
        self._clients, self._clock, self._sleep, self._tell = clients, clock, sleep, tell

    def run(self, steps: Steps[T]) -> T:
        """Carry steps out, and return their result. What a call raises is the steps' to judge."""
        try:
            # A generator that has not begun takes no value, so the first step is fetched by next().
            step = next(steps)
            while True:
                try:
                    answer = self._carried_out(step)
                except Exception as error:  # noqa: BLE001  whatever a call raises is the steps' to judge
                    step = steps.throw(error)
                else:
                    step = steps.send(answer)
        except StopIteration as end:
            return end.value

    def _carried_out(self, step: Step) -> Any:
        match step:
            case Call(service, operation, parameters):
                return getattr(self._clients[service], operation)(**parameters)
            case Sleep(seconds):
                return self._sleep(seconds)
            case Now():
                return self._clock()
            # Told through the caller, which knows whether a person or a log reads it.
            case Tell(text):
                return self._tell(text)


def _refuse_retries(client: Any) -> None:
    # Doubles have no configuration, and retry nothing.
    meta = getattr(client, "meta", None)
    if meta is not None and (meta.config.retries or {}).get("total_max_attempts") != 1:
        raise ValueError(f"the client that buys has retries {meta.config.retries}; make it with Config(**ONE_ATTEMPT)")


def code_of(error: Exception) -> str:
    """The error code of an AWS error, else the name of its class."""
    response: Mapping[str, Any] = getattr(error, "response", None) or {}
    return response.get("Error", {}).get("Code") or type(error).__name__


def is_refusal(error: Exception) -> bool:
    """Whether AWS definitely did not do what was asked. No answer, or a server's error, leaves that open."""
    response: Mapping[str, Any] = getattr(error, "response", None) or {}
    # Without a status there was no answer, which counts as a server's error.
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500)
    return 400 <= status < 500 and code_of(error) not in _UNDECIDED
