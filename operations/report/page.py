"""The report as one file: a frame, a line of numbers, and the sections."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from ..environments import costs as cost
from ..output.templates import templates
from .scene import Scene
from .sections import alerts, architecture, benchmarks, changes, findings, jobs, permissions, quotas, status, work
from .sections import cost as costs
from .views import plural, words_of

SECTIONS: Final[tuple[ModuleType, ...]] = (
    architecture,
    findings,
    quotas,
    jobs,
    work,
    costs,
    changes,
    status,
    permissions,
    alerts,
    benchmarks,
)
"""The sections in their order. Each has an ID, a TITLE, `collect(scene)`, and `view(data, document)`, which returns
what the template of its name renders."""
SCHEMA: Final = 1
"""Of the document; one more when a field goes or means something else."""
_FOLDER: Final = Path(__file__).parent
_SHEETS: Final = ("theme.css", "hues.css", "drawing.css", "page.css")
SHEET: Final = "".join((_FOLDER / name).read_text(encoding="utf-8") for name in _SHEETS)
"""The style sheet of the page."""
_BAD: Final = ("error", "warning")


@dataclass(frozen=True)
class Tile:
    """A number that people look for first."""

    name: str
    value: str
    more: str


@dataclass(frozen=True)
class Section:
    """A section and what it shows."""

    id: str
    title: str
    view: Any
    """What the section's module returns."""


@dataclass(frozen=True)
class Page:
    """What surrounds the sections."""

    document: dict[str, Any]
    day: str
    """In words."""
    sheet: str
    digest: str
    """Of the style sheet: no other style counts."""
    tiles: Sequence[Tile]
    sections: Sequence[Section]


def document(scene: Scene) -> dict[str, Any]:
    """Everything that the report shows, as plain data."""
    environment = scene.environment
    return {
        "schema": SCHEMA,
        "podwright": version("podwright"),
        "environment": environment.name,
        "account": environment.account,
        "region": environment.region,
        "orchestrator": environment.cluster.orchestrator,
        "file": scene.loaded.source.file,
        "day": scene.day.isoformat(),
        **{section.ID: section.collect(scene) for section in SECTIONS},
    }


def page(document: dict[str, Any]) -> str:
    """The HTML of a document."""
    sections = [
        Section(section.ID, section.TITLE, section.view(document[section.ID], document))
        for section in SECTIONS
        if document[section.ID]
    ]
    digest = b64encode(sha256(SHEET.encode()).digest()).decode()
    view = Page(document, words_of(document["day"]), SHEET, digest, _tiles(document), sections)
    return f"{templates(_FOLDER).get_template('page.html.jinja').render(page=view)}\n"


def _tiles(document: dict[str, Any]) -> list[Tile]:
    """The numbers that people look for first."""
    drawn, result, sums = document["architecture"], document["findings"], document["cost"]["total"]
    accelerators = drawn["accelerators"]
    kinds = ", ".join(f"{count:,} {name}" for name, count in accelerators.items())
    fees = sum(fee["at_most"] or 0 for fee in document["cost"]["upfront"])
    bad = [f"{count} {level}{plural(count)}" for level, count in result["counts"].items() if level in _BAD]
    return [
        Tile("Nodes", f"{drawn['nodes']:,}", f"{len(drawn['groups'])} groups in {len(drawn['zones'])} zones"),
        Tile("Accelerators", f"{sum(accelerators.values()):,}", kinds or "none"),
        _addresses(drawn),
        Tile("A month", "unknown" if sums["misleading"] else _short(sums["monthly"]), _priced(sums)),
        *([Tile("Upfront", _short(fees), "training plans, at most")] if fees else []),
        Tile("Teams", f"{len(document['quotas']['teams']):,}", _engine(document)),
        Tile("Findings", f"{len(result['items']):,}", ", ".join(bad) or "no error, no warning"),
    ]


def _addresses(drawn: dict[str, Any]) -> Tile:
    """How full the subnets of nodes are."""
    subnets = [row for zone in drawn["zones"] for row in zone["subnets"] if row["role"] == "nodes"]
    taken, usable = sum(row["taken"] for row in subnets), sum(row["usable"] for row in subnets)
    return Tile("Node addresses", f"{taken / usable:.0%}" if usable else "0 %", f"{taken:,} of {usable:,} taken")


def _priced(sums: dict[str, Any]) -> str:
    least = "at least; " if (sums["unknown"] or sums["lower_bound"]) and not sums["misleading"] else ""
    missing = f"{sums['unknown']} part{plural(sums['unknown'])} without a price"
    return f"{least}{missing if sums['unknown'] else 'every part has a price'}"


def _short(usd: float) -> str:
    """US dollars with three digits where there are many; the section has them all."""
    if usd < 100_000:
        return cost.money(usd)
    return f"${usd / 1e6:,.3g} M" if usd >= 999_500 else f"${usd / 1e3:,.0f} k"


def _engine(document: dict[str, Any]) -> str:
    """Who keeps the quotas of teams."""
    return f"quotas by {quotas.ENGINES[document['quotas']['engine']]}" if document["quotas"]["teams"] else "no quotas"
