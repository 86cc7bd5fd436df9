"""Everything that can carry a tag carries the environment's, so that a bill tells environments apart."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import cfnlint

from podwright.planning.cost.cost_tags import ENVIRONMENT_TAG

ROOT = Path(__file__).parents[1] / "snapshot/templates"
SCHEMAS = Path(cfnlint.__file__).parent / "data/schemas"
# CDK's mark that kubectl may begin: a standard parameter, which costs nothing.
FREE = {"KubectlReadyBarrier"}


@cache
def digests() -> dict[str, str]:
    return json.loads((SCHEMAS / "providers/us-west-2.json").read_text())


@cache
def tag_property(resource_type: str) -> str | None:
    """The property that holds a type's tags; None where it takes none."""
    if resource_type not in digests():
        return None
    schema = json.loads((SCHEMAS / f"resources/{digests()[resource_type]}.json").read_text())
    tagging = schema.get("tagging", {})
    names = {"Tags", "ResourceTags"} & schema["properties"].keys()
    if tagging.get("taggable"):
        return str(tagging.get("tagProperty", "/properties/Tags")).rpartition("/")[2]
    return min(names, default=None)


def resources() -> Iterator[tuple[str, dict[str, Any]]]:
    """Each resource of every environment's templates, with the environment's name."""
    for file in sorted(ROOT.glob("*/*.json")):
        for resource in json.loads(file.read_text())["Resources"].values():
            yield file.parent.name, resource


def test_everything_that_takes_tags_has_the_environments() -> None:
    untagged, tagged = set[str](), 0
    for environment, resource in resources():
        name = tag_property(resource["Type"])
        if name is None or resource.get("Metadata", {}).get("aws:cdk:path", "").endswith(tuple(FREE)):
            continue
        tags = resource.get("Properties", {}).get(name, {})
        pairs = tags if isinstance(tags, dict) else {tag["Key"]: tag["Value"] for tag in tags}
        if pairs.get(ENVIRONMENT_TAG) == environment:
            tagged += 1
        else:
            untagged.add(f"{environment}: {resource['Type']} {resource.get('Metadata', {}).get('aws:cdk:path')}")
    assert sorted(untagged) == []
    assert tagged > 1000


def test_backups_have_the_tags_of_what_they_are_of() -> None:
    retained = ("AutomaticBackupRetentionDays", "BackupRetentionPeriod")
    texts = [text for _, resource in resources() if any(word in (text := json.dumps(resource)) for word in retained)]
    assert texts
    assert [text for text in texts if '"CopyTagsTo' not in text] == []
