"""A conversation with the server, played by the SDK's own client over standard input and output, and its transcript.

What a person says and the calls that a model makes of it are written here; replies, questions and what is refused come
from the server. Ids, which differ from run to run, are cut.
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
    """One client of one server, and what both said."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.lines: list[str] = []
        self._ids: dict[str, str] = {}
        self.typed = ""
        self.told: dict[str, list[str]] = {}
        """What tools said meanwhile, by their names; no part of the transcript, as it depends on how long they take."""

    @classmethod
    async def begun(cls, stack: AsyncExitStack, project: Path, *options: str, mode: str = "auto") -> "Conversation":
        """A client whose server works on a project, with the options of `podwright mcp`."""
        words = ["-P", "-m", "podwright.operations.cli", "mcp", "--project", str(project), *options]
        server = StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ), cwd=project)
        holder: list[Conversation] = []

        async def answer(_context: Any, parameters: Any) -> ElicitResult:
            return holder[0]._answered(parameters.message)

        client = await stack.enter_async_context(Client(server, mode=mode, elicitation_callback=answer))
        holder.append(cls(client))
        return holder[0]

    def says(self, sentence: str) -> None:
        """What the person says to the model."""
        self.lines += ["", f"person   {sentence}"]

    async def call(self, name: str, show: Callable[[Reply], str] | None = None, **arguments: Any) -> Reply:
        """A call that the model makes; the reply's structure, which is written down as `show` has it."""
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
        """What the person types when asked next."""
        self.typed = word

    def _answered(self, question: str) -> ElicitResult:
        self._write("asks", question)
        self.lines.append(f"types    {self.typed}")
        return ElicitResult(action="accept", content={"environment": self.typed})

    def _write(self, who: str, text: str) -> None:
        first, *others = self._masked(text).splitlines() or [""]
        self.lines += [f"{who:<9}{first}", *(f"{'':9}{line}" for line in others)]

    def _masked(self, text: str) -> str:
        """Ids by their order: the same id is the same name again."""
        for id in _ID.findall(text):
            self._ids.setdefault(id, f"id-{len(self._ids) + 1}")
        text = _ID.sub(lambda match: self._ids[match[0]], text)
        for pattern, instead in _MASKS:
            text = pattern.sub(instead, text)
        return text
