"""What a deployment is doing: CloudFormation's events, and the words of the CDK CLI where those say why it stopped."""

import re
import sys
import time
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, TextIO

from ..output.console import write_to
from ..output.moving import Bar, settle, show, silence, span
from ..output.terminal import can_redraw
from .events import Event, EventsUnseen

_SYNTHESIZED: Final = re.compile(r"✨  Synthesis time: ([0-9.]+)s")
# The CLI repeats CloudFormation's events in columns.
_COLUMN: Final = " | "
_POLL_SECONDS: Final = 5.0
_PHASES: Final = {"synth": "synthesis", "deploy": "deployment", "destroy": "deletion"}


@dataclass(slots=True)
class _Stack:
    begun: datetime
    total: int | None = None
    """How many resources it will have; None where only CloudFormation knows what it does to them."""
    working_on: dict[tuple[str, str], str] = field(default_factory=dict)
    """The types of the resources that are at work, by stack and logical id."""
    finished: set[tuple[str, str]] = field(default_factory=set)


class Progress:
    """Prints what a deployment does: one line for each stack when it is done, and what is at work meanwhile.

    What happens it has from CloudFormation (`watch`), not from what the CLI prints.

    On a terminal the phase and a bar for each stack at work are drawn once a second. Elsewhere each phase is a line,
    and one follows when nothing was said for five seconds, later for half a minute, so that a log shows that the
    deployment lives.
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
        self._total: Callable[[str], int | None] = lambda _: None
        self._phase = ""
        self._stacks: dict[str, _Stack] = {}
        self._begun = self._entered = self._spoken = self._polled = clock()

    @property
    def elapsed(self) -> str:
        """Minutes and seconds since the start."""
        return span(self._clock() - self._begun)

    def watch(
        self, events: Callable[[], Collection[Event]], total: Callable[[str], int | None] = lambda _: None
    ) -> None:
        """Follow what `events` gives from call to call, in the next run of the CLI.

        `total` gives the number of resources of a stack by its name, once it is synthesized.
        """
        self._events, self._total = events, total

    def begin(self, command: str) -> None:
        """Announce a command of the CLI; events from here on count."""
        self._enter(_PHASES.get(command, command))
        # The first read only marks where the events stand now.
        self._poll()

    def line(self, text: str) -> None:
        """Take in one line of the CLI."""
        if match := _SYNTHESIZED.match(text):
            self.say("synthesis", f"{float(match[1]):.1f} s")
        elif text.strip() and _COLUMN not in text:
            self.last.append(text.rstrip())

    def say(self, what: str, result: str) -> None:
        """Print a line that stays."""
        write_to(self._stream, f"  {what:<24} {result}")
        self._spoken = self._clock()

    def tick(self) -> None:
        """Show what is at work. Call it about once a second."""
        if self._clock() - self._polled >= _POLL_SECONDS:
            self._poll()
        if can_redraw(self._stream):
            self._show()
        elif self._clock() - self._spoken >= silence(self._clock() - self._entered):
            self.say(self._phase or "at work", self._at_work())

    def end(self) -> None:
        """The CLI has ended: take in what happened since the last read."""
        self._poll()
        # The next run of the CLI may be about other stacks.
        self._events = None

    def close(self) -> None:
        """Take the moving lines away."""
        settle()

    def _enter(self, phase: str) -> None:
        """Say which phase begins."""
        self._phase, self._entered = phase, self._clock()
        if can_redraw(self._stream):
            self._show()
        else:
            self.say(phase, "begins")

    def _show(self) -> None:
        bars = [
            Bar(name, len(stack.finished), stack.total, " ".join(list(stack.working_on.values())[:1]))
            for name, stack in self._stacks.items()
        ]
        show(self._stream, f"  {self.elapsed}  {self._phase}", bars, self._clock())

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
        if event.logical_id == event.outermost and event.status == "CREATE_IN_PROGRESS":
            stack.total = self._total(event.outermost)
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
        self.say(event.outermost, f"{result:<16} {span((event.time - stack.begun).total_seconds())}")

    def _at_work(self) -> str:
        """`prod-eks 12 done AWS::EKS::Cluster` for each stack that is not done."""
        shown = [
            " ".join((name, f"{len(stack.finished)} done", *list(stack.working_on.values())[:1]))
            for name, stack in self._stacks.items()
        ]
        return f"{self.elapsed}  {', '.join(shown)}".rstrip()
