"""Edits of environment files that are shown before they are written: the difference, and what follows from it.

Only values are set, each where it stands; comments and everything else stay. What protects data, accepts findings or
approves changes is for people to edit, and so is the account that a file names.
"""

import copy
import difflib
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any, Final, NamedTuple

from ...config.catalog.instance_types import environment_types
from ...config.errors import CommandError, InvalidFile
from ...config.findings import Finding, errors
from ...config.loading.load import LoadedEnvironment, environment_from, resolved
from ...config.loading.project import Project
from ...config.loading.source import parse_source
from ...config.settings.environment import Environment
from ...planning.quota.policy import environment_policy
from ...planning.rules import findings
from ..capacity.plan_file import NotWritten, edited, lines, plain, replace_file
from ..capacity.reserve import NOT_BOUGHT
from ..environments.costs import brief, today
from ..environments.new_project import Beginning, environment_file
from ..environments.quotas import report

OF_PEOPLE: Final = (
    "account",
    "acknowledge",
    "approved_changes",
    "deletion_protection",
    "extends",
    "name",
    "protection",
)
"""Settings that no edit touches, wherever they stand."""


@dataclass(frozen=True, slots=True)
class Edit:
    """An edit that nobody has written yet."""

    environment: str
    file: Path
    before: bytes | None
    """What the file says; None where it does not exist."""
    after: bytes

    @property
    def id(self) -> str:
        """Names what is written over what: another content of the file is another edit."""
        parts = (str(self.file).encode(), self.before or b"", self.after)
        return hashlib.sha256(b"\0".join(parts)).hexdigest()[:32]

    def write(self) -> None:
        """Write the file, as a whole or not at all. Raises CommandError where it is not what was shown."""
        if self.before is None:
            self._create()
            return
        if not self.file.is_file() or self.file.read_bytes() != self.before:
            raise CommandError(f"{self.file.name} has changed since the edit was proposed", "propose it again")
        replace_file(self.file.resolve(), self.after)

    def _create(self) -> None:
        try:
            with self.file.open("xb") as stream:
                stream.write(self.after)
        except FileExistsError:
            raise CommandError(f"{self.file.name} exists since the edit was proposed", "propose it again") from None


class Proposal(NamedTuple):
    """An edit, and what follows from it."""

    edit: Edit
    facts: dict[str, Any]
    """File, difference, findings, cost and quotas, as plain data."""
    settings: Environment | None
    """The environment as it would be; None where the file would be none."""


def proposed(project: Project, environment: str, changes: Sequence[tuple[str, Any]]) -> Proposal:
    """An edit that sets values at dotted paths, and what follows from it.

    Raises:
        InvalidFile: the file as it is cannot be read.
        CommandError: a path that is for people to edit, or a value that cannot be put there.
    """
    loaded = project.load(environment)
    file = _own_file(project, environment)
    before = file.read_bytes()
    text = before.decode("utf-8-sig")
    for path, value in changes:
        _refuse(path, value)
        text = _with_value(text, tuple(path.split(".")), _as_written(path, value))
    edit = Edit(environment, file, before, before[: -len(before.decode("utf-8-sig").encode())] + text.encode())
    return _proposal(project, edit, loaded)


def new_environment(project: Project, beginning: Beginning) -> Proposal:
    """An edit that makes the file of a new environment, as `podwright init` would.

    Raises:
        InvalidFile: a value that an environment does not allow.
        CommandError: there is one of that name, or a region that is not known.
    """
    if beginning.name in project.names:
        raise CommandError(f"there is an environment {beginning.name}", "propose an edit of it, or take another name")
    file = project.root / "environments" / f"{beginning.name}.yaml"
    edit = Edit(beginning.name, file, None, environment_file(beginning).encode())
    return _proposal(project, edit, None)


def _own_file(project: Project, environment: str) -> Path:
    """The environment's own file. Raises CommandError where a link leads out of the project."""
    file = project.file(environment)
    if not file.resolve().is_relative_to((project.root / "environments").resolve()):
        raise CommandError(f"{file.name} is a link to a file outside environments/", "edit that file yourself")
    return file


def _refuse(path: str, value: Any) -> None:
    """Raise CommandError for what is for people to edit."""
    parts = path.split(".")
    touched = sorted({*parts, *_keys(value)} & {*OF_PEOPLE})
    # A list of instance groups has names, and so have teams; the setting `name` is that of the file.
    if "name" in touched and path != "name":
        touched.remove("name")
    if touched:
        raise CommandError(
            f"{path}: {', '.join(touched)} is for a person to edit",
            "it protects data, accepts findings, approves changes or says whose account it is: open the file",
        )
    if not all(parts) or "[" in path:
        raise CommandError(f"{path!r} is not a path of settings", "such as instance_groups.h200.count; lists whole")


def _keys(value: Any) -> Iterator[str]:
    """All names in a value."""
    if isinstance(value, dict):
        yield from value
        value = list(value.values())
    for item in value if isinstance(value, list) else ():
        yield from _keys(item)


def _as_written(path: str, value: Any) -> Any:
    """A value of JSON as environment files write it. Raises CommandError for null, which says nothing there."""
    if value is None:
        raise CommandError(f"{path} would be nothing", "an edit sets values; to take a setting out, open the file")
    if isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, dict):
        return {key: _as_written(f"{path}.{key}", item) for key, item in value.items()}
    return [_as_written(path, item) for item in value] if isinstance(value, list) else value


def _with_value(text: str, path: tuple[str, ...], value: Any) -> str:
    """A file's text with a value at `path`, in the deepest mapping of it that is there. Raises CommandError."""
    data, depth = parse_source(text, "the file").data, 0
    below = data
    while depth < len(path) - 1 and isinstance(below.get(path[depth]), dict) and below[path[depth]]:
        below, depth = below[path[depth]], depth + 1
    key = path[depth]
    written: Any = reduce(lambda inner, name: {name: inner}, reversed(path[depth + 1 :]), value)
    if key in below and depth < len(path) - 1 and below[key] not in (None, {}):
        raise CommandError(f"{'.'.join(path[: depth + 1])} is not a mapping of settings", "give it as a whole")
    try:
        if depth == 0 and key not in below:
            changed = f"{text.rstrip()}\n{lines({key: written})}\n"
        else:
            changed = edited(text, path[:depth], {key: written})
        desired = copy.deepcopy(data)
        _set(desired, path[:depth], key, plain({key: written})[key])
        if parse_source(changed, "the changed file").data != desired:
            raise NotWritten(f"{'.'.join(path)} shares its settings with other parts of the file")
    except NotWritten as problem:
        raise CommandError(f"{'.'.join(path)} cannot be set in place: {problem}", "open the file") from None
    return changed


def _set(data: Any, path: Sequence[str], key: str, value: Any) -> None:
    for part in path:
        data = data[part]
    data[key] = value


def _proposal(project: Project, edit: Edit, before: LoadedEnvironment | None) -> Proposal:
    """The difference, findings and money before and after, and the quotas that change."""
    shown = edit.file.relative_to(project.root).as_posix()
    was, is_now = (edit.before or b"").decode("utf-8-sig"), edit.after.decode("utf-8-sig")
    name = "/dev/null" if edit.before is None else f"a/{shown}"
    diff = difflib.unified_diff(was.splitlines(keepends=True), is_now.splitlines(keepends=True), name, f"b/{shown}")
    old = _Side(before, findings(before.environment, before.source) if before else [])
    new = _read(edit, is_now, shown)
    facts = {
        "file": shown,
        "diff": "".join(diff),
        "findings": {
            "before": [item.to_json() for item in old.findings],
            "after": [item.to_json() for item in new.findings],
        },
        "cost": {"before": old.cost(), "after": new.cost()},
        "quotas": list(_quota_changes(old.quotas(), new.quotas())),
        "valid": not new.wrong,
    }
    return Proposal(edit, facts, new.loaded.environment if new.loaded else None)


def _read(edit: Edit, text: str, shown: str) -> "_Side":
    """The environment that the file would be, and what is wrong with it; None where it would be none."""
    try:
        source = resolved(replace(parse_source(text, shown), files={shown: edit.file}), edit.file)
        loaded = environment_from(source, edit.environment)
    except InvalidFile as error:
        return _Side(None, error.findings)
    return _Side(loaded, findings(loaded.environment, loaded.source))


class _Side(NamedTuple):
    """An environment before or after an edit. What one with errors would cost is not known."""

    loaded: LoadedEnvironment | None
    findings: list[Finding]

    @property
    def wrong(self) -> list[Finding]:
        """The errors, without that a training plan has yet to be bought: the file says first what is wanted."""
        return [finding for finding in errors(self.findings) if finding.id != NOT_BOUGHT]

    def cost(self) -> dict[str, Any] | None:
        """What it costs a month."""
        return brief(self.loaded.environment, today()) if self.loaded and not self.wrong else None

    def quotas(self) -> dict[tuple[str, ...], dict[str, Any]]:
        """Each team's quotas by team, flavor and resource."""
        if self.loaded is None or self.wrong:
            return {}
        environment = self.loaded.environment
        policy = environment_policy(environment, environment_types(environment.instance_types))
        return {
            (team["team"], quota["flavor"], quota["resource"]): quota
            for team in report(environment, policy)["teams"]
            for quota in team["quotas"]
        }


def _quota_changes(
    before: dict[tuple[str, ...], dict[str, Any]], after: dict[tuple[str, ...], dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    for key in dict.fromkeys((*before, *after)):
        if before.get(key) != after.get(key):
            yield {"team": key[0], "flavor": key[1], "resource": key[2]} | {
                "before": before.get(key),
                "after": after.get(key),
            }
