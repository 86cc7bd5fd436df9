"""The report as one file: a frame, a line of numbers, and the sections."""

from base64 import b64encode
from hashlib import sha256
from importlib.metadata import version
from types import ModuleType
from typing import Any, Final

from ..environments import costs as cost
from .markup import Markup, joined, tag
from .scene import Scene
from .sections import architecture, benchmarks, changes, findings, live, permissions, quotas
from .sections import cost as costs
from .style import SHEET

SECTIONS: Final[tuple[ModuleType, ...]] = (
    architecture,
    findings,
    quotas,
    costs,
    changes,
    live,
    permissions,
    benchmarks,
)
"""The sections in their order. Each has an ID, a TITLE, `collect(scene)` and `shown(data, document)`."""
SCHEMA: Final = 1
"""Of the document; one more when a field goes or means something else."""
_BAD: Final = ("error", "warning")
# Nothing is loaded from anywhere, no script runs, and of styles only the sheet counts, by its digest.
_POLICY: Final = "default-src 'none'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'"


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
    name = document["environment"]
    digest = b64encode(sha256(SHEET.encode()).digest()).decode()
    sections = [section for section in SECTIONS if document[section.ID]]
    links = [tag("li", tag("a", section.TITLE, href=f"#{section.ID}")) for section in sections]
    head = [
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY.format(digest)),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="generator", content=f"podwright {document['podwright']}"),
        tag("title", f"{name}: podwright report"),
        tag("style", Markup(SHEET)),
    ]
    where = f"Account {document['account']}, {document['region']}, as of {document['day']}"
    body = [
        tag("a", "Skip to the report", href="#main", class_="skip"),
        tag(
            "div",
            tag("header", tag("p", "podwright report", class_="eyebrow"), tag("h1", name), tag("p", where)),
            tag("nav", tag("ul", *links), aria_label="Sections"),
            tag("main", _tiles(document), *(_section(section, document) for section in sections), id="main"),
            tag(
                "footer",
                tag("p", f"Made by podwright {document['podwright']} from {document['file']} and its templates."),
                [tag("p", *words) for key, words in _more(name).items() if not document[key]],
            ),
            class_="frame",
        ),
    ]
    return joined([Markup("<!doctype html>\n"), tag("html", tag("head", *head), tag("body", *body), lang="en"), "\n"])


def _more(name: str) -> dict[str, tuple[Any, ...]]:
    """How sections come in that nobody asked for."""
    live, diff = (tag("code", f"podwright {words}") for words in (f"report {name} --live", f"diff {name} --json"))
    return {
        "changes": ("What a deployment would change is in a report with --changes; ", diff, " writes it."),
        "status": ("The cluster as it runs is in the report that ", live, " writes."),
    }


def _section(section: ModuleType, document: dict[str, Any]) -> Markup:
    heading = tag("h2", section.TITLE, id=f"{section.ID}-title")
    inner = section.shown(document[section.ID], document)
    return tag("section", heading, inner, id=section.ID, aria_labelledby=f"{section.ID}-title")


def _tiles(document: dict[str, Any]) -> Markup:
    """The numbers that people look for first."""
    drawn, found, sums = document["architecture"], document["findings"], document["cost"]["total"]
    subnets = [row for zone in drawn["zones"] for row in zone["subnets"] if row["role"] == "nodes"]
    taken, usable = sum(row["taken"] for row in subnets), sum(row["usable"] for row in subnets)
    least = "at least; " if sums["unknown"] or sums["lower_bound"] else ""
    parts = f"{sums['unknown']} part{'' if sums['unknown'] == 1 else 's'} without a price"
    priced = parts if sums["unknown"] else "every part has a price"
    fees = sum(fee["at_most"] or 0 for fee in document["cost"]["upfront"])
    accelerators = drawn["accelerators"]
    bad = [f"{count} {level}{'s' if count > 1 else ''}" for level, count in found["counts"].items() if level in _BAD]
    tiles = [
        ("Nodes", f"{drawn['nodes']:,}", f"{len(drawn['groups'])} groups in {len(drawn['zones'])} zones"),
        (
            "Accelerators",
            f"{sum(accelerators.values()):,}",
            ", ".join(f"{count:,} {name}" for name, count in accelerators.items()) or "none",
        ),
        ("Node addresses", f"{taken / usable:.0%}" if usable else "0 %", f"{taken:,} of {usable:,} taken"),
        ("A month", _short(sums["monthly"]), f"{least}{priced}"),
        ("Teams", f"{len(document['quotas']['teams']):,}", _engine(document)),
        ("Findings", f"{len(found['items']):,}", ", ".join(bad) or "no error, no warning"),
    ]
    if fees:
        tiles.insert(4, ("Upfront", _short(fees), "training plans, at most"))
    return tag(
        "dl",
        *(
            tag("div", tag("dt", name), tag("dd", value, class_="big"), tag("dd", more, class_="small"))
            for name, value, more in tiles
        ),
        class_="tiles",
    )


def _short(usd: float) -> str:
    """US dollars with three digits where there are many; the section has them all."""
    if usd < 100_000:
        return cost.money(usd)
    return f"${usd / 1e6:,.3g} M" if usd >= 999_500 else f"${usd / 1e3:,.0f} k"


def _engine(document: dict[str, Any]) -> str:
    """Who keeps the quotas of teams."""
    return f"quotas by {quotas.ENGINES[document['quotas']['engine']]}" if document["quotas"]["teams"] else "no quotas"
