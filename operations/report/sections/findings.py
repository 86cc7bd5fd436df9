"""What the rules say of the file."""

from collections import Counter
from typing import Any, Final

from ....config.findings import counted
from ....planning.rules.pages import titles
from ..markup import Markup, badge, details, joined, tag
from ..scene import Scene

ID: Final = "findings"
TITLE: Final = "Findings"
_HUES: Final = {"error": "red", "warning": "orange", "info": "blue", "accepted": "green"}


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


def shown(data: dict[str, Any], document: dict[str, Any]) -> Markup:
    """Findings, the worst first; accepted ones folded away."""
    if not data["items"]:
        return tag("p", "Every rule passes.")
    accepted = [item for item in data["items"] if item["level"] == "accepted"]
    rest = [item for item in data["items"] if item["level"] != "accepted"]
    folded = details(f"Accepted with a reason ({len(accepted)})", _listed(accepted)) if accepted else None
    return joined([tag("p", f"{data['summary']}, as podwright check says."), _listed(rest) if rest else None, folded])


def _listed(items: list[dict[str, Any]]) -> Markup:
    return tag("ul", *map(_item, items), class_="list")


def _item(item: dict[str, Any]) -> Markup:
    advice = ("accepted because ", item["acknowledged"]) if item["level"] == "accepted" else ("→ ", item["hint"])
    place = [tag("code", item["place"]), " "] if item["place"] else []
    head = [badge(item["level"], _HUES[item["level"]]), " ", tag("strong", item["id"]), " ", item["title"]]
    body = item["message"] if item["path"] in item["message"] else f"{item['path']}: {item['message']}"
    return tag(
        "li",
        tag("div", *head),
        tag("p", body),
        tag("p", *advice),
        tag("p", *place, class_="note") if place else None,
        class_=_HUES[item["level"]],
    )
