"""Who is guaranteed, lends and may borrow how much."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ....config.catalog.instance_types import environment_types
from ....planning.quota.amounts import CPU, GPU, NEURON
from ....planning.quota.policy import environment_policy
from ...environments import quotas
from ..scene import Scene
from ..views import Cell, Meter, Segment, Table, plural

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


@dataclass(frozen=True)
class Flavor:
    """A flavor whole: what each team is guaranteed of it, side by side, and what is nobody's."""

    name: str
    parts: Sequence[Segment]
    words: str
    more: str
    """Who holds how much, and what is nobody's."""


@dataclass(frozen=True)
class View:
    """A bar for each flavor, and below it one for each team and flavor."""

    environment: str
    intro: str
    flavors: Sequence[Flavor] = ()
    teams: Table | None = None
    every: Table | None = None
    """Every resource; None where there are too many."""
    notes: Sequence[str] = ()


def collect(scene: Scene) -> dict[str, Any]:
    """What `podwright quotas --json` says, and how much there is of each flavor."""
    environment = scene.environment
    policy = environment_policy(environment, environment_types(environment.instance_types))
    report = quotas.report(environment, policy)
    report["teams"].sort(key=lambda team: _natural(team["team"]))
    flavors = []
    for name, flavor in policy.flavors.items():
        for resource, amount in _main(flavor.capacity).items():
            word, size = quotas.unit(resource)
            flavors.append({"flavor": name, "resource": resource, "unit": word, "capacity": amount / size})
    return report | {"flavors": flavors}


def _main(capacity: Mapping[str, int]) -> Mapping[str, int]:
    """What a flavor is drawn by: whole accelerators beside each kind of partitions; without any, its vCPUs."""
    devices = {name: amount for name, amount in capacity.items() if amount and (name in _MAIN or "/mig-" in name)}
    return devices or {CPU: capacity.get(CPU, 0)}


def view(data: dict[str, Any], document: dict[str, Any]) -> View:
    """The document of quotas, as bars."""
    if not any(team["quotas"] for team in data["teams"]):
        return View(data["environment"], "No teams share this cluster.")
    priorities = ", ".join(f"{name} {weight}" for name, weight in data["priorities"].items())
    kept_by = f"Kept by {ENGINES[data['engine']]}."
    return View(
        environment=data["environment"],
        intro=f"{kept_by} Priorities: {priorities}." if priorities else kept_by,
        flavors=[_flavor(data, drawn) for drawn in data["flavors"]],
        teams=_teams(data),
        every=_every(data) if len(data["teams"]) <= _ALL_RESOURCES else None,
        notes=data["notes"],
    )


def _natural(name: str) -> list[tuple[int, str]]:
    """An order in which team-9 comes before team-10."""
    return [(int(part or 0), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)]


def _shares(data: dict[str, Any], drawn: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The quotas of a flavor's resource, by team."""
    return {
        team["team"]: quota
        for team in data["teams"]
        for quota in team["quotas"]
        if (quota["flavor"], quota["resource"]) == (drawn["flavor"], drawn["resource"])
    }


def _flavor(data: dict[str, Any], drawn: Mapping[str, Any]) -> Flavor:
    capacity, shares = drawn["capacity"], _shares(data, drawn)
    held = {team: quota["guaranteed"] for team, quota in shares.items() if quota["guaranteed"]}
    guaranteed = sum(held.values())
    words = f"{guaranteed:,g} of {capacity:,g} {drawn['unit']} guaranteed to {len(held)} team{plural(len(held))}"
    by = f": {_held(held)}" if held else ""
    over = f"; that is {guaranteed - capacity:,g} more than there are" if guaranteed > capacity else ""
    free = f"; nobody's: {capacity - guaranteed:,g}" if guaranteed < capacity else ""
    return Flavor(drawn["flavor"], list(_parts(held, capacity)), words + over, by + free)


def _parts(held: Mapping[str, float], capacity: float) -> Iterator[Segment]:
    """Percents of what there is, or of what is guaranteed where that is more."""
    whole, at = max(capacity, sum(held.values())) or 1, 0.0
    for index, (team, amount) in enumerate(held.items()):
        kind = "even" if index % 2 and len(held) <= _DENSE_FROM else "odd"
        yield _segment(at, amount, whole, kind, f"{team}: {amount:,g}")
        at += amount
    if at < whole:
        yield _segment(at, whole - at, whole, "none", "nobody's")


def _segment(at: float, amount: float, whole: float, kind: str, title: str = "") -> Segment:
    return Segment(round(100 * at / whole, 2), round(100 * amount / whole, 2), kind, title)


def _held(held: Mapping[str, float]) -> str:
    if len(held) <= _NAMED:
        return ", ".join(f"{team} {amount:,g}" for team, amount in held.items())
    least, largest = min(held.values()), max(held.values())
    return f"{least:,g} each" if least == largest else f"{least:,g} to {largest:,g} each"


def _teams(data: dict[str, Any]) -> Table:
    """A row for each team, with a bar for each flavor; a full one is the most that any team can hold of it."""
    shares = [_shares(data, drawn) for drawn in data["flavors"]]
    most = [max(map(_whole, held.values()), default=0) or 1 for held in shares]
    columns = (f"{drawn['flavor']}, {drawn['unit']}" for drawn in data["flavors"])
    rows = []
    for team in data["teams"]:
        name = f"{team['team']} ({team['department']})" if team["department"] else team["team"]
        bars = [_bar(held.get(team["team"]), whole) for held, whole in zip(shares, most, strict=True)]
        rows.append((name, team["share"].replace("_", " "), team["weight"], *bars))
    return Table(
        caption="Guaranteed, and how far borrowing may go; a full bar is the most that any team can hold of the type",
        headers=("team", "share", "weight", *columns),
        rows=rows,
        right=(2,),
        kind="dense" if len(rows) > _DENSE_FROM else "teams",
    )


def _whole(quota: Mapping[str, Any]) -> float:
    return max(quota["at_most"], quota["guaranteed"])


def _bar(quota: Mapping[str, Any] | None, whole: float) -> Cell:
    """A team's quota: what it keeps, what it lends, and what it may borrow."""
    if quota is None:
        return ""
    retained, lent = quota["guaranteed"] - quota["lends"], quota["lends"]
    more = max(quota["at_most"] - quota["guaranteed"], 0)
    at, segments = 0.0, []
    for amount, kind in ((retained, "kept"), (lent, "lent"), (more, "room")):
        if amount:
            segments.append(_segment(at, amount, whole, kind))
            at += amount
    words = f"{quota['guaranteed']:,g}" + (f" to {quota['at_most']:,g}" if more else "")
    return Meter(segments, words)


def _every(data: dict[str, Any]) -> Table:
    """Every team's quotas; * is what the file does not say and the instance's ratio fills in."""
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
    return Table("Quotas of every resource", headers, rows, right=(3, 4, 5, 6))
