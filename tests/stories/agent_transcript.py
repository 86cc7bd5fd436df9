"""A conversation between the SDK's client and the server over standard input and output, and its transcript.

The tests contain the sentences of the person and the calls of the model. Replies, questions and refusals come from the
server. The transcript has short names instead of ids, which differ in each run.
"""

import json
import os
import re
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

from mcp import Client, StdioServerParameters
from mcp_types import ElicitResult

_ID: Final = re.compile(r"\b[0-9a-f]{32}\b")
_MASKS: Final = (
    (re.compile(r"\bi-[0-9a-f]{17}\b"), "i-…"),
    (re.compile(r"tpo-[\w-]+"), "tpo-…"),
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:+Z.-]+"), "(time)"),
    (re.compile(r"training-plan/[\w-]+"), "training-plan/…"),
)
_SHOWN: Final = ("edit_id", "written", "plan_id", "refusal", "applied", "why_not", "command")
Reply = dict[str, Any]


class Conversation:
    """A client of one server, and the transcript of their conversation."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.lines: list[str] = []
        self._ids: dict[str, str] = {}
        self.typed = ""
        self.told: dict[str, list[str]] = {}
        """Progress messages by tool. They depend on the duration of a call, so the transcript omits them."""

    @classmethod
    async def begun(cls, stack: AsyncExitStack, project: Path, *options: str, mode: str = "auto") -> "Conversation":
        """Start a server for a project, with options of `podwright mcp`, and connect a client."""
        words = ["-P", "-m", "podwright.operations.cli", "mcp", "--project", str(project), *options]
        server = StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ), cwd=project)
        holder: list[Conversation] = []

        async def answer(_context: Any, parameters: Any) -> ElicitResult:
            return holder[0]._answered(parameters.message)

        client = await stack.enter_async_context(Client(server, mode=mode, elicitation_callback=answer))
        holder.append(cls(client))
        return holder[0]

    def says(self, sentence: str) -> None:
        """Add a sentence of the person."""
        self.lines += ["", f"person   {sentence}"]

    async def call(self, name: str, show: Callable[[Reply], str] | None = None, **arguments: Any) -> Reply:
        """Call a tool as the model, and add the reply as `show` formats it. Returns the structured reply."""
        self.lines.append(f"model    {name} {self._masked(json.dumps(arguments))}")
        messages = self.told.setdefault(name, [])

        async def progress(_progress: float, _total: float | None, message: str | None) -> None:
            messages.append(message or "")

        result = await self._client.call_tool(name, arguments, progress_callback=progress)
        reply = result.structured_content or {}
        if result.is_error:
            finding = reply["findings"][-1]
            self._write("refused", f"{finding['message']} → {finding['hint']}")
            return reply
        known = ", ".join(f"{key}: {reply[key]}" for key in _SHOWN if reply.get(key) not in (None, ""))
        self._write("reply", show(reply) if show else known)
        return reply

    def types(self, word: str) -> None:
        """Set the person's answer to the next question."""
        self.typed = word

    def _answered(self, question: str) -> ElicitResult:
        self._write("asks", question)
        self.lines.append(f"types    {self.typed}")
        return ElicitResult(action="accept", content={"environment": self.typed})

    def _write(self, who: str, text: str) -> None:
        first, *others = self._masked(text).splitlines() or [""]
        self.lines += [f"{who:<9}{first}", *(f"{'':9}{line}" for line in others)]

    def _masked(self, text: str) -> str:
        """Replace each id by a name with its order of appearance."""
        for id in _ID.findall(text):
            self._ids.setdefault(id, f"id-{len(self._ids) + 1}")
        text = _ID.sub(lambda match: self._ids[match[0]], text)
        for pattern, instead in _MASKS:
            text = pattern.sub(instead, text)
        return text
