"""The pages of findings as test cases: what each shows as found, and its near miss that passes."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from typing import Any

from podwright.config.errors import InvalidFile
from podwright.config.findings import Finding
from podwright.config.loading.load import LoadedEnvironment, environment_from
from podwright.config.loading.source import Source, parse_source, read_source
from podwright.planning.rules import RULES, findings
from podwright.planning.rules.pages import BEFORE_RULES, FOLDER, titles
from podwright.planning.rules.project.project import project_findings

DAY = date(2026, 8, 1)
"""The day of examples that depend on one; nothing in the base environment is near its end."""
_SECTION = re.compile(r"^## (Found|Passes)(?:, with ([A-Z0-9 ]+))?\n\n```yaml\n(.*?)\n```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Case:
    """The two examples of a page, and the other findings that the first one cannot avoid."""

    id: str
    found: str
    passes: str
    others: frozenset[str] = frozenset()

    @property
    def whole_file(self) -> bool:
        """Whether the examples are whole files, because the finding comes before there is an environment."""
        return self.id in BEFORE_RULES and self.id != "ENV012"


@cache
def base() -> Source:
    """Return the environment that examples are laid over. Nobody changes it: `overlaid` makes new mappings."""
    return read_source(FOLDER / "base.yaml")


def overlaid(data: Any, piece: Any) -> Any:
    """`data` with a piece laid over it: mappings key by key, everything else replaced, and null takes away."""
    if not isinstance(data, dict) or not isinstance(piece, dict):
        return piece
    merged = data | {key: overlaid(data.get(key, {}), value) for key, value in piece.items()}
    return {key: value for key, value in merged.items() if key not in piece or piece[key] is not None}


def loaded(piece: str) -> LoadedEnvironment:
    """The base environment with a piece of YAML laid over it. Raises InvalidFile when the types refuse it."""
    source = base()
    return environment_from(replace(source, data=overlaid(source.data, parse_source(piece, "piece").data)), "example")


def project(text: str) -> dict[str, LoadedEnvironment]:
    """The environments that the keys of YAML text name, each laid over the base with a range of its own."""
    pieces, below, actual = parse_source(text, "piece"), base(), dict[str, LoadedEnvironment]()
    for index, (name, piece) in enumerate(pieces.data.items()):
        own = {path[1:]: location for path, location in pieces.positions.items() if path[:1] == (name,)}
        data = overlaid(below.data, {"network": {"cidr": f"10.{16 + 4 * index}.0.0/16"}})
        source = replace(below, data=overlaid(data, piece or {}), positions=below.positions | own)
        actual[name] = environment_from(source, name)
    return actual


def found_in(case: Case, text: str) -> set[str]:
    """Ids of the findings about one of the examples of `case`."""
    return {item.id for item in findings_in(case, text)}


def findings_in(case: Case, text: str) -> list[Finding]:
    """The findings about one of the examples of `case`, but for accepted ones."""
    if case.id in RULES and RULES[case.id].of_project:
        values = project_findings(project(text)).values()
        return [item for items in values for item in items if item.acknowledged is None]
    if not case.whole_file:
        example, day = loaded(text), DAY if case.id in RULES and RULES[case.id].dated else None
        return [item for item in findings(example.environment, example.source, day) if item.acknowledged is None]
    try:
        source = parse_source(text, "file.yaml")
        if case.id.startswith("ENV"):
            environment_from(source, "file")
    except InvalidFile as error:
        return list(error.findings)
    return []


@cache
def cases() -> dict[str, Case]:
    """Every case by id: those that pages show, and those too long for a page."""
    shown: dict[str, Case] = {}
    for id in titles():
        sections = _SECTION.findall((FOLDER / f"{id}.md").read_text(encoding="utf-8"))
        if sections:
            (_, others, actual), (_, _, passes) = sections
            shown[id] = Case(id, actual, passes, frozenset(others.split()))
    return shown | {case.id: case for case in _too_long_for_a_page()}


def _too_long_for_a_page() -> list[Case]:
    def case(id: str, piece: Callable[[int], Any], too_many: int, enough: int) -> Case:
        return Case(id, json.dumps(piece(too_many)), json.dumps(piece(enough)))

    return [
        case("GRP020", lambda count: {"instance_groups": {"h200": {"labels": _numbered("label", count)}}}, 51, 50),
        case("ENV020", lambda count: {"tags": _numbered("tag", count)}, 46, 45),
        case("GOV052", _many_groups_of_kueue, 64, 63),
        case("TPL001", lambda count: {"instance_groups": _many_groups(count)}, 98, 50),
        case("TPL002", lambda count: {"storage": {"additional_lustre": _many_file_systems(count)}}, 36, 30),
    ]


def _numbered(word: str, count: int) -> dict[str, str]:
    return {f"{word}-{number}": "x" for number in range(count)}


def _many_groups(count: int) -> dict[str, Any]:
    labels = {f"{'p' * 120}.example.com/{'n' * 60}{number}": "v" * 63 for number in range(50)}
    group = {"instance_type": "ml.m5.large", "count": 1, "zone": "usw2-az2", "labels": labels}
    return {f"group-{number}": group for number in range(count)}


def _many_groups_of_kueue(count: int) -> dict[str, Any]:
    group = {"instance_type": "ml.m5.large", "count": 1, "zone": "usw2-az2"}
    teams = {"research": {"quota": {"h200": 2}}, "guests": {}}
    groups = {f"group-{number}": group for number in range(count)}
    return {"instance_groups": groups, "governance": {"engine": "kueue", "teams": teams}}


def _many_file_systems(count: int) -> dict[str, Any]:
    return {f"fs-{number}": {"mount": f"/fs-{number}", "zone": "usw2-az2", "backups": {}} for number in range(count)}
