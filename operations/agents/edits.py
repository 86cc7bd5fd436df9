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
from typing import Any, Final

from ...config.catalog.instance_types import environment_types
from ...config.errors import CommandError, InvalidFile
from ...config.findings import Finding, errors
from ...config.loading.load import LoadedEnvironment, environment_from, resolved
from ...config.loading.project import Project
from ...config.loading.source import parse_source
from ...planning.quota.policy import environment_policy
from ...planning.rules import findings
from ..capacity.plan_file import NotWritten, edited, lines, plain, replace_file
from ..environments.costs import brief
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


def proposed(project: Project, environment: str, changes: Sequence[tuple[str, Any]]) -> tuple[Edit, dict[str, Any]]:
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
    return edit, _consequences(project, edit, loaded)


def new_environment(project: Project, beginning: Beginning) -> tuple[Edit, dict[str, Any]]:
    """An edit that makes the file of a new environment, as `podwright init` would.

    Raises:
        InvalidFile: a value that an environment does not allow.
        CommandError: there is one of that name, or a region that is not known.
    """
    if beginning.name in project.names:
        raise CommandError(f"there is an environment {beginning.name}", "propose an edit of it, or take another name")
    file = project.root / "environments" / f"{beginning.name}.yaml"
    edit = Edit(beginning.name, file, None, environment_file(beginning).encode())
    return edit, _consequences(project, edit, None)


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
        raise CommandError(f"{path!r} is no path of settings", "such as instance_groups.h200.count; give lists whole")


def _keys(value: Any) -> Iterator[str]:
    """All names in a value."""
    if isinstance(value, dict):
        yield from value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
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
    if key in below and depth < len(path) - 1 and below[key] is not None:
        raise CommandError(f"{'.'.join(path[: depth + 1])} is no mapping of settings", "give it as a whole")
    try:
        if depth == 0 and key not in below:
            changed = f"{text.rstrip()}\n{lines({key: written})}\n"
        else:
            changed = edited(text, path[:depth], {key: written})
        wanted = copy.deepcopy(data)
        _set(wanted, path[:depth], key, plain({key: written})[key])
        if parse_source(changed, "the changed file").data != wanted:
            raise NotWritten(f"{'.'.join(path)} shares its settings with other parts of the file")
    except NotWritten as problem:
        raise CommandError(f"{'.'.join(path)} cannot be set in place: {problem}", "open the file") from None
    return changed


def _set(data: Any, path: Sequence[str], key: str, value: Any) -> None:
    for part in path:
        data = data[part]
    data[key] = value


def _consequences(project: Project, edit: Edit, before: LoadedEnvironment | None) -> dict[str, Any]:
    """The difference, findings and money before and after, and the quotas that change."""
    shown = edit.file.relative_to(project.root).as_posix()
    texts = [(edit.before or b"").decode("utf-8-sig"), edit.after.decode("utf-8-sig")]
    old, new = (text.splitlines(keepends=True) for text in texts)
    names = (f"a/{shown}" if edit.before is not None else "/dev/null", f"b/{shown}")
    after, found = _read(edit, texts[1], shown)
    known = findings(before.environment, before.source) if before else []
    return {
        "file": shown,
        "diff": "".join(difflib.unified_diff(old, new, *names)),
        "findings": {"before": [item.to_json() for item in known], "after": [item.to_json() for item in found]},
        "cost": {"before": _cost(before), "after": _cost(after)},
        "quotas": list(_quota_changes(_quotas(before), _quotas(after))),
        "valid": not errors(found),
    }


def _read(edit: Edit, text: str, shown: str) -> tuple[LoadedEnvironment | None, list[Finding]]:
    """The environment that the file would be, and what is wrong with it; None where it would be none."""
    try:
        source = resolved(replace(parse_source(text, shown), files={shown: edit.file}), edit.file)
        loaded = environment_from(source, edit.environment)
    except InvalidFile as error:
        return None, error.findings
    return loaded, findings(loaded.environment, loaded.source)


def _cost(loaded: LoadedEnvironment | None) -> dict[str, Any] | None:
    """What it costs a month, where it is an environment without errors: others mean nothing sure."""
    if loaded is None or errors(findings(loaded.environment, loaded.source)):
        return None
    return brief(loaded.environment)


def _quotas(loaded: LoadedEnvironment | None) -> dict[tuple[str, ...], dict[str, Any]]:
    """Each team's quotas by team, flavor and resource."""
    if loaded is None or errors(findings(loaded.environment, loaded.source)):
        return {}
    environment = loaded.environment
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
