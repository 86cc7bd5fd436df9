"""What a synthesis wrote: the templates of one environment, what refers to what in them, and written reasons."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from ...config.errors import CommandError

Template = Mapping[str, Any]
_STACK: Final = "aws:cloudformation:stack"
_NESTED: Final = ".nested.template.json"
_ACKNOWLEDGED: Final = "aws:cdk:acknowledged-rules"
# As cdk-nag names a finding about one wildcard of a policy.
_WILDCARD: Final = re.compile(r"AwsSolutions-IAM5\[(.*)\]$", re.DOTALL)


@dataclass(frozen=True)
class Resource:
    """A resource of a template."""

    stack: str
    """Name of its stack without the environment's, such as network."""
    id: str
    type: str
    properties: Mapping[str, Any]
    path: str
    """Its construct path without the environment's name; the logical id where the template has none."""


@dataclass(frozen=True)
class Assembly:
    """The templates of one environment."""

    environment: str
    stacks: Mapping[str, Template]
    """By name without the environment's; nested ones by the name of their file."""
    reasons: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By construct path: the wildcards that are accepted there, each with its reason."""

    @cached_property
    def all(self) -> tuple[Resource, ...]:
        """Every resource, in the order of stacks and logical ids."""
        return tuple(
            Resource(stack, key, item["Type"], item.get("Properties", {}), self._path(key, item))
            for stack, template in self.stacks.items()
            for key, item in sorted(template.get("Resources", {}).items())
        )

    def of(self, *types: str) -> list[Resource]:
        """The resources of some types."""
        return [resource for resource in self.all if resource.type in types]

    def target(self, stack: str, value: Any) -> Resource | None:
        """The resource that a reference leads to, in whatever stack; None where it leads to none of ours."""
        match value:
            case {"Fn::ImportValue": str(name)}:
                result = self._exports.get(name)
                return self.target(*result) if result else None
            case {"Ref": str(name)} | {"Fn::GetAtt": [str(name), *_]}:
                return self._by_id.get((stack, name))
        return None

    def text(self, stack: str, value: Any) -> str:
        """A value as people read it: what only a deployment knows is the name of what it comes from, in braces."""
        if isinstance(value, dict) and len(value) == 1:
            resource = self.target(stack, value)
            if resource is not None:
                return f"{{{resource.path}}}"
            (name, inner), *_ = value.items()
            if name == "Fn::Join":
                return inner[0].join(self.text(stack, part) for part in inner[1])
            if name == "Fn::Sub":
                return str(inner if isinstance(inner, str) else inner[0])
            return f"{{{inner if isinstance(inner, str) else name.removeprefix('Fn::')}}}"
        return str(value)

    def reason(self, path: str, wildcard: str) -> str:
        """Why a policy at or below a construct has a wildcard, as cdk-nag names it; empty where nobody wrote it."""
        above = [location for location in self.reasons if path == location or path.startswith(f"{location}/")]
        result = (self.reasons[location].get(wildcard, "") for location in sorted(above, key=len, reverse=True))
        return next(filter(None, result), "")

    def _path(self, key: str, item: Mapping[str, Any]) -> str:
        return _shown(item.get("Metadata", {}).get("aws:cdk:path", key), self.environment)

    @cached_property
    def _by_id(self) -> dict[tuple[str, str], Resource]:
        return {(resource.stack, resource.id): resource for resource in self.all}

    @cached_property
    def _exports(self) -> dict[str, tuple[str, Any]]:
        return {
            output["Export"]["Name"]: (stack, output["Value"])
            for stack, template in self.stacks.items()
            for output in template.get("Outputs", {}).values()
            if isinstance(output.get("Export", {}).get("Name"), str)
        }


def read_assembly(folder: Path, environment: str) -> Assembly:
    """The environment's part of what `cdk synth` wrote.

    Raises:
        CommandError: the folder holds no assembly, or none of this environment.
    """
    manifest = _json(folder / "manifest.json", "`cdk synth` writes such a folder, cdk.out unless told otherwise")
    artifacts: dict[str, Any] = manifest.get("artifacts", {})
    nested = {
        item["properties"]["directoryName"]
        for item in artifacts.values()
        if item["type"] == "cdk:cloud-assembly" and "directoryName" in item.get("properties", {})
    }
    if f"assembly-{environment}" in nested:
        return read_assembly(folder / f"assembly-{environment}", environment)
    stacks = [
        item
        for item in artifacts.values()
        if item["type"] == _STACK and item.get("displayName", "").startswith(f"{environment}/")
    ]
    if not stacks:
        known = sorted(name.removeprefix("assembly-") for name in nested)
        raise CommandError(
            f"{folder} holds nothing of {environment}",
            f"it holds {', '.join(known)}" if known else f"synthesize it: `cdk synth '{environment}/*'`",
            2,
        )
    templates: dict[str, Template] = {}
    reasons: dict[str, dict[str, str]] = {}
    for item in stacks:
        hint = "the folder is incomplete: synthesize again"
        templates[item["displayName"].partition("/")[2]] = _json(folder / item["properties"]["templateFile"], hint)
        if more := item.get("additionalMetadataFile"):
            entries = _json(folder / more, hint)
            for path, result in _acknowledged(entries, environment):
                reasons.setdefault(path, {}).update(result)
    for name, file in _nested_files(folder, artifacts):
        templates[name] = _json(file, "the folder is incomplete: synthesize again")
    return Assembly(environment, templates, reasons)


def _acknowledged(entries: Mapping[str, Any], environment: str) -> Iterator[tuple[str, dict[str, str]]]:
    for path, items in entries.items():
        for item in items:
            if item["type"] == _ACKNOWLEDGED:
                matches = {match[1]: why for key, why in item["data"].items() if (match := _WILDCARD.search(key))}
                yield _shown(path.strip("/"), environment), matches


def _shown(path: str, environment: str) -> str:
    """A path of the construct tree below the environment, without the id that the CDK leaves out of names too."""
    return path.removeprefix(f"{environment}/").replace("/Default/", "/")


def _nested_files(folder: Path, artifacts: Mapping[str, Any]) -> Iterator[tuple[str, Path]]:
    """Templates of nested stacks: those that the lists of assets name, since a folder may hold older ones as well."""
    for item in artifacts.values():
        if item["type"] == "cdk:asset-manifest":
            listed = _json(folder / item["properties"]["file"], "the folder is incomplete: synthesize again")
            for asset in listed.get("files", {}).values():
                path = asset["source"].get("path", "")
                if path.endswith(_NESTED):
                    yield path.removesuffix(_NESTED), folder / path


def _json(file: Path, hint: str) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        message = error.strerror if isinstance(error, OSError) else f"no JSON: {error}"
        raise CommandError(f"{file} cannot be read: {message}", hint, 2) from None
