"""What differs between two values of a template, property by property.

Items of lists are matched by their names where they have any, so a new instance group in front of others is one change,
and order alone means nothing where it means nothing to AWS.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ...planning.delivery.effects import Change

MANIFEST: Final = "Manifest"
"""The property that holds objects of Kubernetes, each of which comes or goes as one."""
_NAMES: Final = ("InstanceGroupName", "Key", "Sid", "PolicyName", "InstanceType", "Name", "name", "Id")
# Words that stand in for a value; CloudFormation resolves them.
_INTRINSIC: Final = ("Ref", "Condition")


@dataclass(frozen=True, slots=True)
class Difference:
    """One property that differs."""

    path: str
    """As people read it: InstanceGroups[h200].InstanceCount."""
    pattern: str
    """As tables know it: InstanceGroups/*/InstanceCount."""
    change: Change
    before: Any
    after: Any


def is_intrinsic(value: Any) -> bool:
    """Whether CloudFormation puts something else in the place of a value."""
    return (
        isinstance(value, Mapping)
        and len(value) == 1
        and (key := next(iter(value)))
        and (key in _INTRINSIC or key.startswith("Fn::"))
    )


def _is_group(value: Any) -> bool:
    """Whether a value is some properties."""
    return isinstance(value, Mapping) and bool(value) and not is_intrinsic(value)


def canonical(value: Any) -> str:
    """A value as text that is the same whenever the value is."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def differences(old: Any, new: Any, path: str = "", pattern: str = "") -> Iterator[Difference]:
    """Every property in which two values differ."""
    if same(old, new):
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping) and not is_intrinsic(old) and not is_intrinsic(new):
        for key in sorted(old.keys() | new.keys()):
            location = (f"{path}.{key}" if path else key), (f"{pattern}/{key}" if pattern else key)
            whole = [side[key] for side in (old, new) if key in side]
            if path != MANIFEST and len(whole) == 1 and _is_group(whole[0]):
                # A group of properties that comes or goes: each of them has an effect of its own.
                yield from differences(old.get(key, {}), new.get(key, {}), *location)
            else:
                yield from _pair(old, new, key, *location)
    elif isinstance(old, list) and isinstance(new, list):
        yield from _lists(old, new, path, pattern)
    else:
        yield Difference(path, pattern, _direction(old, new), old, new)


def _pair(old: Mapping[str, Any], new: Mapping[str, Any], key: str, path: str, pattern: str) -> Iterator[Difference]:
    if key in old and key in new:
        yield from differences(old[key], new[key], path, pattern)
    else:
        yield Difference(path, pattern, "add" if key in new else "remove", old.get(key), new.get(key))


def _lists(old: Sequence[Any], new: Sequence[Any], path: str, pattern: str) -> Iterator[Difference]:
    """Differences of lists: by the names of their items, else by content, else by position where all are mappings."""
    name = next((name for name in _NAMES if _names(name, old) and _names(name, new)), None)
    if name:
        before, after = {str(item[name]): item for item in old}, {str(item[name]): item for item in new}
    else:
        before, after = {canonical(item): item for item in old}, {canonical(item): item for item in new}
        if before.keys() == after.keys():
            # The order of what has no name may mean something, as it does for the types of a mixed group.
            yield Difference(path, pattern, "modify", old, new)
            return
        if len(old) == len(new) and all(isinstance(item, Mapping) for item in (*old, *new)):
            for index, (was, now) in enumerate(zip(old, new, strict=True)):
                yield from differences(was, now, f"{path}[{index}]", f"{pattern}/*")
            return
    for key in [*before, *(key for key in after if key not in before)]:
        yield from _pair(before, after, key, f"{path}[{key.strip(chr(34))}]", f"{pattern}/*")


def _names(name: str, items: Sequence[Any]) -> bool:
    """Whether every item has a name of its own in that field."""
    matches = [item.get(name) for item in items if isinstance(item, Mapping) and not is_intrinsic(item)]
    return len(matches) == len(items) == len({value for value in matches if isinstance(value, str)})


def same(old: Any, new: Any) -> bool:
    """Whether two values are the same to CloudFormation.

    It takes 3 and "3" alike, and loses characters beyond ASCII from the templates that it hands out.
    """
    if old == new:
        return True
    texts = (_scalar(old), _scalar(new))
    if None in texts:
        return canonical(old) == canonical(new)
    before, after = texts
    return before == after or before == (after or "").encode("ascii", "replace").decode()


def _scalar(value: Any) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int | float) else None


def _direction(old: Any, new: Any) -> Change:
    try:
        before, after = float(old), float(new)
    except (TypeError, ValueError):
        return "modify"
    return "raise" if after > before else "lower"
