"""The two sides of a change set: the templates that are deployed, and those that a synthesis wrote."""

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ...config.errors import CommandError
from ..aws.account import Account
from ..aws.stacks import stack_resources, template
from ..cdk.deployment import deployed_stacks

Template = Mapping[str, Any]
NESTED: Final = "AWS::CloudFormation::Stack"
# Stacks that CloudFormation knows and that hold nothing: never executed, or rolled back and made anew by the CDK CLI.
# A deployment makes these anew, so for it there is nothing before.
_HOLLOW: Final = ("REVIEW_IN_PROGRESS", "ROLLBACK_COMPLETE", "ROLLBACK_FAILED")


@dataclass(frozen=True, slots=True)
class Pair:
    """One stack as it is and as it would be. A nested one goes by its parent's name and its logical id there."""

    name: str
    old: Template | None
    """None where it is not deployed."""
    new: Template | None
    """None where the synthesis no longer has it: a deployment leaves such a stack alone."""


def pairs(old: Mapping[str, Template], new: Mapping[str, Template]) -> list[Pair]:
    """Both sides of every stack, in the order in which they are deployed; last those that only AWS has."""

    def wanted(name: str) -> Template | None:
        # A nested stack goes with its last resource, for its parent no longer has it.
        return new.get(name, {} if "/" in name and name.partition("/")[0] in new else None)

    return [Pair(name, old.get(name), wanted(name)) for name in dict.fromkeys([*new, *old])]


def synthesized(assembly: Path, environment: str) -> dict[str, Template]:
    """The templates in a cloud assembly, by stack, what others need first.

    `assembly` is the folder of the environment's stage, or the assembly around it.

    Raises:
        CommandError: there is no such assembly.
    """
    inner = assembly / f"assembly-{environment}"
    folder = inner if inner.is_dir() else assembly
    manifest = folder / "manifest.json"
    if not manifest.is_file():
        raise CommandError(
            f"{assembly} holds no cloud assembly of {environment}", "`cdk synth --output DIR` writes one", 2
        )
    artifacts = json.loads(manifest.read_text(encoding="utf-8"))["artifacts"]
    stacks = {key: item for key, item in artifacts.items() if item["type"] == "aws:cloudformation:stack"}
    if not stacks:
        raise CommandError(f"{assembly} has no stacks of {environment}", "give the assembly around that stage", 2)
    templates: dict[str, Template] = {}
    for key in _in_order(stacks):
        properties = stacks[key]["properties"]
        template = _read(folder / properties["templateFile"])
        name = properties.get("stackName", key)
        templates[name] = template
        templates |= _nested(folder, name, template)
    return templates


def _in_order(stacks: Mapping[str, Any]) -> list[str]:
    """The ids of stacks, each after those that it depends on."""
    ordered: list[str] = []

    def visit(key: str) -> None:
        if key in stacks and key not in ordered:
            for other in stacks[key].get("dependencies", ()):
                visit(other)
            ordered.append(key)

    for key in stacks:
        visit(key)
    return ordered


def _read(file: Path) -> Template:
    return json.loads(file.read_text(encoding="utf-8"))


def _nested(folder: Path, parent: str, template: Template) -> dict[str, Template]:
    """The templates nested in one. Their URLs hold the digest under which the lists of assets know their files."""
    desired = {
        key: str(item["Properties"]["TemplateURL"]) for key, item in resources(template) if item["Type"] == NESTED
    }
    if not desired:
        return {}
    # The CDK names a nested template's asset by its digest, which stands in the URL as well.
    assets = [_read(file)["files"] for file in folder.glob("*.assets.json")]
    templates: dict[str, Template] = {}
    for key, url in desired.items():
        file = next(
            (item["source"]["path"] for files in assets for digest, item in files.items() if digest in url), None
        )
        if file is None:
            raise CommandError(f"the assembly lacks the template of {parent}/{key}", "synthesize it again")
        body = _read(folder / file)
        templates |= {f"{parent}/{key}": body} | _nested(folder, f"{parent}/{key}", body)
    return templates


def deployed(account: Account, environment: str, project: Path) -> dict[str, Template]:
    """The templates of an environment's stacks as CloudFormation holds them, nested ones included."""
    stacks = deployed_stacks(account, environment, project)
    names = [stack.name for stack in stacks if stack.status not in _HOLLOW]
    # A stack each and a call for each of its nested ones; one after another would take long.
    with ThreadPoolExecutor(max_workers=8) as pool:
        bodies = dict(zip(names, pool.map(lambda name: _body(account, name), names), strict=True))
    known = {name: body for name, body in bodies.items() if body}
    return {key: inner for name, body in known.items() for key, inner in _with_nested(account, name, name, body)}


def _with_nested(account: Account, name: str, stack: str, template: Template) -> Iterator[tuple[str, Template]]:
    yield name, template
    if any(item["Type"] == NESTED for _, item in resources(template)):
        for item in stack_resources(account, stack):
            if item.type == NESTED and item.name:
                yield from _with_nested(account, f"{name}/{item.logical_id}", item.name, _body(account, item.name))


def _body(account: Account, stack: str) -> Template:
    # As it was submitted. None of podwright's templates has a transform, so processing would change nothing.
    body = template(account, stack)
    if not body:
        return {}  # of a change set that was never executed; the CDK CLI deletes such a stack, which takes a moment
    if isinstance(body, str):
        raise CommandError(
            f"the template of {stack} has short forms of YAML, so no CDK deployed it", "look at that stack yourself"
        )
    return body


def resources(template: Template | None) -> list[tuple[str, Any]]:
    """The resources of a template with their logical ids."""
    return list((template or {}).get("Resources", {}).items())
