"""Who is guaranteed, lends and may borrow how much."""

import re
from collections.abc import Iterator
from typing import Any, Final

from ....config.catalog.instance_types import environment_types
from ....planning.quota.amounts import CPU, GPU, NEURON
from ....planning.quota.policy import environment_policy
from ...environments import quotas
from ..markup import Markup, details, joined, table, tag
from ..scene import Scene

ID: Final = "quotas"
TITLE: Final = "Quotas"
ENGINES: Final = {None: "Slurm", "hyperpod": "task governance", "kueue": "Kueue", "kai": "KAI", "yunikorn": "YuniKorn"}
"""Who keeps the quotas, by `governance.engine`."""
_MAIN: Final = (GPU, NEURON)
# With more teams than this the table of every resource would be most of the page; the command prints it.
_ALL_RESOURCES: Final = 30
_NAMED: Final = 12
# From here on rows of teams are one line each, and the parts of a bar have one colour.
_DENSE_FROM: Final = 30


def collect(scene: Scene) -> dict[str, Any]:
    """What `podwright quotas --json` says, and how much there is of each flavor."""
    environment = scene.environment
    policy = environment_policy(environment, environment_types(environment.instance_types))
    found = quotas.report(environment, policy)
    found["teams"].sort(key=lambda team: _natural(team["team"]))
    flavors = {}
    for name, flavor in policy.flavors.items():
        resource = next((each for each in _MAIN if flavor.capacity.get(each)), CPU)
        resource = next((each for each in flavor.capacity if each.rpartition("/")[2].startswith("mig-")), resource)
        scale = 1000 if resource == CPU else 1
        flavors[name] = {"resource": resource, "capacity": flavor.capacity.get(resource, 0) / scale}
    return found | {"flavors": flavors}


def shown(data: dict[str, Any], document: dict[str, Any]) -> Markup:
    """A bar for each flavor, and below it one for each team and flavor."""
    if not any(team["quotas"] for team in data["teams"]):
        return tag("p", "No teams share this cluster.")
    priorities = ", ".join(f"{name} {weight}" for name, weight in data["priorities"].items())
    intro = f"Kept by {ENGINES[data['engine']]}. {f'Priorities: {priorities}.' if priorities else ''}"
    most = {name: _most(data, name) for name in data["flavors"]}
    rows = list(_teams(data, most))
    dense = len(rows) > _DENSE_FROM
    headers = ("team", "share", "weight", *(f"{name}, {_unit(data, name)}" for name in data["flavors"]))
    caption = "Guaranteed, and how far borrowing may go; a full bar is the most that any team can hold of the type"
    legend = [
        tag("li", _mini(("M0 0h100v8H0z", kind)), words)
        for kind, words in (
            ("kept", "guaranteed, never lent"),
            ("lent", "guaranteed, lent while idle"),
            ("room", "may be borrowed while others leave it idle"),
        )
    ]
    return joined(
        [
            tag("p", intro),
            tag("div", *(_flavor(data, name) for name in data["flavors"]), class_="flavors"),
            tag("h3", "By team"),
            tag("ul", *legend, class_="legend"),
            table(caption, headers, rows, right=(2,), class_="dense" if dense else "teams"),
            details("Every resource", _every(data)) if len(data["teams"]) <= _ALL_RESOURCES else _elsewhere(data),
            [tag("p", note, class_="note") for note in data["notes"]],
        ]
    )


def _natural(name: str) -> list[tuple[int, str]]:
    """An order in which team-9 comes before team-10."""
    return [(int(part or 0), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)]


def _unit(data: dict[str, Any], flavor: str) -> str:
    resource = data["flavors"][flavor]["resource"]
    units = (
        quota["unit"]
        for team in data["teams"]
        for quota in team["quotas"]
        if quota["flavor"] == flavor and quota["resource"] == resource
    )
    return next(units, "")


def _quota(data: dict[str, Any], team: dict[str, Any], flavor: str) -> dict[str, Any] | None:
    resource = data["flavors"][flavor]["resource"]
    return next(
        (quota for quota in team["quotas"] if quota["flavor"] == flavor and quota["resource"] == resource), None
    )


def _flavor(data: dict[str, Any], flavor: str) -> Markup:
    """A flavor whole: what each team is guaranteed of it, side by side, and what is nobody's."""
    capacity = data["flavors"][flavor]["capacity"]
    held = [
        (team["team"], quota["guaranteed"])
        for team in data["teams"]
        if (quota := _quota(data, team, flavor)) and quota["guaranteed"]
    ]
    total = max(capacity, sum(amount for _, amount in held)) or 1
    at, parts = 0.0, []
    for index, (name, amount) in enumerate(held):
        wide = 1000 * amount / total
        parts.append(
            tag(
                "rect",
                tag("title", f"{name}: {amount:,g}"),
                x=at,
                width=max(wide - 1.5, wide * 0.8),
                height=24,
                class_="even" if index % 2 and len(held) <= _DENSE_FROM else "odd",
            )
        )
        at += wide
    if at < 999:
        parts.append(tag("rect", tag("title", "nobody's"), x=at, width=1000 - at, height=24, class_="none"))
    unit, guaranteed = _unit(data, flavor), sum(amount for _, amount in held)
    words = f"{guaranteed:,g} of {capacity:,g} {unit} guaranteed to {len(held)} team{'' if len(held) == 1 else 's'}"
    over = f"; that is {guaranteed - capacity:,g} more than there are" if guaranteed > capacity else ""
    free = f"; nobody's: {capacity - guaranteed:,g}" if guaranteed < capacity else ""
    named = ", ".join(f"{name} {amount:,g}" for name, amount in held)
    if len(held) > _NAMED:
        amounts = [amount for _, amount in held]
        least, largest = min(amounts), max(amounts)
        named = f"{least:,g} each" if least == largest else f"{least:,g} to {largest:,g} each"
    picture = tag(
        "svg",
        *parts,
        viewBox="0 0 1000 24",
        preserveAspectRatio="none",
        class_="chart",
        role="img",
        aria_label=f"{flavor}: {words}{over}",
    )
    caption = [tag("strong", words + over), f": {named}" if held else "", free]
    return tag("figure", tag("h3", flavor), picture, tag("figcaption", *caption))


def _teams(data: dict[str, Any], most: dict[str, float]) -> Iterator[tuple[Any, ...]]:
    for team in data["teams"]:
        cells = [_cell(_quota(data, team, flavor), most[flavor]) for flavor in data["flavors"]]
        name = f"{team['team']} ({team['department']})" if team["department"] else team["team"]
        yield name, team["share"].replace("_", " "), team["weight"], *cells


def _most(data: dict[str, Any], flavor: str) -> float:
    """The most that any team can hold of a flavor."""
    found = [quota for team in data["teams"] if (quota := _quota(data, team, flavor))]
    return max((max(quota["at_most"], quota["guaranteed"]) for quota in found), default=0) or 1


def _cell(quota: dict[str, Any] | None, whole: float) -> Any:
    if quota is None:
        return ""
    kept, lent = quota["guaranteed"] - quota["lends"], quota["lends"]
    more = max(quota["at_most"] - quota["guaranteed"], 0)
    at, paths = 0.0, []
    for amount, kind in ((kept, "kept"), (lent, "lent"), (more, "room")):
        if amount:
            wide = 100 * amount / whole
            paths.append((f"M{at:.1f} 0h{wide:.1f}v8h-{wide:.1f}z", kind))
            at += wide
    words = f"{quota['guaranteed']:,g}" + (f" to {quota['at_most']:,g}" if more else "")
    return joined([_mini(*paths), tag("span", words)])


def _mini(*paths: tuple[str, str]) -> Markup:
    inner = [tag("path", d="M0 0h100v8H0z", class_="none"), *(tag("path", d=path, class_=kind) for path, kind in paths)]
    return tag("svg", *inner, viewBox="0 0 100 8", preserveAspectRatio="none", class_="mini", aria_hidden="true")


def _every(data: dict[str, Any]) -> Markup:
    rows = [
        (
            team["team"],
            quota["flavor"],
            quota["unit"],
            f"{quota['guaranteed']:,g}{'*' if quota['filled'] else ''}",
            f"{quota['lends']:,g}",
            "no limit" if quota["borrows"] is None else f"{quota['borrows']:,g}",
            f"{quota['at_most']:,g}",
        )
        for team in data["teams"]
        for quota in team["quotas"]
    ]
    headers = ("team", "of", "resource", "guaranteed", "lends", "borrows", "at most")
    note = tag("p", "At most: while no other team uses anything. * filled in by the instance's ratio.", class_="note")
    return joined([table("Quotas of every resource", headers, rows, right=(3, 4, 5, 6)), note])


def _elsewhere(data: dict[str, Any]) -> Markup:
    command = tag("code", f"podwright quotas {data['environment']}")
    return tag("p", "vCPU, memory and EFA of every team: ", command, ".", class_="note")
