"""Who gets what, and when: work under the quotas of the file, as `podwright simulate` draws it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ...simulation.document import document as simulation_document
from ...simulation.drawing import pictures
from ...simulation.summary import duration
from ..plots import WIDTH, plot
from ..scene import Scene
from ..views import Table

ID: Final = "work"
TITLE: Final = "Who gets what, and when"


@dataclass(frozen=True)
class View:
    """What the section shows."""

    intro: str
    teams: Table
    plots: Sequence[dict[str, Any]]
    width: int
    assumptions: Sequence[str]


def collect(scene: Scene) -> dict[str, Any] | None:
    """The document of a simulation, and its pictures; None unless there is work."""
    if scene.work is None:
        return None
    (figures,), (windows,) = scene.work.figures, scene.work.windows
    drawn = [plot(each.title, each.words, each.figure) for each in pictures(figures, windows)]
    return simulation_document(scene.work) | {"plots": drawn}


def view(data: dict[str, Any], document: dict[str, Any]) -> View:
    """The same as `podwright simulate` prints and draws."""
    (policy,) = data["policies"]
    rows = []
    for team in policy["teams"]:
        waits, hours = team["waits"], team["accelerator_hours"]
        times = [duration(waits[f"{name}_seconds"]) for name in ("p50", "p90", "max")]
        amounts = [f"{hours[name]:,.0f}" for name in ("in_quota", "borrowed", "idle", "waiting")]
        rows.append((team["team"], f"{waits['jobs']:,}", f"{waits['started']:,}", *times, *amounts, team["stopped"]))
    names = ("jobs", "ran", "wait p50", "p90", "max", "in quota", "borrowed", "idle", "waiting", "stopped")
    caption = "Waits until a job first started; accelerator-hours; jobs that were stopped for others"
    return View(
        f"{data['jobs']:,} jobs ({data['work']}) under the quotas of the file, decided as Kueue 0.19.2 does: "
        f"{policy['used']:.0%} of {policy['accelerators']:,} accelerators were in use.",
        Table(caption, ("team", *names), rows, right=range(1, len(names) + 1)),
        data["plots"],
        WIDTH,
        data["assumptions"],
    )
