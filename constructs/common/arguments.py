"""What constructs say of what they are given: refusals of objects that cannot be built with, and warnings."""

from collections.abc import Iterable
from typing import Any

import aws_cdk as cdk
from constructs import Construct

from ...config.errors import InvalidSettings
from ...config.findings import Finding, Level


def require(name: str, value: Any, having: str, kind: str) -> None:
    """Refuse an argument that is not what it should be, before the CDK does so with a message about its own insides.

    Args:
        name: The argument.
        value: What was given.
        having: An attribute that everything of that kind has.
        kind: What it should be, for people.

    Raises:
        InvalidSettings: it lacks the attribute.
    """
    if not hasattr(value, having):
        raise refusal(name, f"{name} is {_shown(value)}; allowed: {kind}", f"pass {kind}")


def refusal(path: str, message: str, hint: str, rule: str = "ENV003") -> InvalidSettings:
    """What is raised for one argument that cannot be built with."""
    return InvalidSettings([Finding(rule, Level.ERROR, path, message, hint)])


def annotate(construct: Construct, findings: Iterable[Finding]) -> None:
    """Show warnings that nobody has accepted as annotations, which the CDK prints and lets people acknowledge."""
    for finding in findings:
        if finding.level is Level.WARNING and finding.acknowledged is None:
            text = f"{finding.path}: {finding.message}; {finding.hint}"
            cdk.Annotations.of(construct).add_warning_v2(f"podwright:{finding.id}", text)


def _shown(value: Any) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"
