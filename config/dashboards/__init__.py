"""The dashboards, as data."""

from importlib import import_module
from typing import Final

from .panel import Dashboard

NAMES: Final = ("cluster", "tasks", "teams", "capacity", "storage", "goodput", "benchmarks", "elastic")
"""Each is the module of this folder that holds it as `DASHBOARD`."""


def dashboard(name: str) -> Dashboard:
    """One dashboard. Raises ModuleNotFoundError for a name that is none."""
    return import_module(f".{name}", __package__).DASHBOARD


def dashboards() -> tuple[Dashboard, ...]:
    """All dashboards, in the order of a menu."""
    return tuple(map(dashboard, NAMES))
