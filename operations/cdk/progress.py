"""What a deployment is doing, read from the lines that the CDK CLI prints with `--progress events`."""

import re
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TextIO

# stack | done/total | time | status | type | path (logical id) reason. Source: HistoryActivityPrinter, aws-cdk 2.1146.
_EVENT: Final = re.compile(
    r"(?P<stack>[A-Za-z][A-Za-z0-9-]*) \| +(?:(?P<done>[0-9]+)(?:/(?P<total>[0-9]+))? \| )?[^|]+ \| "
    r"(?P<status>[A-Z_]+) +\| (?P<type>[\w:@-]+) +\| (?P<path>\S+)(?: \((?P<id>[A-Za-z0-9]+)\))? ?(?P<reason>.*)"
)
_SYNTHESIZED: Final = re.compile(r"✨  Synthesis time: ([0-9.]+)s")
_BEGUN: Final = re.compile(r"\S+ \((\S+)\): (?:deploying|destroying)\.\.\.")
_DONE: Final = re.compile(r" *(?P<sign>✅|❌) +(?:\S+ \()?(?P<stack>[A-Za-z][A-Za-z0-9-]*)\)?(?P<rest>.*)")
_SILENCE: Final = 30.0


@dataclass(slots=True)
class Event:
    """Something that happened to a resource, or to the stack itself."""

    stack: str
    status: str
    type: str
    path: str
    """Construct path, or logical id where there is none."""
    reason: str

    @property
    def of_resource(self) -> bool:
        """Whether it is about a resource, and not about the whole stack."""
        return self.path != self.stack

    @property
    def failed(self) -> bool:
        """Whether this event is a cause, and not one of the resources that CloudFormation gave up because of it."""
        return self.status.endswith("_FAILED") and self.of_resource and "cancelled" not in self.reason


@dataclass(slots=True)
class _Stack:
    begun: float
    done: int = 0
    total: int = 0
    working_on: dict[str, str] = field(default_factory=dict)
    finished: set[str] = field(default_factory=set)


class Progress:
    """Prints what a deployment does: one line for each stack when it is done, and what is at work meanwhile.

    On a terminal the last line is rewritten once a second. Elsewhere a line follows when nothing was said for half a
    minute, so that a log shows that the deployment lives.
    """

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self.failures: list[Event] = []
        self.failed_stacks: list[str] = []
        """Names of the stacks that the CLI gave up."""
        self.last: deque[str] = deque(maxlen=12)
        """The CLI's last words that are not about a resource."""
        self._stream = stream
        self._clock = clock
        self._stacks: dict[str, _Stack] = {}
        self._unfinished: Event | None = None
        """A failure whose reason may go on in the next line."""
        self._begun = self._spoken = clock()

    @property
    def elapsed(self) -> str:
        """Minutes and seconds since the start."""
        return _span(self._clock() - self._begun)

    def line(self, text: str) -> None:
        """Take in one line of the CLI."""
        continued, self._unfinished = self._unfinished, None
        if match := _EVENT.match(text):
            self._event(match)
        elif match := _SYNTHESIZED.match(text):
            self.say("synthesize", f"{float(match[1]):.1f} s")
        elif match := _BEGUN.match(text):
            self._stacks.setdefault(match[1], _Stack(self._clock()))
        else:
            if match := _DONE.match(text):
                self._done(match)
            elif continued and text.strip():
                continued.reason += f"\n{text.rstrip()}"
                self._unfinished = continued
            if text.strip():
                self.last.append(text.rstrip())

    def say(self, what: str, result: str) -> None:
        """Print a line that stays."""
        self._clear()
        self._stream.write(f"  {what:<24} {result}\n")
        self._stream.flush()
        self._spoken = self._clock()

    def tick(self) -> None:
        """Show what is at work. Call it about once a second."""
        if self._stream.isatty():
            self._clear()
            self._stream.write(f"  {self._at_work()}"[:110])
            self._stream.flush()
        elif self._clock() - self._spoken >= _SILENCE:
            self.say("at work", self._at_work())

    def close(self) -> None:
        """Take the moving line away."""
        self._clear()
        self._stream.flush()

    def _clear(self) -> None:
        if self._stream.isatty():
            self._stream.write("\r\x1b[K")

    def _event(self, match: re.Match[str]) -> None:
        event = Event(match["stack"], match["status"], match["type"], match["path"], match["reason"].strip())
        stack = self._stacks.setdefault(event.stack, _Stack(self._clock()))
        stack.done, stack.total = int(match["done"] or stack.done), int(match["total"] or stack.total)
        logical_id = match["id"] or event.path
        if event.of_resource and event.status.endswith("_IN_PROGRESS"):
            stack.working_on[logical_id] = event.type
        elif event.of_resource:
            stack.working_on.pop(logical_id, None)
            stack.finished.add(logical_id)
        if event.failed and not any((other.stack, other.path) == (event.stack, event.path) for other in self.failures):
            self.failures.append(event)
            self._unfinished = event

    def _done(self, match: re.Match[str]) -> None:
        name, rest = match["stack"], match["rest"]
        if name == "Environment":
            self.say("bootstrap", "done")
            return
        stack = self._stacks.pop(name, _Stack(self._clock()))
        if match["sign"] == "❌":
            result = "failed"
            self.failed_stacks.append(name)
        elif "no changes" in rest:
            result = "no changes"
        elif "destroyed" in rest:
            result = "deleted"
        else:
            count = len(stack.finished)
            result = f"{count} resource{'s' if count != 1 else ''}"
        self.say(name, f"{result:<16} {_span(self._clock() - stack.begun)}")

    def _at_work(self) -> str:
        """`prod-eks 12/40 AWS::EKS::Cluster 6:12` for each stack that is not done."""
        shown = []
        for name, stack in self._stacks.items():
            kinds = list(stack.working_on.values())
            counted = f"{stack.done}/{stack.total}" if stack.total else "…"
            shown.append(" ".join(filter(None, (name, counted, kinds[0] if kinds else ""))))
        return f"{self.elapsed}  {', '.join(shown) or 'synthesizing'}"


def _span(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"
