"""Running the rules: over a whole environment for people, and over one model for a construct."""

from collections.abc import Iterator
from datetime import date

from ...config.catalog.instance_types import Catalog, catalog, environment_types
from ...config.errors import InvalidSettings
from ...config.findings import Finding, Level, dotted
from ...config.loading.source import Source
from ...config.settings.base import Settings
from ...config.settings.environment import Environment
from .framework.acknowledgements import acknowledged
from .framework.rule import Rule, nested, rules_for


def findings(environment: Environment, source: Source | None = None, today: date | None = None) -> list[Finding]:
    """All findings of all rules about an environment, in the order of the file.

    With `source` each finding carries the file and line of its field, and with `today` those rules speak too that
    depend on the day. Findings that the environment acknowledges carry
    the reason; an acknowledgement that fits nothing is a finding itself.
    """
    resolved_findings = [
        finding for _, finding in _run(environment, environment_types(environment.instance_types), source, today)
    ]
    resolved_findings = acknowledged(resolved_findings, environment.acknowledge, source, dated=today is not None)
    return sorted(
        resolved_findings, key=lambda finding: (finding.place.line if finding.place else 0, finding.path, finding.id)
    )


def check(settings: Settings, types: Catalog | None = None) -> list[Finding]:
    """Run the rules that look at `settings` or at a model inside it, and return what they find.

    A construct calls this before it defines anything. Warnings, and errors that an environment may acknowledge, are
    returned; what nobody can accept is raised.

    Raises:
        InvalidSettings: something that AWS would refuse or that cannot be synthesized.
    """
    result = list(_run(settings, types or catalog(), None))
    refused = [finding for rule, finding in result if rule.final and rule.level is Level.ERROR]
    if refused:
        raise InvalidSettings(refused)
    return [finding for _, finding in result]


def _run(
    settings: Settings, types: Catalog, source: Source | None, today: date | None = None
) -> Iterator[tuple[Rule, Finding]]:
    for path, model in nested(settings):
        for rule in rules_for(type(model)):
            for problem in rule.problems(model, types, today):
                where = (*path, *((problem.path,) if isinstance(problem.path, str) else problem.path))
                location = source.position(where) if source else None
                yield rule, Finding(rule.id, rule.level, dotted(where), problem.message, problem.hint, location)
