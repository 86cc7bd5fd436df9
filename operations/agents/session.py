"""What one run of the server keeps: the changes that it showed, and the answers that are too large for a reply."""

import hashlib
import json
import textwrap
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Final

from ...config.redact import redact
from .answers import Answer
from .edits import Edit
from .plans import Plan
from .workplace import Workplace

LARGEST: Final = 24_000
"""Characters of an answer that a reply holds; larger ones become resources, which a client reads when it wants."""
_KEPT: Final = 64


@dataclass(slots=True)
class Session(Workplace):
    """One run of `podwright mcp`."""

    plans: dict[str, Plan] = field(default_factory=dict)
    """Changes that were shown and not made, by id."""
    edits: dict[str, Edit] = field(default_factory=dict)
    """Edits that were shown and not written, by id."""
    kept: OrderedDict[str, str] = field(default_factory=OrderedDict)
    """Answers that became resources, as JSON, by id; the oldest go."""

    def reply(self, environment: str | None, output: Answer, *, whole: bool = False) -> dict[str, Any]:
        """An answer with where it is from, secrets taken out, and, unless it is wanted `whole`, put aside if large."""
        files, _ = redact({"answer.json": json.dumps(output.document, ensure_ascii=False)})
        document: Any = json.loads(files["answer.json"])
        text = json.dumps(document, ensure_ascii=False)
        reply = self.place(environment) | {"command": output.command, "exit_code": output.code, "answer": document}
        if len(text) > LARGEST and not whole:
            id = hashlib.sha256(text.encode()).hexdigest()[:16]
            self.kept[id] = text
            while len(self.kept) > _KEPT:
                self.kept.popitem(last=False)
            reply |= {"answer": None, "resource": f"podwright://answer/{id}", "outline": outline(document)}
        return reply


def outline(document: Any) -> dict[str, str]:
    """What a document holds, by key: enough to know whether to read it."""
    items = document.items() if isinstance(document, dict) else [("", document)]
    return {key: _outlined(value) for key, value in items}


def _outlined(value: Any) -> str:
    if isinstance(value, dict | list):
        return f"{type(value).__name__} of {len(value)}"
    return textwrap.shorten(str(value), 80)
