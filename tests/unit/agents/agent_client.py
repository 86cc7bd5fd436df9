"""The SDK's own client, which calls tools one after the other, and answers questions as a person would."""

import asyncio
from collections.abc import Callable
from typing import Any

from mcp import Client
from mcp_types import CallToolResult, ElicitResult

Arguments = dict[str, Any]
Call = tuple[str, "Arguments | Callable[[list[CallToolResult]], Arguments]"]
MODES = ("auto", "legacy")
"""The protocol of 2026-07-28, and the one before with its handshake."""


class Person:
    """Who is asked: keeps the questions, and answers each in the same way."""

    def __init__(self, typed: str | None, action: str = "accept") -> None:
        self.typed, self.action = typed, action
        self.questions: list[str] = []

    async def __call__(self, _context: Any, parameters: Any) -> ElicitResult:
        self.questions.append(parameters.message)
        content = {"environment": self.typed} if self.action == "accept" else None
        return ElicitResult(action=self.action, content=content)


def talk(server: Any, *calls: Call, mode: str = "auto", person: Person | None = None) -> list[CallToolResult]:
    """What the calls came to; arguments may be made of what came before. Results are held to their schemas."""

    async def run() -> list[CallToolResult]:
        results: list[CallToolResult] = []
        async with Client(server, mode=mode, elicitation_callback=person) as client:
            for name, arguments in calls:
                provided = arguments(results) if callable(arguments) else arguments
                results.append(await client.call_tool(name, provided))
        return results

    return asyncio.run(run())


def asked(server: Any, question: Callable[[Client], Any]) -> Any:
    """What one request of another kind came to."""

    async def run() -> Any:
        async with Client(server) as client:
            return await question(client)

    return asyncio.run(run())
