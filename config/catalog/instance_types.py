"""The instance catalog: every type of SageMaker's ClusterInstanceType, with a source for each row.

`catalog()` is what the package ships. `catalog(overrides)` is that with what an environment knows better.
"""

import dataclasses
import difflib
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from types import UnionType
from typing import Any, Final, Literal, NamedTuple, get_args, get_origin

from ..errors import InvalidValue, UnknownName
from .facts import DATA, cited, table
from .instance_type import Conflict, InstanceType, UltraServer

_FIELDS = {field.name: field for field in dataclasses.fields(InstanceType)}
OVERRIDABLE = tuple(name for name in _FIELDS if name not in {"name", "sources", "overridden"})
"""Fields that an environment may set under `instance_types`."""
# What has no default has to be known of a type before anything can be planned for it.
_REQUIRED = tuple(name for name in OVERRIDABLE if _FIELDS[name].default is dataclasses.MISSING)
_WORDS = {"yes": True, "true": True, "no": False, "false": False}


class UnknownInstanceType(UnknownName):
    """A name that the catalog does not hold; `close` are the names most like it."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        self.name = name
        # Names of types differ in one letter, so only near misses are proposed.
        self.close = tuple(difflib.get_close_matches(name, list(known), 3, 0.75))
        hint = f"did you mean {' or '.join(self.close)}?" if self.close else "names look like ml.p5.48xlarge."
        super().__init__(f"{name} is not in the instance catalog; {hint}")


class InvalidOverride(InvalidValue):
    """A fact under `instance_types` that cannot be used. `field` is None when the type as a whole is meant."""

    def __init__(self, instance_type: str, field: str | None, message: str) -> None:
        self.instance_type, self.field = instance_type, field
        super().__init__(message)


class Catalog:
    """Instance types by name, and the UltraServers that some of them form. Iterating gives the types in table order."""

    def __init__(self, types: Iterable[InstanceType], ultraservers: Iterable[UltraServer]) -> None:
        self._types = {row.name: row for row in types}
        self.ultraservers = {row.name: row for row in ultraservers}
        """UltraServers by name, such as ml.u-p6e-gb200x72."""

    def __iter__(self) -> Iterator[InstanceType]:
        return iter(self._types.values())

    def __len__(self) -> int:
        return len(self._types)

    def __contains__(self, name: str) -> bool:
        return name in self._types

    def find(self, name: str) -> InstanceType | None:
        """The type of that name, or None."""
        return self._types.get(name)

    def get(self, name: str) -> InstanceType:
        """The type of that name. Raises UnknownInstanceType, which carries the closest names."""
        if name not in self._types:
            raise UnknownInstanceType(name, self._types)
        return self._types[name]


def catalog(overrides: Mapping[str, Mapping[str, Any]] | None = None) -> Catalog:
    """The catalog with `overrides` (type → field → value) in place of shipped facts.

    Values may be text as YAML wrote it. A type that the catalog lacks is defined by giving every field that has no
    default.

    Raises:
        InvalidOverride: an unknown field, a value of another kind, or a new type that is incomplete.
    """
    shipped = _shipped()
    if not overrides:
        return shipped
    types = {row.name: row for row in shipped}
    for name, facts in overrides.items():
        types[name] = _overridden(name, facts, types)
    return Catalog(types.values(), shipped.ultraservers.values())


@cache
def conflicts() -> tuple[Conflict, ...]:
    """The facts on which sources disagree, and which value the catalog holds."""
    return tuple(Conflict(**entry) for entry in json.loads((DATA / "conflicts.json").read_text(encoding="utf-8")))


@cache
def _shipped() -> Catalog:
    """The catalog as it ships: instances, and what the tables of EFA, NVLink, MIG and topology add to their rows."""
    rows = {row.pop("type"): row for row in table("instances")}
    for row in rows.values():
        # Without EFA there is no generation; with EFA a table of its own says which.
        row["efa_generation"] = "0" if row["efa_interfaces"] == "0" else ""
    for extra in ("efa", "nvlink", "mig_profiles", "topology_labels"):
        for row in table(extra):
            known = rows[row.pop("type")]
            source = row.pop("source")
            # A row is put together from several tables, and so are its sources.
            known.update(row, source=f"{known['source']} {source}")
    ultraservers = [
        UltraServer(
            row["name"],
            row["instance_type"],
            int(row["instances"]),
            int(row["accelerators"]),
            _WORDS[row["hyperpod"]],
            row["member"],
            cited(row["source"]),
        )
        for row in table("ultraservers")
    ]
    return Catalog((_row(name, row) for name, row in rows.items()), ultraservers)


def _row(name: str, row: dict[str, str]) -> InstanceType:
    sources = cited(row.pop("source"))
    return InstanceType(name=name, sources=sources, **{field: _from_table(field, text) for field, text in row.items()})


@cache
def _from_table(field: str, text: str) -> Any:
    # The tables hold the same few hundred texts over and over: remembering them halves the time of loading.
    return _value(field, text)


def _overridden(name: str, facts: Mapping[str, Any], types: Mapping[str, InstanceType]) -> InstanceType:
    """A type with the facts that an environment states of it. Raises InvalidOverride."""
    values: dict[str, Any] = {}
    for field, specified in facts.items():
        if field not in OVERRIDABLE:
            close = difflib.get_close_matches(field, OVERRIDABLE, 1)
            hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(OVERRIDABLE)}"
            raise InvalidOverride(name, field, f"{field} is not a fact of an instance type; {hint}")
        try:
            values[field] = _value(field, specified)
        except ValueError as error:
            raise InvalidOverride(name, field, f"{field} of {name} is {specified!r}; allowed: {error}") from None
    if name in types:
        return dataclasses.replace(types[name], **values, overridden=types[name].overridden | set(values))
    missing = [field for field in _REQUIRED if field not in values]
    if missing:
        raise InvalidOverride(
            name,
            None,
            f"{UnknownInstanceType(name, types)} To define a new type, add "
            f"{', '.join(missing)}, as `aws ec2 describe-instance-types` prints them",
        )
    return InstanceType(name=name, **values, overridden=frozenset(values))


class _Kind(NamedTuple):
    """What a field holds."""

    type: Any
    origin: Any
    """Of a generic type."""
    optional: bool


@cache
def _kind(field: str) -> _Kind:
    kind: Any = _FIELDS[field].type
    optional = isinstance(kind, UnionType)
    kind = get_args(kind)[0] if optional else kind
    return _Kind(kind, get_origin(kind), optional)


def _value(field: str, specified: Any) -> Any:
    """`specified`, text or Python, as the type of `field`. Raises ValueError that says what is allowed."""
    kind, origin, optional = _kind(field)
    if optional and (specified is None or specified == ""):
        return None
    if kind is int or kind is float:
        return _number(kind, specified)
    if kind is bool:
        word = _WORDS.get(specified.lower()) if isinstance(specified, str) else specified
        if not isinstance(word, bool):
            raise ValueError("yes or no")
        return word
    if origin is tuple:
        items = specified.split() if isinstance(specified, str) else specified
        if not isinstance(items, list | tuple) or not all(isinstance(item, str) for item in items):
            raise ValueError("a list of names")
        return tuple(items)
    if origin is Literal and specified not in get_args(kind):
        raise ValueError(" or ".join(get_args(kind)))
    if not isinstance(specified, str):
        raise ValueError("text")
    return specified


def _number(kind: type[int] | type[float], specified: Any) -> int | float:
    allowed = "a whole number from 0" if kind is int else "a number from 0"
    # bool is an int in Python.
    if isinstance(specified, bool) or not isinstance(specified, str | int | float):
        raise ValueError(allowed)
    try:
        number = kind(specified)
    except (ValueError, OverflowError):
        raise ValueError(allowed) from None
    # A float that is no whole number would lose its fraction without a word.
    if not 0 <= number < math.inf or (isinstance(specified, float) and number != specified):
        raise ValueError(allowed)
    return number


def environment_types(overrides: Mapping[str, Mapping[str, Any]]) -> Catalog:
    """The instance catalog as an environment knows it; the shipped one while its own facts are wrong (see ENV013)."""
    try:
        return catalog(overrides)
    except InvalidOverride:
        # A rule has told of the wrong facts; until they are right the shipped ones hold.
        return catalog()


LOGICAL_CORES: Final = "NEURON_LOGICAL_NC_CONFIG"
"""The variable that says of how many physical cores a logical one is."""


class LogicalCores(NamedTuple):
    """How the physical cores of a device are grouped."""

    allowed: tuple[int, ...]
    """Physical cores that a logical one may be of."""
    default: int
    """What the runtime takes when the variable is absent."""


@cache
def _table() -> dict[str, LogicalCores]:
    return {
        row["accelerator"]: LogicalCores(tuple(map(int, row["groups"].split())), int(row["default"]))
        for row in table("neuron_logical_cores")
    }


def logical_cores(row: InstanceType) -> LogicalCores:
    """How cores of a type's devices are grouped; one by one where the table says nothing of them."""
    return _table().get(row.accelerator_name, LogicalCores((1,), 1))


def ranks_per_device(row: InstanceType, group: str | None) -> int:
    """Processes that one accelerator of a type runs: one for a GPU, one for each logical core of a Neuron device.

    Args:
        row: The type.
        group: Physical cores of a logical one, as the variable says; what is not allowed counts as absent.
    """
    if not row.neuron_cores:
        return 1
    cores = logical_cores(row)
    size = next((allowed for allowed in cores.allowed if str(allowed) == group), cores.default)
    return row.neuron_cores // row.accelerator_count // size
