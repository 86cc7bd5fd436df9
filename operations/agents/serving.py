"""The server of the SDK, with podwright's session, and with errors that are findings instead of sentences."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp_types import CallToolResult, InputRequiredResult

from ..output.moving import heard_by
from .replies import refused
from .session import Session


class Serving(MCPServer):
    """Serves one project."""

    def __init__(self, session: Session, tools: list[Tool], version: str, instructions: str) -> None:
        """Serve these tools, which share a session."""
        self.podwright = session
        super().__init__(
            "podwright",
            title="podwright: AI training clusters on SageMaker HyperPod",
            instructions=instructions,
            version=version,
            tools=tools,
            log_level="WARNING",
        )

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool. What a user can act on becomes findings; everything else stays the SDK's."""
        try:
            with _notified(context):
                return await super().call_tool(name, arguments, context)
        except ToolError as error:
            if error.__cause__ is not None and (result := refused(error.__cause__)):
                return result
            raise


@contextmanager
def _notified(context: Context[Any, Any] | None) -> Iterator[None]:
    """Send the client what the call's command says is under way, if it asked with a progress token."""
    if context is None:
        yield
        return
    loop, numbers = asyncio.get_running_loop(), count(1)

    def send(line: str) -> None:
        # From the thread that the tool runs in, which waits for no client: what has begun continues without one.
        asyncio.run_coroutine_threadsafe(context.report_progress(next(numbers), None, line), loop)

    with heard_by(send):
        yield


def session_of(context: Context[Any, Any]) -> Session:
    """The session of the server that a tool runs in."""
    server = context.mcp_server
    if not isinstance(server, Serving):
        raise TypeError(f"{type(server).__name__} serves no project")
    return server.podwright
