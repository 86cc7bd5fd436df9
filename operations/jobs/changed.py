"""Jobs that no file holds as they run: one of the file with other settings, or one that a command line describes."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from ...config.errors import CommandError
from ...config.findings import Path, SourcePosition
from ...config.loading.load import LoadedEnvironment, environment_from
from ...config.loading.source import parse_source

# Their values are text, whatever they look like: LR=1e-4 is no number to whoever reads a variable.
_TEXTS: Final = ("env", "labels")


def with_settings(loaded: LoadedEnvironment, job: str, specified: Sequence[str], name: str | None) -> LoadedEnvironment:
    """The environment with a job changed by words such as `nodes=4` and `env.LR=1e-4`, and perhaps renamed.

    Raises:
        CommandError: there is no such job, or a word says no setting.
        InvalidFile: a setting is not as its model has it.
    """
    if not specified and name is None:
        return loaded
    jobs = loaded.source.data.get("jobs") or {}
    if job not in jobs:
        raise CommandError(f"{loaded.environment.name} has no job {job}", f"known: {', '.join(jobs) or 'none'}", 2)
    own: dict[Path, SourcePosition] = {
        (name or job, *path[2:]): position
        for path, position in loaded.source.positions.items()
        if path[:2] == ("jobs", job)
    }
    return with_job(loaded, name or job, jobs[job], specified, own)


def with_job(
    loaded: LoadedEnvironment,
    name: str,
    job: Mapping[str, Any],
    specified: Sequence[str] = (),
    positions: Mapping[Path, SourcePosition] | None = None,
) -> LoadedEnvironment:
    """The environment with a job of that name.

    Args:
        loaded: The environment.
        name: Its name.
        job: Its settings, as a file has them.
        specified: Words that change these.
        positions: Where its settings stand, by paths that begin with its name; on the command line when absent.

    Raises:
        CommandError: a word says no setting.
        InvalidFile: a setting is not as its model has it.
    """
    settings, stated = copy.deepcopy(dict(job)), dict[Path, SourcePosition]()
    for word in specified:
        path, value = _parsed(word)
        _put(settings, path, value, word)
        stated[(name, *path)] = SourcePosition(f"--set {word}", 1)
    around: dict[Path, SourcePosition] = {(name,): SourcePosition("the command line", 1)}
    around = dict(positions or around) | stated
    data = loaded.source.data
    source = replace(
        loaded.source,
        data=data | {"jobs": (data.get("jobs") or {}) | {name: settings}},
        positions=loaded.source.positions | {("jobs", *path): item for path, item in around.items()},
    )
    jobs = environment_from(source, loaded.environment.name).environment.jobs
    return LoadedEnvironment(loaded.environment.model_copy(update={"jobs": jobs}), source)


def _parsed(word: str) -> tuple[tuple[str, ...], Any]:
    """A setting's path and its value, which is YAML."""
    key, sign, text = word.partition("=")
    path = tuple(key.split("."))
    if not sign or not all(path):
        raise CommandError(f"--set {word} is not a setting", "write --set KEY=VALUE, such as nodes=4 or env.LR=1e-4", 2)
    if path[0] in _TEXTS and len(path) > 1:
        # A variable's name may have dots of its own.
        return (path[0], key.partition(".")[2]), text
    return path, parse_source(f"value: {text}", f"--set {word}").data["value"]


def _put(settings: dict[str, Any], path: Sequence[str], value: Any, word: str) -> None:
    """Put a value where its path leads, through mappings that may not be there yet."""
    *above, last = path
    for part in above:
        following = settings.setdefault(part, {})
        if not isinstance(following, dict):
            raise CommandError(f"--set {word}: {part} is {following!r}, which has no settings below it", code=2)
        settings = following
    settings[last] = value
