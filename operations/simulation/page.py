"""A simulation as one HTML file: no server, no network; two policies beside each other where there are two."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ...planning.simulation.summary.gantt import busiest
from ..output.templates import templates
from .document import Simulation, document
from .drawing import Picture, pictures
from .summary import REACHED, duration, moment

_FOLDER: Final = Path(__file__).parent
_REPORT: Final = _FOLDER.parent / "report"
_SHEETS: Final = (_REPORT / "theme.css", _REPORT / "hues.css", _FOLDER / "page.css")


@dataclass(frozen=True)
class PictureView:
    """The pictures of one title, one for each policy."""

    title: str
    words: str
    figures: Sequence[tuple[str, str]]
    """The policy and the id of its figure."""


def html(simulation: Simulation) -> str:
    """The file."""
    from plotly.offline import get_plotlyjs

    figures: dict[str, Any] = {}
    # The same day of both, so that one sees what the other policy made of it.
    start = busiest(simulation.figures[0].outcome)
    drawn = [
        (each.outcome.name, pictures(each, windows, start))
        for each, windows in zip(simulation.figures, simulation.windows, strict=True)
    ]
    views = _views(drawn, figures)
    # In a script an end tag would end it, whatever stands around it.
    data = json.dumps(figures, separators=(",", ":")).replace("</", "<\\/")
    made = (
        templates(_FOLDER)
        .get_template("page.html.jinja")
        .render(
            document=document(simulation),
            views=views,
            duration=duration,
            moment=moment,
            reached=REACHED,
            style="".join(file.read_text(encoding="utf-8") for file in _SHEETS),
            plotly=get_plotlyjs(),
            figures=data,
            script=(_FOLDER / "page.js").read_text(encoding="utf-8"),
        )
    )
    return f"{made}\n"


def _views(drawn: Sequence[tuple[str, Sequence[Picture]]], figures: dict[str, Any]) -> list[PictureView]:
    """Pictures by title in the order of the first policy; what plotly draws of them goes into `figures`."""
    titles = dict.fromkeys(picture.title for _, each in drawn for picture in each)
    views = []
    for title in titles:
        named, words = list[tuple[str, str]](), list[str]()
        for policy, each in drawn:
            for picture in each:
                if picture.title != title:
                    continue
                id = f"figure-{len(figures)}"
                figures[id] = picture.figure
                named.append((policy, id))
                words.append(picture.words)
        views.append(PictureView(title, words[0], named))
    return views
