"""From a file to an environment: what the types make of it, and a finding at its line for what they refuse."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from podwright.config.errors import InvalidFile
from podwright.config.findings import Finding
from podwright.config.loading.load import environment_from, load_environment
from podwright.config.loading.project import Project
from podwright.config.loading.source import parse_source
from podwright.config.settings.base import Settings
from podwright.config.settings.defaults import with_defaults
from podwright.config.settings.environment import Environment
from podwright.config.settings.storage import Lustre
from podwright.planning.rules.storage.lustre import other_class

MINIMAL = """\
account: "111122223333"
region: us-west-2
network: {zones: [usw2-az2, usw2-az3]}
instance_groups:
  system: {instance_type: ml.m5.4xlarge, count: 2}
"""


def environment(more: str = "", *, actual: str = MINIMAL) -> Environment:
    return environment_from(parse_source(actual + more, "dev.yaml"), "dev").environment


def refused(more: str = "", *, actual: str = MINIMAL) -> list[Finding]:
    with pytest.raises(InvalidFile) as caught:
        environment(more, actual=actual)
    return caught.value.findings


def test_the_shortest_file() -> None:
    shortest = environment()
    assert (shortest.name, shortest.cluster.name) == ("dev", "dev")
    assert shortest.cluster.zones == ("usw2-az2", "usw2-az3")
    assert shortest.instance_groups["system"].zone == "usw2-az2"
    assert shortest.storage.lustre is None


def test_defaults_that_nobody_validates_are_what_validation_makes() -> None:
    """They are written `Storage.model_construct()`, which runs no validator."""
    environment()  # imports every room of settings
    kinds = [*_kinds(Settings)]
    defaults = [field.default for kind in kinds for field in kind.model_fields.values()]
    groups = [default for default in defaults if isinstance(default, Settings) and not default.model_fields_set]
    assert len(groups) > 10
    assert [group for group in groups if type(group).model_validate({}) != group] == []


def _kinds(kind: type[Settings]) -> Iterator[type[Settings]]:
    for inner in kind.__subclasses__():
        yield inner
        yield from _kinds(inner)


def test_an_empty_mapping_is_no_empty_list() -> None:
    (finding,) = refused("approved_changes: {}")
    assert (finding.id, finding.message) == (
        "ENV003",
        "approved_changes is a mapping; allowed: a list, such as `approved_changes: [{digest: …}]`",
    )
    assert environment("approved_changes: []").approved_changes == ()


def test_account_keeps_its_leading_zero() -> None:
    assert environment(actual=MINIMAL.replace('"111122223333"', "011122223333")).account == "011122223333"


@pytest.mark.parametrize(
    ("groups", "system"),
    [
        ({"a": "ml.p5.48xlarge", "system": "ml.p5.48xlarge", "b": "ml.m5.4xlarge"}, "system"),
        ({"a": "ml.p5.48xlarge", "c": "ml.m5.4xlarge", "b": "ml.m5.4xlarge"}, "b"),
        ({"b": "ml.p5.48xlarge", "a": "ml.p5.48xlarge"}, "a"),
    ],
    ids=["by its name", "no accelerators", "first of all"],
)
def test_the_group_that_the_system_runs_on(groups: dict[str, str], system: str) -> None:
    raw = {"instance_groups": {name: {"instance_type": kind} for name, kind in groups.items()}}
    assert with_defaults(raw)["cluster"]["system_group"] == system


def test_version_keeps_its_trailing_zero() -> None:
    assert environment("cluster: {eks: {version: 1.30}}").cluster.eks.version == "1.30"


@pytest.mark.parametrize(
    ("text", "value"), [("off", False), ("no", False), ("on", True), ("true", True), ("True", True)]
)
def test_booleans_are_read_where_a_boolean_is_meant(text: str, value: bool) -> None:
    assert environment(f"storage: {{lustre: {{efa: {text}}}}}").storage.lustre.efa is value  # pyrefly: ignore[missing-attribute]


def test_words_stay_words_where_text_is_meant() -> None:
    tags = environment("tags: {on: off, 1.30: 012, day: 2026-01-02, time: 12:30:45, no: ~x}".replace("~x", "x")).tags
    assert tags == {"on": "off", "1.30": "012", "day": "2026-01-02", "time": "12:30:45", "no": "x"}


def test_anchors_and_merges_of_groups() -> None:
    groups = environment(
        "  more: {<<: *s, count: 3}\n", actual=MINIMAL.replace("system: {", "system: &s {")
    ).instance_groups
    assert (groups["system"].count, groups["more"].count) == (2, 3)


def test_an_empty_setting_is_an_absent_one() -> None:
    assert (
        environment("cluster:\nstorage: {lustre: {zone: , capacity_gib: null}}").storage.lustre
        == environment("storage: {lustre: {}}").storage.lustre
    )


@pytest.mark.parametrize(
    ("more", "id", "path", "line", "words"),
    [
        ("storag: {}", "ENV001", "storag", 6, "did you mean 'storage'?"),
        ("storage: {lustre: {troughput: 500}}", "ENV001", "storage.lustre.troughput", 6, "did you mean 'throughput'?"),
        (
            "storage:\n  lustre:\n    quux: 1",
            "ENV001",
            "storage.lustre.quux",
            8,
            "known here: zone, type, capacity_gib",
        ),
        (
            "jobs: {a: {kind: job, group: system, image: b, quux: 1}}",
            "ENV001",
            "jobs.a.quux",
            6,
            "topology, topology_required, kind, retries, active_deadline_seconds, keep_seconds, gpu_share",
        ),
        (
            "jobs: {a: {kind: space, group: system, image: b, secrets: {c: {quux: 1}}}}",
            "ENV001",
            "jobs.a.secrets.c.quux",
            6,
            "remove it; known here: env, path, secrets_manager",
        ),
        ("storage: {home: {openzfs: {}, size: 1}}", "ENV001", "storage.home.size", 6, "known here: openzfs"),
        (
            'storage: {lustre: {repositories: [{path: /a, s3: "s3://abc", import_events: [new]}]}}',
            "ENV001",
            "storage.lustre.repositories[0].import_events",
            6,
            "did you mean 'import'?",
        ),
        (
            "training_plans:\n  q1: {count: 2}",
            "ENV002",
            "training_plans.q1.zone",
            7,
            "add `zone:` under training_plans.q1",
        ),
        ("storage: {lustre: {efa: maybe}}", "ENV003", "storage.lustre.efa", 6, "is 'maybe'; allowed: true or false"),
        (
            "storage: {lustre: {metadata_iops: many}}",
            "ENV003",
            "storage.lustre.metadata_iops",
            6,
            "a whole number, or 'automatic'",
        ),
        ("storage: {lustre: [a]}", "ENV003", "storage.lustre", 6, "is a list; allowed: a mapping"),
        ("storage:", "ENV003", "storage", 6, "is nothing; allowed: a mapping"),
        ("tags: {a: }", "ENV003", "tags.a", 6, "is nothing; allowed: text"),
        ("protection: keep", "ENV003", "protection", 6, "is 'keep'; allowed: 'retain' or 'destroy'"),
        ("network: {}", "YML002", "network", 6, "is listed twice"),
        ("acknowledge: [{rule: NET1, reason: because of that}]", "ENV003", "acknowledge[0].rule", 6, "is 'NET1'"),
        ("jobs: {a: {kind: pytorhc}}", "ENV003", "jobs.a.kind", 6, "is 'pytorhc'; allowed: hyperpod_pytorch, pytorch"),
        ("jobs: {a: {kind: 3}}", "ENV003", "jobs.a.kind", 6, "is '3'; allowed: hyperpod_pytorch"),
        ("jobs: {a: {group: system}}", "ENV002", "jobs.a.kind", 6, "is missing"),
        ("jobs: {a: }", "ENV003", "jobs.a", 6, "is nothing; allowed: a mapping"),
        (
            f"governance: {{priorities: {{{', '.join(f'p{n}: {n}' for n in range(11))}}}}}",
            "ENV003",
            "governance.priorities",
            6,
            "has more than 10 entries; allowed: at most 10",
        ),
        ("cluster: {name: bad_name}", "ENV003", "cluster.name", 6, "is 'bad_name'"),
        (f"cluster: {{name: {'9' * 5000}}}", "ENV003", "cluster.name", 6, "9999…9999"),
    ],
)
def test_what_the_types_refuse_is_a_finding_at_its_line(more: str, id: str, path: str, line: int, words: str) -> None:
    (finding,) = refused(more)
    assert (finding.id, finding.path) == (id, path)
    assert str(finding.place) == f"dev.yaml:{line}"
    assert words in f"{finding.message} {finding.hint}"
    assert len(finding.message) < 400


@pytest.mark.parametrize("count", ["2.5", "0x10", ".inf", "'two'", "9" * 5000, "[2]", "{a: 2}", ""])
def test_a_count_is_a_whole_number(count: str) -> None:
    (finding,) = refused(actual=MINIMAL.replace("count: 2", f"count: {count}"))
    assert finding.path == "instance_groups.system.count"


def test_a_zone_name_is_refused_once_and_where_it_stands() -> None:
    (finding,) = refused(actual=MINIMAL.replace("usw2-az2", "us-west-2a"))
    assert finding.path == "network.zones[0]"


@pytest.mark.parametrize("cidr", ["10.0.0.1/16", "10.0.0.999/16", "10.0.0.0/33", "010.0.0.0/16", "10.0.0.0"])
def test_a_range_is_one(cidr: str) -> None:
    (finding,) = refused(actual=MINIMAL.replace("{zones", f"{{cidr: {cidr}, zones"))
    assert finding.path == "network.cidr"


def test_everything_is_said_at_once_and_in_the_order_of_the_types() -> None:
    findings = refused(
        "foo: 1\nprotection: x", actual=MINIMAL.replace("us-west-2", "west").replace("count: 2", "count: -1, bar: 1")
    )
    assert {finding.path for finding in findings} == {
        "region", "protection", "foo", "instance_groups.system.count", "instance_groups.system.bar",
    }  # fmt: skip


@pytest.mark.parametrize("text", ["", "# nothing", "- a", "hello", "~"])
def test_a_file_without_settings(text: str) -> None:
    (finding,) = refused(actual=text)
    assert (finding.id, finding.path) == ("ENV003", "")
    assert "podwright init" in finding.hint


def test_name_comes_from_the_file(tmp_path: Path) -> None:
    file = tmp_path / "blue-1.yaml"
    file.write_text(MINIMAL)
    assert load_environment(file).environment.name == "blue-1"


def test_a_project_file_keeps_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "environments").mkdir()
    file = tmp_path / "environments" / "prod.yaml"
    file.write_text(f"{MINIMAL}name: staging\n")
    with pytest.raises(InvalidFile) as caught:
        Project.at(tmp_path).load("prod")
    (finding,) = caught.value.findings
    assert (finding.id, str(finding.place)) == ("ENV007", "environments/prod.yaml:6")
    assert load_environment(file).environment.name == "staging"


def test_what_the_project_does_not_have(tmp_path: Path) -> None:
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments" / "prod.yaml").write_text(MINIMAL)
    with pytest.raises(InvalidFile, match="no environment 'dev'") as caught:
        Project.at(tmp_path).load("dev")
    assert (caught.value.findings[0].id, caught.value.findings[0].hint[:11]) == ("ENV006", "known: prod")
    (tmp_path / "podwright.yaml").write_text("environments: [prod, dev]\n")
    with pytest.raises(InvalidFile, match="names 'dev'") as caught:
        Project.at(tmp_path)
    assert caught.value.findings[0].id == "ENV005"
    (tmp_path / "podwright.yaml").write_text("environment: [prod]\n")
    with pytest.raises(InvalidFile) as caught:
        Project.at(tmp_path)
    assert (caught.value.findings[0].id, str(caught.value.findings[0].place)) == ("ENV004", "podwright.yaml:1")


def test_what_is_missing_is_to_be_added_where_it_belongs() -> None:
    [finding] = refused("jobs: {a: {group: system}}\n")
    assert finding.hint == "add `kind:` under jobs.a"


def test_a_setting_of_the_other_class_without_a_value_says_nothing() -> None:
    """`capacity_gib: null` on a class that has no capacity is what the class does anyway."""
    lustre = {"zone": "usw2-az2", "type": "intelligent_tiering", "throughput_capacity": 4000, "capacity_gib": None}
    provided = Lustre.model_validate(lustre)
    assert list(other_class(provided)) == []
    [problem] = other_class(Lustre.model_validate(lustre | {"capacity_gib": 4800}))
    assert problem.path in ("capacity_gib", ("capacity_gib",))
