"""The parts of the sandbox's real control plane that tests need."""

import pytest

from needs import needs, require
from podwright.planning.helm.operators import BASE_PARTS, control_plane_parts
from podwright.sandbox.control_plane.cache import Cache
from podwright.sandbox.control_plane.control_plane import missing_parts
from podwright.sandbox.control_plane.pins import pins
from synthesis import environment

GO_SETTINGS = {"GOGC": "400", "GOMEMLIMIT": "1GiB"}
"""Variables for Go programs, which then collect garbage less often: a control plane takes a fifth less CPU time."""
ALL_PARTS = tuple(part.name for part in pins().parts)


def require_parts(*names: str) -> None:
    """Continue where Kubernetes and these parts are installed; otherwise fail where `CI` is set, and skip elsewhere."""
    require(not _missing(names), _words(names))


def needs_parts(*names: str) -> pytest.MarkDecorator:
    """Return a mark that does the same before fixtures are made."""
    return needs(not _missing(names), _words(names))


def parts_of_scenario(name: str) -> tuple[str, ...]:
    """Return the parts that the cluster of a shipped environment needs."""
    return control_plane_parts(environment(name))


def _missing(names: tuple[str, ...]) -> list[str]:
    return missing_parts([*BASE_PARTS, *names], pins(), Cache.of_user())


def _words(names: tuple[str, ...]) -> str:
    return f"{', '.join(_missing(names))} of the control plane: `podwright sandbox kubernetes install`"
