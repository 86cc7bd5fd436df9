"""node.json: what the config room writes is what its schema says and what the scripts on a node read."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from podwright.config.catalog.instance_types import UnknownInstanceType, catalog
from podwright.config.settings.groups import InstanceGroup
from podwright.lifecycle_scripts.podwright_node.host import name_resolution
from podwright.lifecycle_scripts.podwright_node.runner.log import Log
from podwright.lifecycle_scripts.podwright_node.runner.node import FACTS_VERSION, Node
from podwright.lifecycle_scripts.podwright_node.storage import container_storage as storage
from podwright.planning.node.facts import ClusterFacts, FileSystems, LustreMount, OpenZfsMount, node_facts
from podwright.planning.node.schema import node_schema

ROOT = Path(__file__).parents[3]
SCHEMA = node_schema()
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
CLUSTER = ClusterFacts(
    name="prod", orchestrator="eks", region="us-west-2", dns_suffix="amazonaws.com", lifecycle="tolerant", setup_uri=""
)
MOUNT = {"dns_name": "fs-0.fsx.us-west-2.amazonaws.com", "zone": "usw2-az2"}
FILE_SYSTEMS = FileSystems(
    lustre={"lustre": LustreMount(**MOUNT, mount_name="abcdefgh", path="/fsx", efa=True)},
    home=OpenZfsMount(**MOUNT, path="/home"),
)


def group(**settings: Any) -> InstanceGroup:
    provided = {"instance_type": "ml.p5en.48xlarge", "count": 2, "zone": "usw2-az2"}
    return InstanceGroup.model_validate(provided | settings)


def written(**groups: InstanceGroup) -> dict[str, Any]:
    facts = node_facts(cluster=CLUSTER, groups=groups, types=catalog(), file_systems=FILE_SYSTEMS)
    return json.loads(facts.model_dump_json())


def test_the_published_schema_is_this_one(request: pytest.FixtureRequest) -> None:
    path = ROOT / "docs/node.schema.json"
    if request.config.getoption("--update-snapshots"):
        path.write_text(json.dumps(SCHEMA, indent=2) + "\n")
    assert json.loads(path.read_text()) == SCHEMA
    VALIDATOR.check_schema(SCHEMA)


def test_every_field_is_described_and_required() -> None:
    for definition in (SCHEMA, *SCHEMA["$defs"].values()):
        assert definition["required"] == list(definition["properties"])
        assert definition["additionalProperties"] is False
        assert all(field.get("description") for field in definition["properties"].values())


def test_writes_what_the_schema_says() -> None:
    mixed = group(instance_type=None, instance_types=["ml.m5.4xlarge", "ml.m5.8xlarge"], volumes=[{"size_gib": 500}])
    facts = written(h200=group(), mixed=mixed)
    VALIDATOR.validate(facts)
    assert facts["version"] == FACTS_VERSION
    assert list(facts["instance_types"]) == ["ml.m5.4xlarge", "ml.m5.8xlarge", "ml.p5en.48xlarge"]
    assert facts["instance_types"]["ml.p5en.48xlarge"]["accelerator_name"] == "H200"
    assert facts["groups"]["mixed"] == {
        "instance_types": ["ml.m5.4xlarge", "ml.m5.8xlarge"],
        "zones": ["usw2-az2"],
        "volumes_gib": [500],
        "mounts_lustre": False,
        "mounts_home": False,
        "benchmarks": "skip",
        "software": {"components": {}, "kernel_only": True, "variables": {}},
    }


def test_a_file_system_less_is_still_what_the_schema_says() -> None:
    facts = node_facts(
        cluster=CLUSTER, groups={"a": group()}, types=catalog(), file_systems=FileSystems(lustre={}, home=None)
    )
    VALIDATOR.validate(json.loads(facts.model_dump_json()))


def test_neither_order_nor_size_of_groups_shows() -> None:
    assert json.dumps(written(a=group(), b=group())) == json.dumps(written(b=group(count=9), a=group(count=0)))


def test_leaves_out_groups_with_scripts_of_their_own() -> None:
    own = group(lifecycle={"source": "s3://sagemaker-own/a", "on_create": "a.sh"}, instance_type="ml.m5.4xlarge")
    facts = written(own=own, ours=group())
    assert list(facts["groups"]) == ["ours"]
    assert list(facts["instance_types"]) == ["ml.p5en.48xlarge"]


def test_names_a_type_that_nobody_knows() -> None:
    with pytest.raises(UnknownInstanceType, match=r"ml\.p9\.48xlarge"):
        written(a=group(instance_type="ml.p9.48xlarge"))


class Recorder(dict[str, Any]):
    """A mapping that remembers which of its keys were read."""

    def __init__(self, content: dict[str, Any], read: set[str], path: str = "") -> None:
        super().__init__(content)
        self._read, self._path = read, path

    def _value(self, key: str, value: Any) -> Any:
        self._read.add(f"{self._path}{key}")
        return Recorder(value, self._read, f"{self._path}{key}/") if isinstance(value, dict) else value

    def __getitem__(self, key: str) -> Any:
        return self._value(key, super().__getitem__(key))

    def get(self, key: str, default: Any = None) -> Any:
        return self._value(key, super().get(key, default))


def schema_paths(definition: dict[str, Any], path: str = "") -> Iterator[str]:
    """Every path that the schema allows; `*` for the keys of a mapping."""
    while "$ref" in definition:
        definition = SCHEMA["$defs"][definition["$ref"].rsplit("/", 1)[-1]]
    for name, below in definition.get("properties", {}).items():
        yield f"{path}{name}"
        yield from schema_paths(below, f"{path}{name}/")
    if isinstance(definition.get("additionalProperties"), dict):
        yield f"{path}*"
        yield from schema_paths(definition["additionalProperties"], f"{path}*/")


def test_scripts_read_only_what_the_schema_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "node.json").write_text(json.dumps(written(workers=group(volumes=[{"size_gib": 9}]))))
    config = {"InstanceGroups": [{"Name": "workers", "InstanceType": "ml.p5en.48xlarge", "Instances": [{}]}]}
    config["InstanceGroups"][0]["Instances"][0]["InstanceId"] = "i-0"
    for path, text in {
        "opt/ml/config/resource_config.json": json.dumps(config),
        "sys/devices/virtual/dmi/id/board_asset_tag": "i-0",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text(text)
    read: set[str] = set()
    loads = json.loads
    monkeypatch.setattr(json, "loads", lambda text: Recorder(loads(text), read) if '"groups"' in text else loads(text))
    with Log(tmp_path / "log") as log:
        node = Node.here(tmp_path, tmp_path, log)
    assert node.group == "workers"
    assert storage.expected(node) == ["/opt/dlami/nvme", "/opt/sagemaker"]
    assert storage.STEP.applies_to(node)
    assert name_resolution.service_name(node) == "s3.us-west-2.amazonaws.com"
    allowed = set(schema_paths(SCHEMA))
    starred = {path.replace("/workers", "/*").replace("/ml.p5en.48xlarge", "/*") for path in read}
    assert len(starred) >= 9
    assert starred <= allowed


def test_the_schema_refuses_what_scripts_could_not_read() -> None:
    facts = written(a=group())
    for path in (("version",), ("cluster", "region"), ("groups", "a", "volumes_gib")):
        less = copy.deepcopy(facts)
        below = less
        for part in path[:-1]:
            below = below[part]
        del below[path[-1]]
        assert not VALIDATOR.is_valid(less), path
    assert not VALIDATOR.is_valid(facts | {"version": 2})
    assert not VALIDATOR.is_valid(facts | {"extra": 1})
