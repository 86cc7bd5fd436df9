"""Determines the resource types of IAM actions, and the ARNs that an action on a stack's resource uses.

Source: Service Authorization Reference, in cfn-lint 1.58.0 (`AdditionalSpecs/Policies.json`). It contains resource
types and the forms of their ARNs, but not the members of requests that name them. So the ARNs of a stack's resource
are: its own if its type has the name of a resource type, those in its properties, and those of names of the same
service in properties with the name of a resource type (`ClusterName`, `SubnetIds`). Without any, only the action is
checked.
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
# Their ARNs also contain the parent's name, which this form of the reference does not show.
_OF_PARENTS: Final = frozenset(
    {"accessentry", "addon", "fargateprofile", "podidentityassociation", "rulegroupsnamespace", "schedule"}
)


class Location(NamedTuple):
    """The partition, region and account of resources."""

    region: str
    account: str


class Kind(NamedTuple):
    """A resource type of an action."""

    name: str
    """Name in lower case without hyphens, such as `loggroup`."""
    formats: tuple[str, ...]
    """Pattern of its ARNs: `.*` for the resource's name, and placeholders such as `${Region}`."""


class Touching(NamedTuple):
    """A resource of a stack."""

    service: str
    """Prefix of its service's actions, such as `logs` for AWS::Logs::LogGroup."""
    kind: str
    """Last part of its type, in lower case."""
    identifier: str
    """Its physical id: a name or an ARN."""
    properties: Any


@cache
def kinds(action: str) -> tuple[Kind, ...]:
    """Return the resource types of an action; none for an action without them, or an unknown one."""
    service, _, name = action.lower().partition(":")
    reference = _reference().get(service, {"Actions": {}, "Resources": {}})
    formats = {kind.lower(): tuple(item["ARNFormats"]) for kind, item in reference["Resources"].items()}
    named = reference["Actions"].get(name, {}).get("Resources", ())
    return tuple(Kind(kind.lower().replace("-", ""), formats.get(kind.lower(), ())) for kind in named)


@cache
def _reference() -> dict[str, Any]:
    return json.loads((Path(AdditionalSpecs.__file__).parent / "Policies.json").read_text(encoding="utf-8"))


def arns(action: str, touching: Touching, location: Location) -> list[str]:
    """Return the ARNs of an action on a stack's resource; none if the resource contains no such name."""
    own = action.lower().partition(":")[0] == touching.service
    named = list(_strings(touching.properties))
    return sorted({arn for kind in kinds(action) for arn in _of_kind(kind, touching, named, location, own)})


def forms(arn: str) -> tuple[str, ...]:
    """Return the forms of an ARN: a log group's has one with and one without its streams."""
    return (arn, f"{arn.removesuffix(':*')}:*") if ":log-group:" in arn else (arn,)


def _of_kind(
    kind: Kind, touching: Touching, named: Sequence[tuple[str, str]], location: Location, own: bool
) -> Iterator[str]:
    """Return the ARNs of a resource type. Names count only if the action is of the resource's service."""
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
    """Fill a form of ARNs with partition, region and account. With `escape`, the result is a regular expression."""
    values = {"Partition": PARTITION, "Region": location.region, "Account": location.account}
    placed = _PARAMETERS.sub(lambda match: values[match[1]], text)
    return re.escape(placed).replace(re.escape(_ANY), _ANY) if escape else placed


def _filled(text: str, name: str) -> str:
    """Return the ARN of a name. The start of an alias' or parameter's name is not repeated in its ARN."""
    before, _, after = text.partition(_ANY)
    start = before.rpartition(":")[2]
    rest = name.removeprefix(start)
    return before + (rest.removeprefix("/") if start.endswith("/") else rest) + after


def _strings(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield the strings in properties with their lower-case names, except for those in policies and tags."""
    match value:
        case str():
            yield key, value
        case list():
            for item in value:
                yield from _strings(item, key)
        case dict() if "Statement" not in value and value.keys() != {"Key", "Value"}:
            for name, item in value.items():
                yield from _strings(item, name.lower())
