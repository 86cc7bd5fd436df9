"""What is unlike its template, and whether that is drift or noise."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, NamedTuple

from ...config.catalog.facts import cited, table
from ..effects.compare import Difference, canonical, differences
from .resolve import Unknown

_CHANGES: Final = {"add": "added", "remove": "gone"}


@dataclass(frozen=True, slots=True)
class Drift:
    """One thing that is unlike its template."""

    stack: str
    logical_id: str
    type: str
    property: str
    template: Any
    live: Any
    noise: bool
    """Whether the service does this by itself, so that nobody has to do anything."""
    what: str
    sources: tuple[str, ...] = ()


def unlike(stack: str, logical_id: str, kind: str, template: Mapping[str, Any], live: Mapping[str, Any]) -> list[Drift]:
    """Every difference between a resource's template and what it is now.

    What only the deployment knew is left out. Where several places of a template have the same such value, they have to
    have the same value now: groups that run different scripts, for instance, are found that way.
    """
    shared: dict[str, dict[str, str]] = {}
    asked, existing = _comparable(template, live, "", shared)
    drifts = [
        drift
        for item in differences(asked, existing)
        if (drift := _judged(stack, logical_id, kind, item, template, live)) is not None
    ]
    for values in shared.values():
        # What the template fills in at several places has to be the same at all of them.
        if len(set(values.values())) > 1:
            locations = ", ".join(f"{path}: {value}" for path, value in sorted(values.items()))
            words = "one value in the template, and now they differ"
            drifts.append(
                Drift(stack, logical_id, kind, next(iter(sorted(values))), "the same", locations, False, words)
            )
    return drifts


def _comparable(asked: Any, existing: Any, path: str, shared: dict[str, dict[str, str]]) -> tuple[Any, Any]:
    """Both sides without what the template leaves to the deployment."""
    if isinstance(asked, Mapping) and isinstance(existing, Mapping):
        left, right = {}, dict(existing)
        for key, item in asked.items():
            if isinstance(item, Unknown):
                if isinstance(value := right.pop(key, None), str):
                    shared.setdefault(canonical(item.value), {})[f"{path}.{key}"] = value
            elif key in existing:
                left[key], right[key] = _comparable(item, existing[key], f"{path}.{key}" if path else key, shared)
            else:
                left[key] = _as_written(item)
        return left, right
    if isinstance(asked, list) and isinstance(existing, list):
        if all(isinstance(item, Mapping) and "InstanceGroupName" in item for item in (*asked, *existing)):
            now = {item["InstanceGroupName"]: item for item in existing}
            names = [item["InstanceGroupName"] for item in asked]
            both = [
                _comparable(item, now[name], f"{path}[{name}]", shared)
                for name, item in zip(names, asked, strict=True)
                if name in now
            ]
            # What only one side has stays as it is, to be judged as added or gone.
            deleted = [_as_written(item) for item in asked if item["InstanceGroupName"] not in now]
            added = [item for item in existing if item["InstanceGroupName"] not in names]
            return [*(left for left, _ in both), *deleted], [*(right for _, right in both), *added]
        # A list with values that only the deployment knew cannot be compared.
        if _as_written(asked) != asked:
            return [], []
        # AWS answers lists of plain values in any order.
        if all(isinstance(item, str) for item in (*asked, *existing)):
            return sorted(asked), sorted(existing)
    return asked, existing


def _as_written(value: Any) -> Any:
    """A value with what only the deployment knew as the template writes it."""
    if isinstance(value, Mapping):
        return {key: _as_written(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_written(item) for item in value]
    return value.value if isinstance(value, Unknown) else value


def _judged(
    stack: str, logical_id: str, kind: str, difference: Difference, template: Mapping[str, Any], live: Mapping[str, Any]
) -> Drift | None:
    """A difference as drift, and why it is noise; None where a service is only silent."""
    change = _CHANGES.get(difference.change, "changed")
    values = difference.path, difference.before, difference.after
    for row in _table().get(kind, ()):
        fits = row.change in (change, "any") and row.pattern.fullmatch(difference.pattern)
        if fits and _holds(row.condition, difference, template, live):
            return Drift(stack, logical_id, kind, *values, row.noise, row.what, row.sources)
    if change != "changed" and not difference.pattern.endswith("*"):
        # A template that is silent leaves a property to the service, and a service need not show all that it was told.
        return None
    words = {"added": "not in the template", "gone": "no longer there"}.get(change, "unlike the template")
    return Drift(stack, logical_id, kind, *values, False, words)


def _holds(condition: str, difference: Difference, template: Mapping[str, Any], live: Mapping[str, Any]) -> bool:
    match condition:
        case "karpenter":
            return live.get("AutoScaling", {}).get("Mode") == "Enable"
        case "patched":
            name = difference.path.partition("[")[2].partition("]")[0]
            groups = template.get("InstanceGroups", ())
            # With a schedule HyperPod changes the image by itself.
            group = next((group for group in groups if group["InstanceGroupName"] == name), {})
            return "AutoPatchConfig" in group or "ScheduledUpdateConfig" in group
        case _:
            return True


class _Row(NamedTuple):
    """What is known of one kind of difference."""

    pattern: re.Pattern[str]
    change: str
    condition: str
    noise: bool
    what: str
    sources: tuple[str, ...]


@cache
def _table() -> dict[str, list[_Row]]:
    results: dict[str, list[_Row]] = {}
    for row in table("drift"):
        pattern = re.compile(re.escape(row["path"]).replace(r"\*", "[^/]+"))
        sources = tuple(str(source) for source in cited(row["source"]))
        entry = _Row(pattern, row["change"], row["when"], row["verdict"] == "noise", row["what"], sources)
        results.setdefault(row["type"], []).append(entry)
    return results


def explained(drifts: list[Drift], desired: Mapping[str, int], live: Mapping[str, Any]) -> Iterator[str]:
    """What the next deployment would do to the counts of groups; `desired` are those of the environment's file."""
    now = {group["InstanceGroupName"]: int(group["InstanceCount"]) for group in live.get("InstanceGroups", ())}
    now |= {
        group["InstanceGroupName"]: int(group["InstanceCount"]) for group in live.get("RestrictedInstanceGroups", ())
    }
    for drift in drifts:
        name = drift.property.partition("[")[2].partition("]")[0]
        if drift.property.endswith(".InstanceCount") and name in desired and now[name] != desired[name]:
            if drift.noise:
                yield f"{name}: Karpenter has set {now[name]}; the file says {desired[name]}"
            else:
                yield f"the next deploy that touches the cluster would set {name} {now[name]} → {desired[name]}"
