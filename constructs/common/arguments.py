"""Arguments of constructs that are no settings: objects of the CDK, checked before anything is made of them."""

from typing import Any

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


def _shown(value: Any) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"
