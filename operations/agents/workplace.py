"""Where a server works: a project, the sandbox or AWS, and how much may be spent."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...config.errors import InvalidFile
from ...config.loading.load import LoadedEnvironment
from ...config.loading.project import Project
from ...config.settings.environment import Environment
from ..aws.account import is_sandboxed
from .answers import Answer, answer


@dataclass(slots=True)
class Workplace:
    """A project, asked as whoever started the server."""

    project: Path
    sandbox: bool = False
    """Go to the sandbox, whatever account an environment names."""
    max_upfront_usd: int = 0
    """The most that one purchase may cost."""

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
