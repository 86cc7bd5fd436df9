"""Documents that a client may read: the schema, what files say, pages, catalog rows, and answers too large to reply."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from mcp.server.mcpserver.exceptions import ResourceNotFoundError

from ...config.catalog.instance_types import UnknownInstanceType, catalog
from ...config.errors import PodwrightError
from ...config.loading.project import Project
from ...config.loading.schema import environment_schema
from .serving import Serving
from .session import Session

JSON: Final = "application/json"
MARKDOWN: Final = "text/markdown"
_DOCS: Final = Path(__file__).resolve().parents[2] / "docs"


def pages() -> dict[str, Path]:
    """The pages of the documentation by name, such as `user/quotas`."""
    files = [file for folder in (".", "user", "operator") for file in sorted((_DOCS / folder).glob("*.md"))]
    return {file.relative_to(_DOCS).with_suffix("").as_posix(): file for file in files}


def add_resources(server: Serving, session: Session) -> None:
    """Offer them on a server."""

    def offer(uri: str, title: str, mime_type: str, read: Callable[..., str]) -> None:
        server.resource(uri, name=read.__name__, title=title, description=read.__doc__, mime_type=mime_type)(read)

    def schema() -> str:
        """JSON Schema of environment files."""
        return json.dumps(environment_schema())

    def resolved(environment: str) -> str:
        """An environment with every default filled in."""
        return _asked(session, environment, "show", environment, "--json")

    def findings(environment: str) -> str:
        """What is wrong or worth knowing about an environment's file."""
        return _asked(session, environment, "check", environment, "--json")

    def report(environment: str) -> str:
        """What the HTML report of an environment shows, as data. Synthesizes first."""
        return _asked(session, environment, "report", environment, "--json")

    def page(page: str) -> str:
        """A page of podwright's documentation, such as user/quotas."""
        if page not in (known := pages()):
            raise ResourceNotFoundError(f"no page {page}; known: {', '.join(known)}")
        return known[page].read_text(encoding="utf-8")

    def rule(id: str) -> str:
        """The page of a finding or of an alert."""
        if not id.isalnum():
            raise ResourceNotFoundError(f"{id} is neither the id of a finding nor the name of an alert")
        return _asked(session, None, "explain", id, key="answer")

    def instance_type(type: str) -> str:
        """What the catalog has on an instance type, with the sources."""
        try:
            row = catalog().get(type)
        except UnknownInstanceType as error:
            raise ResourceNotFoundError(str(error)) from None
        return json.dumps(dataclasses.asdict(row), default=str)

    def answer(id: str) -> str:
        """An answer that was too large for a reply."""
        if id not in session.kept:
            raise ResourceNotFoundError(f"no answer {id}: the oldest go, and all when the server ends; ask again")
        return session.kept[id]

    offer("podwright://schema", "Schema", JSON, schema)
    offer("podwright://env/{environment}/resolved", "Resolved environment", JSON, resolved)
    offer("podwright://env/{environment}/findings", "Findings", JSON, findings)
    offer("podwright://report/{environment}", "Report", JSON, report)
    offer("podwright://docs/{+page}", "Documentation", MARKDOWN, page)
    offer("podwright://rules/{id}", "Rule or alert", MARKDOWN, rule)
    offer("podwright://catalog/{type}", "Instance type", JSON, instance_type)
    offer("podwright://answer/{id}", "Large answer", JSON, answer)


def _asked(session: Session, environment: str | None, *words: str, key: str | None = None) -> str:
    """What a command answers, whole. Raises ResourceNotFoundError for a name that there is not."""
    if environment not in (None, *(names := Project.at(session.project).names)):
        raise ResourceNotFoundError(f"no environment {environment}; known: {', '.join(names) or 'none'}")
    try:
        reply: dict[str, Any] = session.reply(environment, session.ask(*words), whole=True)
    except PodwrightError as error:
        raise ResourceNotFoundError(str(error)) from None
    return str(reply[key]) if key else json.dumps(reply, ensure_ascii=False)
