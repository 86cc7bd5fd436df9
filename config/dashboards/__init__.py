"""The dashboards, as data."""

from importlib import import_module
from typing import Final

from ..observability import Targets
from .panel import Dashboard

NAMES: Final = ("cluster", "tasks", "teams", "capacity", "storage", "goodput", "benchmarks", "elastic")
"""Each is the module of this folder that defines it."""


def dashboard(name: str, targets: Targets) -> Dashboard:
    """One dashboard, with an environment's targets in it. Raises ModuleNotFoundError for a name that is none."""
    return import_module(f".{name}", __package__).define(targets)


def dashboards(targets: Targets) -> tuple[Dashboard, ...]:
    """All dashboards, in the order of a menu."""
    return tuple(dashboard(name, targets) for name in NAMES)
