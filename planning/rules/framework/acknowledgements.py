"""Acknowledgements: findings that an environment file accepts, each with a reason."""

from ....config.catalog.preflight_checks import AREA, preflight_checks
from ....config.findings import Finding, Level, dotted
from ....config.loading.source import Source
from ....config.settings.environment import Acknowledgement, Environment
from .rule import ERROR, RULES, Problem, Problems, rule

NOT_FOUND = "ENV012"


@rule("ENV011", ERROR, on=Environment, source="", final=True)
def acknowledgeable(environment: Environment) -> Problems:
    """Invalid acknowledgement.

    Those of preflight's checks can; ids of an area that neither has belong to another check, and are left to it.
    """
    areas = {AREA, *(id[:3] for id in RULES)}
    for index, item in enumerate(environment.acknowledge):
        path = ("acknowledge", index, "rule")
        if item.rule in RULES and RULES[item.rule].final:
            yield Problem(
                path,
                f"{item.rule} cannot be accepted: the deployment would fail later",
                f"fix its cause and remove this; `podwright explain {item.rule}` says how",
            )
        elif item.rule[:3] in areas and item.rule not in RULES and item.rule not in preflight_checks():
            yield Problem(
                path, f"there is no rule {item.rule} that could be accepted", "`podwright explain` lists all rules"
            )


def acknowledged(
    findings: list[Finding],
    accepted: tuple[Acknowledgement, ...],
    source: Source | None,
    *,
    project: bool = False,
    dated: bool = False,
) -> list[Finding]:
    """`findings` with the reasons of those that are accepted, and a warning for each acknowledgement that fits none.

    `findings` is what the rules of environments find, with those that depend on the day where `dated`, or the rules of
    a `project`; acknowledgements of the others stay aside.
    """
    result = list(findings)
    for index, item in enumerate(accepted):
        known = RULES.get(item.rule)
        if known is None or known.final or known.of_project != project or (known.dated and not dated):
            continue
        hits = [
            position
            for position, finding in enumerate(findings)
            if finding.id == item.rule and _covers(item.path, finding.path)
        ]
        for position in hits:
            result[position] = findings[position].accepted(item.reason)
        if not hits:
            path = ("acknowledge", index, "rule")
            at = f" at or below {item.path}" if item.path else ""
            result.append(
                Finding(
                    NOT_FOUND,
                    Level.WARNING,
                    dotted(path),
                    f"there is no finding of {item.rule}{at} to accept",
                    "remove this acknowledgement, or correct its path",
                    source.position(path) if source else None,
                )
            )
    return result


def accepted_by(finding: Finding, accepted: tuple[Acknowledgement, ...]) -> Finding:
    """`finding`, with the reason of the first acknowledgement that covers it."""
    for item in accepted:
        if item.rule == finding.id and _covers(item.path, finding.path):
            return finding.accepted(item.reason)
    return finding


def _covers(path: str, finding: str) -> bool:
    return not path or finding == path or finding.startswith((f"{path}.", f"{path}["))
