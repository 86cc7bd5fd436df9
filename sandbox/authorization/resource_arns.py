"""Which resources an action of IAM takes, and the ARNs of those that a resource of a stack touches.

Source: Service Authorization Reference, as cfn-lint 1.58.0 ships it (`AdditionalSpecs/Policies.json`). It says kinds of
resources and the form of their ARNs, not which member of a request names one. So a resource of a stack touches itself,
where its type is called like a kind; what its properties name by ARN; and, of its own service, what a property names
that is called like a kind (`ClusterName`, `SubnetIds`). Other actions are judged by themselves.
"""

import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from cfnlint.data import AdditionalSpecs

from ..protocol.arns import PARTITION

_ANY: Final = ".*"
_PARAMETERS: Final = re.compile(r"\$\{(Partition|Region|Account)\}")
# Their ARNs have the parent's name and more, which this form of the reference does not show.
_OF_PARENTS: Final = frozenset(
    {"accessentry", "addon", "fargateprofile", "podidentityassociation", "rulegroupsnamespace", "schedule"}
)


class Location(NamedTuple):
    """Where resources are."""

    region: str
    account: str


class Kind(NamedTuple):
    """A kind of resource that an action takes."""

    name: str
    """In small letters, without hyphens: `loggroup`."""
    formats: tuple[str, ...]
    """Of its ARNs; `.*` is what the resource has of its own, `${Region}` and the like stand for themselves."""


class Touching(NamedTuple):
    """A resource of a stack."""

    service: str
    """Prefix of the actions of its type's service: `logs` for AWS::Logs::LogGroup."""
    kind: str
    """Its type's last word, in small letters."""
    identifier: str
    """Its name, or the ARN where that is its physical id."""
    properties: Any


@cache
def kinds(action: str) -> tuple[Kind, ...]:
    """The kinds of resources that an action takes; none for one that knows no resource, or that nobody documents."""
    service, _, name = action.lower().partition(":")
    reference = _reference().get(service, {"Actions": {}, "Resources": {}})
    formats = {kind.lower(): tuple(item["ARNFormats"]) for kind, item in reference["Resources"].items()}
    named = reference["Actions"].get(name, {}).get("Resources", ())
    return tuple(Kind(kind.lower().replace("-", ""), formats.get(kind.lower(), ())) for kind in named)


@cache
def _reference() -> dict[str, Any]:
    return json.loads((Path(AdditionalSpecs.__file__).parent / "Policies.json").read_text(encoding="utf-8"))


def arns(action: str, touching: Touching, location: Location) -> list[str]:
    """The ARNs on which an action is called for a resource; none where the resource names nothing of such a kind."""
    own = action.lower().partition(":")[0] == touching.service
    named = list(_strings(touching.properties))
    return sorted({arn for kind in kinds(action) for arn in _of_kind(kind, touching, named, location, own)})


def forms(arn: str) -> tuple[str, ...]:
    """The forms of one ARN: a log group goes by its name, and by its name with its streams."""
    return (arn, f"{arn.removesuffix(':*')}:*") if ":log-group:" in arn else (arn,)


def _of_kind(
    kind: Kind, touching: Touching, named: Sequence[tuple[str, str]], location: Location, own: bool
) -> Iterator[str]:
    """The ARNs of one kind; by names only where the action is of the resource's own service."""
    patterns = [re.compile(_placed(text, location, escape=True)) for text in kind.formats]
    texts = [touching.identifier, *(text for _, text in named)]
    complete = [text for text in texts if text.startswith("arn:")]
    for pattern in patterns:
        yield from filter(pattern.fullmatch, complete)
    if not own or kind.name in _OF_PARENTS:
        return
    own_names = [touching.identifier] if touching.kind == kind.name else []
    names = [*own_names, *(text for key, text in named if re.fullmatch(f"{kind.name}(name|id)?s?", key))]
    for name in names:
        yield from (_filled(_placed(text, location), name) for text in kind.formats if not name.startswith("arn:"))


def _placed(text: str, location: Location, *, escape: bool = False) -> str:
    """A form of ARNs in its place; with `escape` a pattern, otherwise with `.*` where a name stands."""
    values = {"Partition": PARTITION, "Region": location.region, "Account": location.account}
    placed = _PARAMETERS.sub(lambda match: values[match[1]], text)
    return re.escape(placed).replace(re.escape(_ANY), _ANY) if escape else placed


def _filled(text: str, name: str) -> str:
    """The ARN of a name. Names of aliases and parameters begin as that part of the ARN does, which has it once."""
    before, _, after = text.partition(_ANY)
    start = before.rpartition(":")[2]
    rest = name.removeprefix(start)
    return before + (rest.removeprefix("/") if start.endswith("/") else rest) + after


def _strings(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """The texts in properties with the name that they have there, in small letters; not those of policies and tags."""
    match value:
        case str():
            yield key, value
        case list():
            for item in value:
                yield from _strings(item, key)
        case dict() if "Statement" not in value and value.keys() != {"Key", "Value"}:
            for name, item in value.items():
                yield from _strings(item, name.lower())
