"""The pages of alerts: what each means, where to look, and how to fix it. `podwright explain <name>` prints them.

A page begins with facts that are also in the code; a test holds the two together.
"""

from ....config.catalog.metrics import metrics
from ..collected import names_in
from ..recordings import recordings
from . import RUNBOOKS, alerts
from .alert import Alert


def page(name: str) -> str:
    """The page of an alert in Markdown. Raises KeyError for a name that no alert has."""
    return (RUNBOOKS / f"{alerts()[name].name}.md").read_text(encoding="utf-8")


def header(alert: Alert) -> str:
    """What the page of an alert begins with."""
    only = {"eks": "; only with orchestrator eks", "slurm": "; only with orchestrator slurm"}.get(
        alert.orchestrator, ""
    )
    lines = [f"# {alert.name}", "", f"- Severity: {alert.severity}{only}.", f"- Threshold: {threshold_text(alert)}."]
    if alert.minutes:
        lines.append(f"- Fires after: {alert.minutes} minutes.")
    read = ", ".join(f"`{name}`" for name in sorted(names_in(alert.expression)))
    return "\n".join((*lines, f"- Reads: {read}.", *_level(alert))) + "\n"


def threshold_text(alert: Alert) -> str:
    """Where an alert begins, in words."""
    if alert.target:
        return f"the target `{alert.target}`"
    if alert.threshold is not None:
        return f"{alert.threshold:g} {alert.unit}"
    return {
        "InstanceCountSurge": "the instances that the file has, in all groups together",
        "SpendAboveBudget": "`budget_usd_per_month`",
        "BudgetNear": "`warn_at_percent` of the team's budget",
        "BudgetReached": "the team's budget",
    }.get(alert.name, "none")


def _level(alert: Alert) -> list[str]:
    return ["- Needs metrics that only the level advanced has."] if needs_advanced(alert) else []


def needs_advanced(alert: Alert) -> bool:
    """Whether it reads a metric that the level basic lacks, itself or through a recording."""
    by_name = {item.name: item.expression for item in recordings()}
    desired, observed = [alert.expression], set[str]()
    while desired:
        for name in names_in(desired.pop()) - observed:
            observed.add(name)
            if name in by_name:
                desired.append(by_name[name])
    known = metrics()
    return any(known[name].level == "advanced" for name in observed if name in known)
