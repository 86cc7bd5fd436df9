"""What a deployment is doing: CloudFormation's events, and the words of the CDK CLI where those say why it stopped."""

import re
import sys
import time
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, TextIO

from .events import Event, EventsUnseen

_SYNTHESIZED: Final = re.compile(r"✨  Synthesis time: ([0-9.]+)s")
# The CLI repeats CloudFormation's events in columns.
_COLUMN: Final = " | "
_POLL_SECONDS: Final = 5.0
_SILENCE: Final = 30.0


@dataclass(slots=True)
class _Stack:
    begun: datetime
    working_on: dict[tuple[str, str], str] = field(default_factory=dict)
    """The types of the resources that are at work, by stack and logical id."""
    finished: set[tuple[str, str]] = field(default_factory=set)


class Progress:
    """Prints what a deployment does: one line for each stack when it is done, and what is at work meanwhile.

    What happens it has from CloudFormation (`watch`), not from what the CLI prints.

    On a terminal the last line is rewritten once a second. Elsewhere a line follows when nothing was said for half a
    minute, so that a log shows that the deployment lives.
    """

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        """Writes to `stream`, standard error when absent; `clock` gives seconds."""
        self.failures: list[Event] = []
        """The causes: of each resource that failed its first event."""
        self.turned_back: list[Event] = []
        """The stacks that CloudFormation gave up, with its reasons."""
        self.touched: set[str] = set()
        """Names of the stacks to which something happened."""
        self.last: deque[str] = deque(maxlen=12)
        """The CLI's last words that are not about a resource."""
        # Looked up now: at import it may be another one.
        self._stream = stream or sys.stderr
        self._clock = clock
        self._events: Callable[[], Collection[Event]] | None = None
        self._stacks: dict[str, _Stack] = {}
        self._begun = self._spoken = self._polled = clock()

    @property
    def elapsed(self) -> str:
        """Minutes and seconds since the start."""
        return _span(self._clock() - self._begun)

    def watch(self, events: Callable[[], Collection[Event]]) -> None:
        """Follow what `events` gives from call to call, in the next run of the CLI."""
        self._events = events

    def begin(self) -> None:
        """The CLI is about to start: what happens from here on counts."""
        # The first read only marks where the events stand now.
        self._poll()

    def line(self, text: str) -> None:
        """Take in one line of the CLI."""
        if match := _SYNTHESIZED.match(text):
            self.say("synthesize", f"{float(match[1]):.1f} s")
        elif text.strip() and _COLUMN not in text:
            self.last.append(text.rstrip())

    def say(self, what: str, result: str) -> None:
        """Print a line that stays."""
        self._clear()
        self._stream.write(f"  {what:<24} {result}\n")
        self._stream.flush()
        self._spoken = self._clock()

    def tick(self) -> None:
        """Show what is at work. Call it about once a second."""
        if self._clock() - self._polled >= _POLL_SECONDS:
            self._poll()
        if self._stream.isatty():
            self._clear()
            # A line that wraps could not be taken away again.
            self._stream.write(f"  {self._at_work()}"[:110])
            self._stream.flush()
        elif self._clock() - self._spoken >= _SILENCE:
            self.say("at work", self._at_work())

    def end(self) -> None:
        """The CLI has ended: take in what happened since the last read."""
        self._poll()
        # The next run of the CLI may be about other stacks.
        self._events = None

    def close(self) -> None:
        """Take the moving line away."""
        self._clear()
        self._stream.flush()

    def _clear(self) -> None:
        if self._stream.isatty():
            self._stream.write("\r\x1b[K")

    def _poll(self) -> None:
        if self._events is None:
            return
        self._polled = self._clock()
        try:
            events = self._events()
        except EventsUnseen as unseen:
            # The deployment needs none of this.
            self._events = None
            self.say("events", f"cannot be seen: {unseen}")
            return
        for event in events:
            self._event(event)

    def _event(self, event: Event) -> None:
        """Note which resources are at work or finished, and keep what failed or turned a stack back."""
        self.touched.add(event.outermost)
        stack = self._stacks.setdefault(event.outermost, _Stack(event.time))
        resource = (event.stack, event.logical_id)
        if event.of_resource and event.status.endswith("_IN_PROGRESS"):
            stack.working_on[resource] = event.type
        elif event.of_resource:
            stack.working_on.pop(resource, None)
            stack.finished.add(resource)
        # A stack's own last event; events of nested stacks carry their own name.
        elif event.logical_id == event.outermost and event.status.endswith(("_COMPLETE", "_FAILED")):
            self._done(event)
        # A resource that fails twice has its cause in the first event.
        if event.failed and not any((other.stack, other.logical_id) == resource for other in self.failures):
            self.failures.append(event)
        if event.turned_back:
            self.turned_back.append(event)

    def _done(self, event: Event) -> None:
        stack = self._stacks.pop(event.outermost)
        count = len(stack.finished)
        result = f"{count} resource{'s' if count != 1 else ''}"
        if "ROLLBACK" in event.status or event.status.endswith("_FAILED"):
            result = "failed"
        elif event.status == "DELETE_COMPLETE":
            result = "deleted"
        self.say(event.outermost, f"{result:<16} {_span((event.time - stack.begun).total_seconds())}")

    def _at_work(self) -> str:
        """`prod-eks 12 done AWS::EKS::Cluster` for each stack that is not done."""
        shown = [
            " ".join((name, f"{len(stack.finished)} done", *list(stack.working_on.values())[:1]))
            for name, stack in self._stacks.items()
        ]
        idle = "finishing" if self.touched else "preparing"
        return f"{self.elapsed}  {', '.join(shown) or idle}"


def _span(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"
