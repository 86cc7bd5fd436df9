"""What CloudFormation does to the stacks of an environment, nested ones included, by DescribeStackEvents."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from ...config.errors import PodwrightError
from ..aws.account import Account
from ..aws.stacks import Stack, StackEvent, stack_events

_BEGIN: Final = ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "DELETE_IN_PROGRESS", "IMPORT_IN_PROGRESS")
"""Statuses of a stack with which an operation on it begins."""


class EventsUnseen(PodwrightError):
    """CloudFormation does not show its stacks or their events."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a resource, or to the stack itself."""

    stack: str
    """Name of its stack."""
    outermost: str
    """Name of the stack that holds that one, or of the stack itself where none does."""
    status: str
    type: str
    logical_id: str
    reason: str
    time: datetime

    @property
    def of_resource(self) -> bool:
        """Whether it is about a resource, and not about the whole stack."""
        return self.logical_id != self.stack

    @property
    def failed(self) -> bool:
        """Whether this event is a cause, and not one of the resources that CloudFormation gave up because of it."""
        # When one resource fails, CloudFormation gives up the others with the reason "Resource creation cancelled".
        return self.status.endswith("_FAILED") and self.of_resource and "cancelled" not in self.reason

    @property
    def turned_back(self) -> bool:
        """Whether it turns a whole stack back, with the reason, such as an export in use."""
        ending = self.status.endswith(("ROLLBACK_IN_PROGRESS", "_FAILED"))
        return ending and not self.of_resource and bool(self.reason)


@dataclass(slots=True)
class _Known:
    """A stack as the last read saw it."""

    name: str
    outermost: str
    state: tuple[Any, ...]
    """Changes with every operation."""
    newest: str = ""
    """Id of the newest event that was handed out."""


def _outermost(stack: str, names: Sequence[str]) -> str:
    """The first of the sorted `names` that holds a stack: names of nested stacks begin with those of their holders."""
    # With a hyphen, so that `prod-eks` holds `prod-eks-Nested` and not `prod-eksplore`.
    return next(name for name in names if f"{stack}-".startswith(f"{name}-"))


class StackEvents:
    """Calls give the events since the call before, the oldest first; the first one gives none."""

    def __init__(self, account: Account, stacks: Callable[[], list[Stack]]) -> None:
        """Asks nothing yet. `stacks` gives all stacks, nested ones too."""
        self._account = account
        self._stacks = stacks
        self._known: dict[str, _Known] | None = None

    def __call__(self) -> list[Event]:
        """The events since the last call. Raises EventsUnseen where CloudFormation lets nobody look."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            return self._new()
        except (BotoCoreError, ClientError) as error:
            raise EventsUnseen(str(error)) from error

    def _new(self) -> list[Event]:
        """Events since the last read, by time; none the first time, which only learns what is there."""
        listed = self._listed()
        former, self._known = self._known, listed
        if former is None:
            return []
        events: list[Event] = []
        # A stack that is gone is asked once more, by its id: the events of its deletion come after the last read.
        for id, stack in (former | listed).items():
            before = former.get(id)
            stack.newest = before.newest if before else ""
            # A stack at rest whose state has not changed has no new events, and each read is a request.
            quiet = before is not None and before.state == stack.state and not stack.state[0].endswith("_IN_PROGRESS")
            if id not in listed or not quiet:
                events += self._since(id, stack)
        return sorted(events, key=lambda event: event.time)

    def _listed(self) -> dict[str, _Known]:
        stacks = self._stacks()
        names = sorted(stack.name for stack in stacks)
        return {
            stack.id: _Known(
                stack.name, _outermost(stack.name, names), (stack.status, stack.description.get("LastUpdatedTime"))
            )
            for stack in stacks
        }

    def _since(self, id: str, stack: _Known) -> list[Event]:
        """The events of a stack that were not handed out, at most those of the operation at work."""
        results: list[StackEvent] = []
        # The newest come first, so it ends at the first that is known.
        for event in stack_events(self._account, id):
            if event.id == stack.newest:
                break
            results.append(event)
            if event.of_stack and event.status in _BEGIN:
                break
        stack.newest = results[0].id if results else stack.newest
        # A change set is looked at; nothing happens yet.
        shown = [event for event in results if event.status != "REVIEW_IN_PROGRESS"]
        return [
            Event(stack.name, stack.outermost, event.status, event.type, event.logical_id, event.reason, event.at)
            for event in shown
        ]
