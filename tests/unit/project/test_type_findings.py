"""What a person reads when a value has the wrong type: one finding for each cause, at its line, with its meaning."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from podwright.config.errors import InvalidFile
from podwright.config.findings import Finding
from podwright.config.loading.load import environment_from
from podwright.config.loading.other_words import BESIDE, ELSEWHERE
from podwright.config.loading.source import parse_source
from podwright.config.loading.text_forms import TEXT_FORMS

SCHEMA = json.loads((Path(__file__).parents[3] / "docs/environment.schema.json").read_text())
# Of numbers and booleans, which YAML may have as text.
AS_WRITTEN = {"^[0-9]+$", "^[0-9.]+$", "^([Tt]rue|TRUE|[Ff]alse|FALSE|[Yy]es|YES|[Nn]o|NO|[Oo]n|ON|[Oo]ff|OFF)$"}

GOOD = """\
account: "111122223333"
region: us-west-2
network: {zones: [usw2-az1, usw2-az2]}
storage: {lustre: {efa: true}}
instance_groups:
  system: {instance_type: ml.m5.4xlarge, count: 2}
"""


def found(before: str, after: str) -> list[Finding]:
    assert before in GOOD
    with pytest.raises(InvalidFile) as refused:
        environment_from(parse_source(GOOD.replace(before, after), "a.yaml"), "a")
    return refused.value.findings


@pytest.mark.parametrize(
    ("before", "after", "line", "message", "hint"),
    [
        pytest.param(
            '"111122223333"', "12", 1, "account is '12'; allowed: twelve digits in quotes, such as \"111122223333\"",
            "change account: AWS account id, twelve digits in quotes.", id="pattern",
        ),
        pytest.param(
            "count: 2", "count: two", 6, "instance_groups.system.count is 'two'; allowed: a whole number",
            "change count: Target number of instances.", id="number",
        ),
        pytest.param(
            "efa: true", "efa: perhaps", 4, "storage.lustre.efa is 'perhaps'; allowed: true or false",
            "change efa: Serve clients over EFA (and GPUDirect Storage). Fixed at creation.", id="boolean",
        ),
        pytest.param(
            "count: 2", "count: 2, labels: []", 6,
            "instance_groups.system.labels is a list; allowed: a mapping, such as `labels: {NAME: …}`",
            "change labels: Kubernetes labels of each node.", id="mapping",
        ),
        pytest.param(
            "count: 2", "count: 2, volumes: {}", 6,
            "instance_groups.system.volumes is a mapping; allowed: a list, such as `volumes: [{size_gib: …}]`",
            "change volumes: Further EBS volumes.", id="list",
        ),
        pytest.param(
            "  system:", "  _system:", 6,
            "instance_groups._system is '_system'; allowed: letters, digits and hyphens between them, such as train-1",
            "change instance_groups: Instance groups by name. Order has no meaning. Default: none, only with "
            "`restricted_instance_groups`, or with `training_job_queues`; then there are a network and "
            "storage for training jobs, and no cluster.",
            id="name of a group",
        ),
        pytest.param(
            "region:", "regoin:", 2, "regoin is not a known setting", "did you mean 'region'?", id="misspelt",
        ),
    ],
)  # fmt: skip
def test_a_wrong_value(before: str, after: str, line: int, message: str, hint: str) -> None:
    first = min(found(before, after), key=lambda finding: finding.id)
    assert first.place is not None
    assert (first.place.line, first.message, first.hint) == (line, message, hint)


def test_what_only_the_defaults_made_is_no_cause() -> None:
    """Without a network the control plane has no zones either; that is not the user's to fix."""
    assert [finding.message for finding in found("network: {zones: [usw2-az1, usw2-az2]}\n", "")][:1] == [
        "network is missing"
    ]
    assert [finding.path for finding in found("usw2-az2", "us-west-2b")] == ["network.zones[1]"]


def _schemas(item: Any) -> Iterator[dict[str, Any]]:
    """All objects of the schema."""
    if isinstance(item, dict):
        yield item
    for part in item.values() if isinstance(item, dict) else item if isinstance(item, list) else ():
        yield from _schemas(part)


def test_nobody_reads_a_regular_expression() -> None:
    patterns = {item["pattern"] for item in _schemas(SCHEMA) if isinstance(item.get("pattern"), str)}
    patterns |= {key for item in _schemas(SCHEMA) for key in item.get("patternProperties", ())}
    assert patterns - AS_WRITTEN == set(TEXT_FORMS)


@pytest.mark.parametrize(
    ("scaling", "message", "hint"),
    [
        ("karpenter", "such as {karpenter: {groups: [burst], limits: {accelerators: 32}}}", "autoscaling: HyperPod's"),
        (
            "{karpenter: {groups: [burst], limits: {gpus: 3}}}",
            "limits.gpus is not a known",
            "did you mean 'accelerators'?",
        ),
        (
            "{karpenter: {groups: [burst], limits: {disks: 3}}}",
            "is not a known setting",
            "known here: accelerators, vcpu",
        ),
        ("{karpenter: {groups: [burst], limits: {}}}", "limits has 0 entries; allowed: at least 1", "limits: What"),
        ("{karpenter: {groups: [burst], limits: {vcpu: 0}}}", "vcpu is '0'; allowed: 1 or more", "limits: What"),
    ],
)
def test_who_scales_is_said_in_full(scaling: str, message: str, hint: str) -> None:
    (finding,) = found("instance_groups:", f"cluster: {{autoscaling: {scaling}}}\ninstance_groups:")
    assert message in finding.message
    assert hint in finding.hint


def test_the_example_of_a_form_is_of_it() -> None:
    examples = {pattern: text.partition(", such as ")[2].strip('"') for pattern, text in TEXT_FORMS.items()}
    assert {pattern: example for pattern, example in examples.items() if not re.search(pattern, example)} == {}


@pytest.mark.parametrize("word", ELSEWHERE)
def test_what_is_set_elsewhere_is_named_with_a_value_that_it_takes(word: str) -> None:
    path, value = ELSEWHERE[word]
    written: Any = yaml.safe_load(value)
    for part in reversed(path.split(".")):
        written = {part.replace("NAME", "system"): written}
    written |= {"instance_groups": {"system": {"count": 2} | written.get("instance_groups", {}).get("system", {})}}
    data = yaml.safe_load(GOOD) | written
    data["instance_groups"]["system"].setdefault("instance_type", "ml.m5.4xlarge")
    environment_from(parse_source(yaml.safe_dump(data), "a.yaml"), "a")
    [finding] = found("zones:", f"{word}: 1, zones:")
    assert finding.hint == f"write {path}: {value}"


def test_other_words_lead_to_settings() -> None:
    known = {key for item in _schemas(SCHEMA) for key in item.get("properties", ())}
    assert {name for names in BESIDE.values() for name in names} <= known


@pytest.mark.parametrize(
    ("before", "after", "message", "hint"),
    [
        pytest.param(
            "usw2-az1, usw2-az2", "us-west-2a",
            "network.zones[0] is 'us-west-2a'; allowed: the id of a zone, such as usw2-az2",
            "write the id of this zone, which `aws ec2 describe-availability-zones --zone-names us-west-2a "
            "--region us-west-2 --query 'AvailabilityZones[].ZoneId'` prints for your account",
            id="the name of a zone",
        ),
        pytest.param(
            "region:", "platform: {training_operator: yes}\nregion:",
            "platform.training_operator is 'yes'; allowed: a mapping, such as `training_operator: {}`",
            "change training_operator: HyperPodPyTorchJob: "
            "restarts without new pods, hang detection, elastic training.",
            id="a switch that is a mapping",
        ),
        pytest.param(
            "count: 2", "count: 2, lifecycle: s3://a",
            "instance_groups.system.lifecycle is 's3://a'; allowed: a mapping, such as `lifecycle: {source: …}`",
            "change lifecycle: Scripts of your own; podwright publishes its own when absent.",
            id="a mapping that has to have something",
        ),
        pytest.param(
            "count: 2", "gpus: 2, count: 2", "instance_groups.system.gpus is not a known setting",
            "write instance_groups.NAME.instance_type: ml.p5.48xlarge", id="what the type says",
        ),
        pytest.param(
            "count: 2", "nodes: 2", "instance_groups.system.nodes is not a known setting", "did you mean 'count'?",
            id="another word",
        ),
    ],
)  # fmt: skip
def test_a_finding_says_what_to_write(before: str, after: str, message: str, hint: str) -> None:
    assert (message, hint) in [(finding.message, finding.hint) for finding in found(before, after)]


@pytest.mark.parametrize(
    ("before", "after", "findings"),
    [
        ("instance_groups:", "instance_group:", ["instance_group: did you mean 'instance_groups'?"]),
        ("instance_groups:", "node_groups:", ["node_groups: did you mean 'instance_groups'?"]),
        ("count: 2", "replicas: 2", ["instance_groups.system.replicas: did you mean 'count'?"]),
        ("network:", "vpc:", ["vpc: did you mean 'network'?"]),
        ("efa: true", "efa: true, size_gb: 9600", ["storage.lustre.size_gb: did you mean 'capacity_gib'?"]),
        ("ml.m5", "m5", ["instance_groups.system.instance_type: did you mean 'ml.m5.4xlarge'?"]),
        ("count: 2", "count: 2, capacity: on-demand", ["instance_groups.system.capacity: did you mean 'on_demand'?"]),
    ],
)
def test_a_slip_is_one_finding_with_what_was_meant(before: str, after: str, findings: list[str]) -> None:
    """What follows from it, such as a setting that is missing under its right name, is no finding of its own."""
    assert [f"{finding.path}: {finding.hint}" for finding in found(before, after)] == findings


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("count: 2", "count: 2 nodes", "count is '2 nodes'; allowed: a whole number without a unit"),
        ("efa: true", "capacity_gib: 9600GiB", "capacity_gib is '9600GiB'; allowed: a whole number without a unit"),
        (
            "  system: {instance_type: ml.m5.4xlarge, count: 2}",
            "  - {name: system}",
            "instance_groups is a list; allowed: a mapping, such as `instance_groups: {NAME: {count: …}}`",
        ),
        (
            "region:",
            "governance: {teams: [llm]}\nregion:",
            "governance.teams is a list; allowed: a mapping, such as `teams: {NAME: …}`",
        ),
        (
            "region:",
            "observability: {alerts: {emails: oncall}}\nregion:",
            "observability.alerts.emails is 'oncall'; allowed: a list, such as `emails: [oncall]`",
        ),
        ("region:", "jobs: {llm: {image: a}}\nregion:", "jobs.llm.kind is missing; allowed: hyperpod_pytorch, pytorch"),
    ],
)
def test_a_wrong_shape_is_answered_with_the_right_one(before: str, after: str, message: str) -> None:
    assert any(message in finding.message for finding in found(before, after))


def _settings() -> list[tuple[str, ...]]:
    """A path to every mapping of settings of the schema that is one by itself, by following single references."""

    def below(schema: dict[str, Any], path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        schema = SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
        if schema.get("type") != "object" or "properties" not in schema:
            return
        yield path
        for name, item in schema["properties"].items():
            options = [option for option in item.get("anyOf", [item]) if option.get("type") != "null"]
            if len(options) == 1 and len(path) < 4:
                yield from below(options[0], (*path, name))

    return list(below(SCHEMA, ()))


def test_a_misspelt_key_is_named_at_every_level() -> None:
    """With its line, and with what it may be: another name, or the keys that there are."""
    paths = _settings()
    assert len(paths) > 40
    for path in paths:
        data = yaml.safe_load(GOOD)
        below = data
        for part in path:
            below = below.setdefault(part, {})
        below["zzz_qqq"] = 1
        with pytest.raises(InvalidFile) as refused:
            environment_from(parse_source(yaml.safe_dump(data), "a.yaml"), "a")
        shown = ".".join((*path, "zzz_qqq"))
        [finding] = [finding for finding in refused.value.findings if finding.path == shown]
        assert finding.message == f"{shown} is not a known setting"
        assert finding.hint.startswith("remove it; known here: "), shown
        assert finding.place is not None, shown
        assert finding.place.line > 1, shown


def test_a_list_of_wrong_items_is_not_called_too_short() -> None:
    assert [finding.path for finding in found("[usw2-az1, usw2-az2]", "[us-west-2a]")] == ["network.zones[0]"]
