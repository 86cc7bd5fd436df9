"""What the rules say of the file."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ....config.findings import counted
from ....planning.rules.pages import titles
from ..scene import Scene
from ..views import Badge

ID: Final = "findings"
TITLE: Final = "Findings"
_HUES: Final = {"error": "red", "warning": "orange", "info": "blue", "accepted": "green"}


@dataclass(frozen=True)
class Item:
    """A finding."""

    level: Badge
    id: str
    title: str
    message: str
    advice: str
    """What to do, or why it is accepted."""
    place: str


@dataclass(frozen=True)
class View:
    """Findings, the worst first."""

    intro: str
    items: Sequence[Item]
    accepted: Sequence[Item]


def collect(scene: Scene) -> dict[str, Any]:
    """Findings as `podwright check --json` has them, and how many there are of each level."""
    order = list(_HUES)
    items = [
        item.to_json()
        | {
            "level": "accepted" if item.acknowledged is not None else str(item.level),
            "place": str(item.place or ""),
            "title": titles().get(item.id, ""),
        }
        for item in scene.findings
    ]
    items.sort(key=lambda item: (order.index(item["level"]), item["place"], item["id"]))
    return {"summary": counted(scene.findings), "counts": Counter(item["level"] for item in items), "items": items}


def view(data: dict[str, Any], document: dict[str, Any]) -> View:
    """Findings, those that are accepted apart."""
    return View(
        intro=f"{data['summary']}, as podwright check says." if data["items"] else "Every rule passes.",
        items=[_item(item) for item in data["items"] if item["level"] != "accepted"],
        accepted=[_item(item) for item in data["items"] if item["level"] == "accepted"],
    )


def _item(item: dict[str, Any]) -> Item:
    accepted = item["level"] == "accepted"
    return Item(
        level=Badge(item["level"], _HUES[item["level"]]),
        id=item["id"],
        title=item["title"],
        message=item["message"] if item["path"] in item["message"] else f"{item['path']}: {item['message']}",
        advice=f"accepted because {item['acknowledged']}" if accepted else f"→ {item['hint']}",
        place=item["place"],
    )
