"""The reference of findings, checks and alerts: their pages, one a file, put together by what they are about."""

import re
from importlib import import_module
from pathlib import Path
from typing import Final

from podwright.config.catalog.preflight_checks import AREA as PREFLIGHT
from podwright.planning.monitoring.alerts import GROUPS
from podwright.planning.monitoring.alerts.pages import page as alert_page
from podwright.planning.rules.pages import explain, titles

AREAS: Final = {
    "ART": "Archives of node software",
    "BEN": "Benchmarks",
    "CAP": "Capacity and training plans",
    "CHG": "Changes that need approval",
    "CHT": "Charts",
    "CLU": "Cluster",
    "ENV": "Environment files",
    "GAT": "Gates",
    "GOV": "Governance: quotas and engines",
    "GRP": "Instance groups",
    "ISO": "Isolation of teams",
    "JOB": "Jobs",
    "LIF": "Lifecycle scripts",
    "NET": "Network",
    "OBS": "Observability",
    "ORC": "Orchestrator",
    "PIP": "Pipelines",
    "PLF": "What runs beside the work",
    PREFLIGHT: "Checks of preflight",
    "PRJ": "Projects of several environments",
    "SFT": "Node software",
    "SLU": "Slurm",
    "STO": "Storage",
    "TPL": "Templates",
    "UPG": "Upgrades",
    "USR": "Users",
    "YML": "YAML",
}
"""What the findings of an area are about; an area without a row goes by its letters."""


def finding_place(id: str) -> str:
    """Page and anchor of a finding."""
    return f"reference/findings/{id[:3].lower()}.md#{id.lower()}"


def alert_place(name: str) -> str:
    """Page and anchor of an alert."""
    group = next(group for group, names in alerts_by_group().items() if name in names)
    return f"reference/alerts/{group}.md#{name.lower()}"


def alerts_by_group() -> dict[str, list[str]]:
    """The names of all alerts, by the module that defines them."""
    return {
        group: [alert.name for alert in import_module(f"podwright.planning.monitoring.alerts.{group}").ALERTS]
        for group in GROUPS
    }


def lowered(text: str, anchor: str) -> str:
    """A page as a section of another: its title one level lower and with an anchor, what is below it in bold."""
    parts = re.split(r"(^```.*?^```$)", text.rstrip(), flags=re.MULTILINE | re.DOTALL)
    parts[::2] = [re.sub(r"^##+ (.+)$", r"**\1**", part, flags=re.MULTILINE) for part in parts[::2]]
    title, _, rest = "".join(parts).partition("\n")
    return f"#{title} {{ #{anchor} }}\n{rest}\n"


def pages() -> dict[str, str]:
    """The text of every page by its path."""
    found = {}
    areas = dict.fromkeys(id[:3] for id in titles())
    for area in areas:
        sections = [lowered(explain(id), id.lower()) for id in titles() if id.startswith(area)]
        found[f"reference/findings/{area.lower()}.md"] = f"# {area}: {AREAS.get(area, area)}\n\n" + "\n".join(sections)
    for group, members in alerts_by_group().items():
        sections = [lowered(alert_page(name), name.lower()) for name in members]
        found[f"reference/alerts/{group}.md"] = f"# Alerts: {group}\n\n" + "\n".join(sections)
    return found


def sources() -> dict[Path, str]:
    """Where the file of each page went, by its path in the checkout."""
    rules = {Path("planning/rules/pages", f"{id}.md"): finding_place(id) for id in titles()}
    return rules | {
        Path("planning/monitoring/runbooks", f"{name}.md"): alert_place(name)
        for names in alerts_by_group().values()
        for name in names
    }
