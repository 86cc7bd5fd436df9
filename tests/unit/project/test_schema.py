import copy
import json
from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import Any, get_args

import jsonschema
import pytest
from pydantic import BaseModel
from ruamel.yaml import YAML
from ruamel.yaml.constructor import SafeConstructor

from podwright.config.errors import InvalidFile
from podwright.config.findings import Path
from podwright.config.loading.load import environment_from
from podwright.config.loading.schema import environment_schema
from podwright.config.loading.source import Source, parse_source
from podwright.config.settings.environment import Environment

ROOT = FilePath(__file__).parents[3]
SCHEMA = environment_schema()
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
PARTS = jsonschema.Draft202012Validator(environment_schema(part=True))
# Every optional section present, so that each required field of the schema has a place here.
FULL = """
name: full
account: "111122223333"
region: us-west-2
network:
  zones: [usw2-az2, usw2-az3]
storage:
  lustre: {efa: true, repositories: [{path: /datasets, s3: "s3://acme-datasets"}], backups: {}}
  home: {openzfs: {}}
  additional_lustre:
    old: {existing: {id: fs-0123456789abcdef0, mount_name: abcdefgh, security_group: sg-0123456789abcdef0}}
cluster:
  name: full
training_plans:
  plan:
    arn: arn:aws:sagemaker:us-west-2:111122223333:training-plan/plan
    windows: [{start: 2027-01-04, end: 2027-01-18, count: 2, zone: usw2-az2}]
    zone: usw2-az2
instance_groups:
  system:
    instance_type: ml.m5.4xlarge
    count: 2
    volumes: [{size_gib: 100}]
    taints: [{key: a, effect: NoSchedule}]
    patching: {strategy: when_idle}
    scheduled_update: {schedule: cron(0 4 ? * SUN *)}
    lifecycle: {source: "s3://sagemaker-acme/scripts", on_create: run.sh}
  h200: {instance_type: ml.p5en.48xlarge, count: 2, capacity: {training_plan: plan}}
restricted_instance_groups:
  nova: {instance_type: ml.p5.48xlarge, count: 2, lustre: {capacity_gib: 1200, throughput: 250}}
acknowledge:
  - {rule: NET001, reason: "it is meant that way"}
"""


class _CoreSchema(SafeConstructor):
    """Editors read YAML by its core schema, in which a date is text."""


_CoreSchema.add_constructor("tag:yaml.org,2002:timestamp", SafeConstructor.construct_yaml_str)


def as_editors_read_it(text: str) -> Any:
    yaml = YAML(typ="safe", pure=True)
    yaml.Constructor = _CoreSchema
    return yaml.load(text)


def refused(text: str) -> list[str]:
    errors = VALIDATOR.iter_errors(as_editors_read_it(text))
    return sorted({".".join(map(str, error.absolute_path)) for error in errors})


def loads(data: Any) -> bool:
    try:
        environment_from(Source("x.yaml", data, {}), "x")
    except InvalidFile:
        return False
    return True


def test_the_published_file_is_what_the_command_prints() -> None:
    assert json.loads((ROOT / "docs/environment.schema.json").read_text()) == SCHEMA
    assert json.loads((ROOT / "docs/environment-part.schema.json").read_text()) == PARTS.schema


def test_it_is_a_schema_of_its_draft() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("file", sorted((ROOT / "environments").glob("*.yaml")), ids=lambda file: file.stem)
def test_accepts_our_environments_as_editors_and_as_the_loader_read_them(file: FilePath) -> None:
    text = file.read_text()
    schema = "environment-part.schema.json" if "extends:" in text else "environment.schema.json"
    assert f"/docs/{schema}\n" in text.partition("\n")[0] + "\n"
    validator = PARTS if "extends:" in text else VALIDATOR
    validator.validate(as_editors_read_it(text))
    validator.validate(parse_source(text, file.name).data)


@pytest.mark.parametrize("file", sorted((ROOT / "environments/shared").glob("*.yaml")), ids=lambda file: file.stem)
def test_accepts_our_shared_files(file: FilePath) -> None:
    PARTS.validate(as_editors_read_it(file.read_text()))
    assert not VALIDATOR.is_valid(as_editors_read_it(file.read_text()))


def test_of_a_part_nothing_is_required_and_everything_can_be_taken_away() -> None:
    text = "extends: [base.yaml]\ninstance_groups: {h200: {count: 3}, old: ~}\nobservability:\nstorage: {lustre: ~}\n"
    PARTS.validate(as_editors_read_it(text))
    PARTS.validate(as_editors_read_it(FULL))
    assert not PARTS.is_valid(as_editors_read_it(text.replace("count: 3", "count: many")))
    assert not PARTS.is_valid(as_editors_read_it(text.replace("count: 3", "cuont: 3")))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param('account: "111122223333"', "account: 111122223333", id="an account without quotes"),
        pytest.param("lustre: {efa: true", "lustre: {version: 2.15, efa: true", id="a version without quotes"),
        pytest.param("efa: true", "efa: on", id="on for true"),
        pytest.param("count: 2\n", 'count: "2"\n', id="a number in quotes"),
        pytest.param("  name: full", "  eks: {version: 1.30}", id="1.30, which YAML tools read as 1.3"),
        pytest.param("zones: [usw2-az2, usw2-az3]", "zones: usw2-az2", id="one zone instead of a list"),
        pytest.param("count: 2\n", "count: 2\n    labels: {gpu: true, generation: 5}\n", id="scalar labels"),
        pytest.param("count: 2\n", "count: 2\n    threads_per_core: 1\n", id="one thread"),
        pytest.param("region: us-west-2", "region: us-west-2\ntags: {cost-center: 4711}", id="a tag that is a number"),
        pytest.param(
            "    zone: usw2-az2\n",
            "    zone: usw2-az2\n    start: 2027-01-04\n    end: 2027-02-01T11:30Z\n",
            id="dates",
        ),
    ],
)
def test_accepts_what_the_loader_accepts(before: str, after: str) -> None:
    text = FULL.replace(before, after, 1)
    assert text != FULL
    assert loads(parse_source(text, "x.yaml").data)
    assert not refused(text)
    assert VALIDATOR.is_valid(parse_source(text, "x.yaml").data)


@pytest.mark.parametrize(
    ("before", "after", "path"),
    [
        pytest.param("region: us-west-2", "region: us-west-2\nzone: a", "", id="unknown key"),
        pytest.param("region: us-west-2", "region: Oregon", "region", id="pattern"),
        pytest.param("{efa: true", "{efa: maybe", "storage.lustre", id="a boolean that is none"),
        pytest.param("count: 2\n", "count: -2\n", "instance_groups.system.count", id="below the minimum"),
        pytest.param("count: 2\n", "count: two\n", "instance_groups.system.count", id="text for a number"),
        pytest.param("strategy: when_idle", "strategy: later", "instance_groups.system.patching", id="not one of"),
        pytest.param("  h200:", "  h_200:", "instance_groups", id="a group name with an underscore"),
        pytest.param("    instance_type: ml.m5.4xlarge\n", "", "instance_groups.system", id="a group without a type"),
        pytest.param("start: 2027-01-04", "start: 20270104", "training_plans.plan.windows.0.start", id="a date"),
        pytest.param(
            "training_plan: plan", "plan: plan", "instance_groups.h200.capacity", id="unknown form of capacity"
        ),
        pytest.param(
            "on_create: run.sh",
            "on_create: a, on_init_complete: b",
            "instance_groups.system.lifecycle",
            id="both scripts",
        ),
    ],
)
def test_refuses_at_the_field(before: str, after: str, path: str) -> None:
    text = FULL.replace(before, after, 1)
    assert text != FULL
    assert refused(text) == [path]


def required(schema: dict[str, Any], data: Any, path: Path = ()) -> list[tuple[Path, bool]]:
    """Every setting of `data` by path, and whether the schema requires it."""
    while "$ref" in schema:
        schema = SCHEMA["$defs"][schema["$ref"].rsplit("/", 1)[-1]]
    for branch in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        if ("$ref" in branch or branch.get("type") in ("object", "array")) and isinstance(data, dict | list):
            return required(branch, data, path)
    actual: list[tuple[tuple[int | str, ...], bool]] = []
    if isinstance(data, list):
        for index, item in enumerate(data):
            actual += required(schema["items"], item, (*path, index))
    elif isinstance(data, dict):
        # The only one that is there of several of which one has to be.
        either = [name for one in schema.get("anyOf", ()) for name in one.get("required", ()) if name in data]
        needed = {*schema.get("required", ()), *(either if len(either) == 1 else ())}
        for key, value in data.items():
            properties = schema.get("properties")
            if properties is not None:
                actual.append(((*path, key), key in needed))
            below = properties[key] if properties else next(iter(schema["patternProperties"].values()))
            actual += required(below, value, (*path, key))
    return actual


def test_requires_exactly_what_the_loader_misses() -> None:
    data = parse_source(FULL, "x.yaml").data
    assert loads(data)
    settings = required(SCHEMA, data)
    assert len(settings) > 40
    for path, is_required in settings:
        less = copy.deepcopy(data)
        below = less
        for part in path[:-1]:
            below = below[part]
        del below[path[-1]]
        assert loads(less) is not is_required, path


def test_every_field_is_described() -> None:
    nameless = [
        f"{name}.{field}"
        for name, model in SCHEMA["$defs"].items()
        for field, schema in model["properties"].items()
        if not schema.get("description")
    ]
    assert not nameless


def untyped(model: type[BaseModel], observed: set[type]) -> Iterator[str]:
    """Settings below a model whose values may be anything."""
    if model not in observed:
        observed.add(model)
        for name, field in model.model_fields.items():
            yield from (f"{model.__name__}.{name}" for each in parts(field.annotation) if each is Any)
            for each in parts(field.annotation):
                if isinstance(each, type) and issubclass(each, BaseModel):
                    yield from untyped(each, observed)


def parts(annotation: Any) -> list[Any]:
    """The types that an annotation is made of."""
    inner = [part for each in get_args(annotation) for part in parts(each)]
    return inner or [annotation]


def test_no_value_keeps_the_text_of_the_file() -> None:
    """A scalar of a file is text until a type reads it: what may be anything is YAML text of its own."""
    # The columns of the catalog read these.
    assert list(untyped(Environment, set())) == ["Environment.instance_types"]
