"""The shapes of jobs that a page of the documentation shows: their environments and what becomes of them."""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from podwright.cdk8s_charts.jobs.recipe import script
from podwright.cdk8s_charts.jobs.render import KINDS, render
from podwright.config.catalog.instance_types import environment_types
from podwright.config.loading.load import LoadedEnvironment, environment_from
from podwright.config.loading.source import parse_source
from podwright.planning.jobs.plan import JobPlan, Planner
from rule_pages import base

PAGE: Final = Path(__file__).parents[3] / "docs/user/job-shapes.md"
OBJECTS: Final = PAGE.with_name("job-objects.md")
TABLE: Final = PAGE.with_name("jobs.md")
_SECTION = re.compile(r"^## (.+?)\n.*?^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Shape:
    """A section of the page: its title, and the piece of an environment in it."""

    title: str
    piece: str

    @property
    def anchor(self) -> str:
        """Its anchor in the page, and in that of the objects."""
        return self.title.lower().replace(" ", "-")

    @property
    def loaded(self) -> LoadedEnvironment:
        """The environment that rules' pages start from, with the sections of the piece in place of its own."""
        source = base()
        return environment_from(replace(source, data=source.data | parse_source(self.piece, "piece").data), "example")

    @property
    def plan(self) -> JobPlan:
        """The plan of its only job."""
        environment = self.loaded.environment
        (name,) = environment.jobs
        return Planner(environment, environment_types(environment.instance_types)).plan(name)

    @property
    def objects(self) -> list[dict[str, Any]]:
        """What the job becomes; nothing where it is a script."""
        return render(self.plan) if self.plan.job.kind in KINDS else []

    @property
    def script(self) -> str:
        """The script that a recipe becomes."""
        return script(self.plan)


SHAPES: Final = [Shape(*found) for found in _SECTION.findall(PAGE.read_text(encoding="utf-8"))]
