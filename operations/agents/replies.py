"""Replies of the server: where each is from, in a structure and as the same in text; errors as the command line's."""

import json
from typing import Any

from mcp_types import CallToolResult, ContentBlock, ResourceLink, TextContent
from pydantic import ValidationError

from ...config.errors import CommandError, InvalidFile
from ...config.findings import Finding, Level
from ..cli import is_from_aws
from .answers import Rejection


def replied(reply: dict[str, Any]) -> CallToolResult:
    """A reply as a result, with a link where its answer was too large."""
    content: list[ContentBlock] = [TextContent(text=json.dumps(reply, ensure_ascii=False))]
    if uri := reply.get("resource"):
        content.append(ResourceLink(name="answer", uri=uri, mime_type="application/json"))
    return CallToolResult(content=content, structured_content=reply)


def refused(error: BaseException) -> CallToolResult | None:
    """An error as findings, each with path, line and hint; None for what nobody foresaw."""
    match error:
        case Rejection():
            document = _document([*error.findings, _sentence(error)], error.code)
        case CommandError():
            document = _document([_sentence(error)], error.code)
        case InvalidFile():
            document = _document(error.findings, 2)
        case ValidationError():
            document = _document([_argument(detail) for detail in error.errors(include_url=False)], 2)
        case Exception() if is_from_aws(error):
            hint = "check permissions, quotas and the region"
            document = _document([_sentence(CommandError(f"AWS says: {error}", hint))], 1)
        case _:
            return None
    text = json.dumps(document, ensure_ascii=False)
    return CallToolResult(content=[TextContent(text=text)], structured_content=document, is_error=True)


def _document(findings: list[Finding], code: int) -> dict[str, Any]:
    return {"applied": False, "exit_code": code, "findings": [finding.to_json() for finding in findings]}


def _sentence(error: CommandError) -> Finding:
    return Finding("", Level.ERROR, "", str(error), error.hint)


def _argument(detail: Any) -> Finding:
    """What is wrong with an argument. The value is the caller's, and is not repeated."""
    path = ".".join(map(str, detail["loc"]))
    known = "the tool's input schema has the arguments, and what each takes"
    return Finding("", Level.ERROR, path, f"argument {path}: {detail['msg']}", known)
