"""From a YAML file to a validated Environment, with every error as a finding at its line."""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ..errors import InvalidFile
from ..findings import Finding, Level, Path, dotted, listed
from ..settings.base import ZoneId
from ..settings.defaults import with_defaults
from ..settings.environment import Environment
from .extends import with_extended
from .other_words import BESIDE, ELSEWHERE
from .schema import attribute_docstrings
from .source import EXTENDS, Source, read_source
from .text_forms import TEXT_FORMS, ZONE_NAME

_ALLOWED_HERE = "; allowed: "
_EMPTY = "{}"
_LIKE, _SIMILAR = 0.85, 0.7
_DEFAULTS_FROM = {"system_group": "instance_groups", "zone": "network"}
_WITH_UNIT = re.compile(r"\s*[0-9][0-9.,]*\s*[A-Za-z%][A-Za-z/%]*\s*")
_ZONE_ID = get_args(ZoneId)[1].pattern
_AT_LEAST, _AT_MOST = (re.compile(f"{word} than or equal to (\\S+)") for word in ("greater", "less"))
# What pydantic calls by Python's names.
_ALLOWED = {
    "int_parsing": "a whole number",
    "bool_parsing": "true or false",
    "string_type": "text",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "tuple_type": "a list",
}


@dataclass(frozen=True, slots=True)
class LoadedEnvironment:
    """An environment and the file that it came from."""

    environment: Environment
    source: Source


def load_environment(file: FilePath, shown_as: str | None = None) -> LoadedEnvironment:
    """Load one environment file, with what it extends.

    Raises:
        InvalidFile: the file is not YAML, or not an environment; it carries every finding with its line.
    """
    return environment_from(resolved(read_source(file, shown_as), file), file.stem)


def resolved(source: Source, file: FilePath) -> Source:
    """`source`, read from `file`, with what it extends. Raises InvalidFile."""
    if not isinstance(source.data, dict) or EXTENDS not in source.data:
        return source
    return with_extended(source, file)


def environment_from(source: Source, stem: str) -> LoadedEnvironment:
    """The environment that a source describes; `stem` is its name when the file gives none."""
    if not isinstance(source.data, dict):
        hint = "start with `account:` and `region:`; `podwright init` writes an example"
        raise InvalidFile.because("ENV003", "the file is not a mapping of settings", hint, source.position(()))
    if EXTENDS in source.data:
        hint = "read it with `load_environment`, or take `extends` out"
        location = source.position((EXTENDS,))
        raise InvalidFile.because("ENV008", "extends needs a file, and this is text alone", hint, location, EXTENDS)
    data = {"name": stem} | source.data
    try:
        return LoadedEnvironment(Environment.model_validate(data), source)
    except ValidationError as error:
        details = error.errors(include_url=False)
        causes = [
            detail
            for detail in details
            if not _is_derived(detail["loc"], data) and not _follows(detail, details, source.data)
        ]
        raise InvalidFile(_alternatives_joined(_finding(detail, source) for detail in causes or details)) from None


def _alternatives_joined(findings: Iterable[Finding]) -> list[Finding]:
    """Where a value may be of several kinds, pydantic reports each that it is not; people read one sentence."""
    joined: dict[tuple[str, str], Finding] = {}
    for finding in findings:
        key = (finding.id, finding.path)
        if finding.id == "ENV003" and key in joined:
            also = finding.message.partition(_ALLOWED_HERE)[2]
            finding = replace(joined[key], message=f"{joined[key].message}, or {also}")
        joined[key] = finding
    return list(joined.values())


def _follows(detail: ErrorDetails, details: Iterable[ErrorDetails], data: Any) -> bool:
    """Whether an error comes of another one.

    A list is too short because its items are wrong; a setting is missing because its key is misspelt, or because what
    its default comes from is wrong.
    """
    loc = detail["loc"]
    if detail["type"] == "too_short":
        return any(each["loc"][: len(loc)] == loc != each["loc"] for each in details)
    if detail["type"] != "missing":
        return False
    cause = _DEFAULTS_FROM.get(str(loc[-1]))
    if cause and any(each["loc"][0] == cause for each in details):
        return True
    unknown = [each["loc"] for each in details if each["type"] == "extra_forbidden"]
    return any(
        other[:-1] == loc[:-1] and _close(str(other[-1]), _known_keys(_in_data(other, data), data)) == loc[-1]
        for other in unknown
    )


def _is_derived(loc: Path, specified: Any) -> bool:
    """Whether only the defaults made what stands at `loc`. What is wrong with it then follows from another error."""
    completed: Any = with_defaults(specified)
    for part in loc:
        if not _holds(completed, part):
            continue
        if not _holds(specified, part) or (specified[part] is None and completed[part] is not None):
            return True
        completed, specified = completed[part], specified[part]
    return False


def _in_data(loc: Path, data: Any) -> Path:
    """The part of pydantic's location that is in the file (unions add names of their own)."""
    path: list[str | int] = []
    for position, part in enumerate(loc):
        if _holds(data, part):
            data = data[part]
        elif position == len(loc) - 1 and isinstance(data, dict) and part != "[key]":
            return (*path, part)
        else:
            continue
        path.append(part)
    return tuple(path)


def _holds(data: Any, part: str | int) -> bool:
    return part in data if isinstance(data, dict) else isinstance(data, list) and part in range(len(data))


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)


def _owners(path: Path, data: Any) -> list[type[BaseModel]]:
    """The models that the last part of `path` may be a setting of; in a union, the one that `data` is of."""
    models: list[type[BaseModel]] = [Environment]
    for part in path[:-1]:
        data = data[part] if data is not None and _holds(data, part) else None
        fields = [
            field for model in models for name, field in model.model_fields.items() if part in (name, field.alias)
        ]
        models = [model for field in fields for model in _models(field.annotation)] or models
        models = [model for model in models if _is_of(model, data)] or models
    return models


def _is_of(model: type[BaseModel], data: Any) -> bool:
    """Whether data may be of a model, by the field that tells the models of a union apart."""
    kind = model.model_fields.get("kind")
    return kind is None or not isinstance(data, dict) or data.get("kind") in get_args(kind.annotation)


def _kinds(path: Path, data: Any) -> list[str]:
    """What the last part of `path`, which tells the models of a union apart, may be."""
    fields = [model.model_fields.get(str(path[-1])) for model in _owners(path, data)]
    return [kind for field in fields if field for kind in get_args(field.annotation)]


def _known_keys(path: Path, data: Any) -> list[str]:
    """The keys that are allowed beside the last part of `path`."""
    own = [] if path[1:] else [EXTENDS]
    keys = [field.alias or name for model in _owners(path, data) for name, field in model.model_fields.items()]
    return list(dict.fromkeys(keys)) + own


def _described(path: Path, data: Any) -> str:
    """What the docstring of the setting at `path` says; of the list or mapping that it is an item of."""
    for end in range(len(path), 0, -1):
        for model in _owners(path[:end], data):
            for name, field in model.model_fields.items():
                if path[end - 1] in (name, field.alias):
                    return f"change {path[end - 1]}: {attribute_docstrings(model)[name]}"
    return "correct the value; `podwright schema` prints what each setting accepts"


def _finding(detail: ErrorDetails, source: Source) -> Finding:
    """A finding from one of pydantic's errors: its path in the file, and the hint that the kind of error allows."""
    loc: Path = detail["loc"]
    kind, value, context = detail["type"], detail["input"], detail.get("ctx", {})
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        # Pydantic puts it on the whole item; what is wrong is the one setting that says of what kind it is.
        loc = (*loc, context["discriminator"].strip("'"))
    path = _in_data(loc, source.data)
    location = source.position(path)
    shown = dotted(path)
    if kind == "extra_forbidden":
        known = _known_keys(path, source.data)
        hint = _meant(str(loc[-1]), known) or f"remove it; known here: {', '.join(known)}"
        return Finding("ENV001", Level.ERROR, shown, f"{shown} is not a known setting", hint, location)
    if kind in ("missing", "union_tag_not_found"):
        where = f" under {dotted(path[:-1])}" if path[:-1] else ""
        kinds = _kinds(path, source.data) if kind == "union_tag_not_found" else []
        message = f"{shown} is missing" + (f"{_ALLOWED_HERE}{listed(kinds)}" if kinds else "")
        meaning = "" if kinds else _described(path, source.data).removeprefix(f"change {loc[-1]}")
        return Finding("ENV002", Level.ERROR, shown, message, f"add `{loc[-1]}:`{where}{meaning}", location)
    if kind == "union_tag_invalid":
        tags = context["expected_tags"].replace("'", "").split(", ")
        hint = _meant(str(value[loc[-1]]), tags) or _described(path, source.data)
        message = f"{shown} is {_received(value[loc[-1]])}{_ALLOWED_HERE}{listed(tags)}"
        return Finding("ENV003", Level.ERROR, shown, message, hint, location)
    if kind == "too_long":
        message = f"{shown} has more than {context['max_length']} entries{_ALLOWED_HERE}at most {context['max_length']}"
        return Finding("ENV003", Level.ERROR, shown, message, _described(path, source.data), location)
    if kind == "too_short":
        message = f"{shown} has {context['actual_length']} entries{_ALLOWED_HERE}at least {context['min_length']}"
        return Finding("ENV003", Level.ERROR, shown, message, _described(path, source.data), location)
    if kind == "literal_error" and loc[-1] == "[key]":
        known = re.findall("'([^']+)'", context["expected"])
        hint = _meant(str(value), known) or f"remove it; known here: {', '.join(known)}"
        return Finding("ENV001", Level.ERROR, shown, f"{shown} is not a known setting", hint, location)
    message = detail["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    message = _AT_LEAST.sub(r"\1 or more", _AT_MOST.sub(r"\1 or less", message))
    message = _ALLOWED.get(kind, TEXT_FORMS.get(context.get("pattern", ""), message))
    hint = _described(path, source.data)
    if kind == "int_parsing" and isinstance(value, str) and _WITH_UNIT.fullmatch(value):
        message = f"{message} without a unit"
    if kind in ("model_type", "dict_type", "tuple_type") and (example := _example(path, source.data, value)):
        message = f"{message}, such as `{loc[-1]}: {example}`"
    if isinstance(value, str) and (close := _meant_value(value, context)):
        hint = close
    message = f"{shown} is {_received(value)}{_ALLOWED_HERE}{message[0].lower()}{message[1:]}"
    return Finding("ENV003", Level.ERROR, shown, message, hint, location)


def _meant(word: str, known: Sequence[str]) -> str:
    """A guess at the setting that somebody meant, as a hint; empty where there is none."""
    close = _close(word, known)
    if close is None and word in ELSEWHERE:
        path, value = ELSEWHERE[word]
        return f"write {path}: {value}"
    return f"did you mean {close!r}?" if close else ""


def _close(word: str, known: Sequence[str]) -> str | None:
    """The name beside that somebody most likely meant; a loose guess only where no setting elsewhere has the word."""
    beside = [name for name in BESIDE.get(word, ()) if name in known]
    likeness = _LIKE if word in ELSEWHERE else _SIMILAR
    return next(iter(beside or difflib.get_close_matches(word, known, 1, likeness)), None)


def _meant_value(value: str, context: Mapping[str, Any]) -> str:
    """A guess at the value that somebody meant, as a hint; empty where there is none."""
    pattern = context.get("pattern", "")
    if pattern == _ZONE_ID and re.fullmatch(ZONE_NAME, value):
        return (
            f"write the id of this zone, which `aws ec2 describe-availability-zones --zone-names {value} "
            f"--region {value[:-1]} --query 'AvailabilityZones[].ZoneId'` prints for your account"
        )
    if pattern.startswith(r"^ml\.") and re.search(pattern, f"ml.{value}"):
        return f"did you mean 'ml.{value}'?"
    close = difflib.get_close_matches(value, re.findall("'([^']+)'", str(context.get("expected", ""))), 1, _SIMILAR)
    return f"did you mean {close[0]!r}?" if close else ""


def _example(path: Path, data: Any, value: Any) -> str:
    """What a mapping or list at `path` looks like, as YAML; empty where it is no setting itself."""
    fields = [
        field
        for model in _owners(path, data)
        for name, field in model.model_fields.items()
        if path[-1] in (name, field.alias)
    ]
    if not fields:
        return ""
    annotation = fields[0].annotation
    origins = {get_origin(part) for part in (annotation, *get_args(annotation))}
    required = _required(list(_models(annotation)))
    if tuple in origins:
        scalar = isinstance(value, (str, int, float)) and required is None
        return f"[{', '.join(str(value).split())}]" if scalar else f"[{required or '…'}]"
    if dict in origins:
        return f"{{NAME: {required if required not in (None, _EMPTY) else '…'}}}"
    return required or ""


def _required(models: Sequence[type[BaseModel]]) -> str | None:
    """What a mapping of one of some models has to have, as YAML; None without a model."""
    if not models:
        return None
    shared = set.intersection(*(set(_required_names(model)) for model in models))
    names = [f"{name}: …" for name in _required_names(models[0]) if name in shared]
    return f"{{{', '.join(names)}}}"


def _required_names(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items() if field.is_required()]


def _received(value: Any) -> str:
    match value:
        case None:
            return "nothing"
        case dict():
            return "a mapping"
        case list() | tuple():
            return "a list"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:40]}…{text[-20:]}"
