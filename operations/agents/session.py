"""What one run of the server keeps: its project, what it may do, and the answers that are too large for a reply."""

import hashlib
import json
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ...config.errors import InvalidFile
from ...config.loading.load import LoadedEnvironment
from ...config.loading.project import Project
from ...config.redact import redact
from ...config.settings.environment import Environment
from ..aws.account import is_sandboxed
from .answers import Answer, answer
from .edits import Edit
from .plans import Plan

LARGEST: Final = 24_000
"""Characters of an answer that a reply holds; larger ones become resources, which a client reads when it wants."""
_KEPT: Final = 64


@dataclass(slots=True)
class Session:
    """One run of `podwright mcp`."""

    project: Path
    sandbox: bool = False
    """Go to the sandbox, whatever account an environment names."""
    max_upfront_usd: int = 0
    """The most that one purchase may cost."""
    plans: dict[str, Plan] = field(default_factory=dict)
    """Changes that were shown and not made, by id."""
    edits: dict[str, Edit] = field(default_factory=dict)
    """Edits that were shown and not written, by id."""
    kept: OrderedDict[str, str] = field(default_factory=OrderedDict)
    """Answers that became resources, as JSON, by id; the oldest go."""

    def load(self, environment: str) -> LoadedEnvironment:
        """An environment of the project. Raises InvalidFile."""
        return Project.at(self.project).load(environment)

    def ask(self, *words: str) -> Answer:
        """What a command answers. Raises Rejection and InvalidFile, as `answer`."""
        return answer(self.project, words, sandbox=self.sandbox)

    def place(self, environment: str | None) -> dict[str, Any]:
        """Where an answer is from: environment, region, account, and whether a stand-in takes the place of AWS."""
        try:
            settings = self.load(environment).environment if environment is not None else None
        except InvalidFile:
            # What is wrong with the file is the answer itself.
            settings = None
        if settings is None:
            return {"environment": environment, "region": None, "account": None, "simulated": None}
        return self.place_of(settings)

    def place_of(self, settings: Environment) -> dict[str, Any]:
        """Where an answer about these settings is from."""
        simulated = is_sandboxed(settings, self.sandbox)
        return {
            "environment": settings.name,
            "region": settings.region,
            "account": settings.account,
            "simulated": simulated,
        }

    def reply(self, environment: str | None, said: Answer, *, whole: bool = False) -> dict[str, Any]:
        """An answer with where it is from, secrets taken out, and, unless it is wanted `whole`, put aside if large."""
        files, _ = redact({"answer.json": json.dumps(said.document, ensure_ascii=False)})
        document: Any = json.loads(files["answer.json"])
        text = json.dumps(document, ensure_ascii=False)
        reply = self.place(environment) | {"command": said.command, "exit_code": said.code, "answer": document}
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
    return {key: f"{type(value).__name__} of {len(value)}" if _sized(value) else str(value) for key, value in items}


def _sized(value: Any) -> bool:
    return isinstance(value, dict | list | str)
