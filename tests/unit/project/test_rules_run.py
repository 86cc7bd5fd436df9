"""Running rules: paths and lines, what a construct refuses, acknowledgements, facts of an environment."""

import pytest

from podwright.config.errors import InvalidSettings
from podwright.config.findings import Finding
from podwright.config.loading.load import environment_from
from podwright.config.loading.source import parse_source
from podwright.config.settings.groups import InstanceGroup
from podwright.config.settings.network import Network
from podwright.config.settings.storage import Lustre, Storage
from podwright.planning.rules import check, findings
from rule_pages import loaded

FILE = """\
account: "111122223333"
region: us-west-2
network: {zones: [usw2-az2, usw2-az3]}
cluster: {eks: {admins: ["arn:aws:iam::111122223333:role/MlPlatform"]}}
instance_groups:
  system: {instance_type: ml.m5.4xlarge, count: 2}
  cpu:
    instance_type: ml.m5.4xlarge
    count: 2
    min_count: 3
    taints:
      - {key: a, effect: NoSchedule}
      - {key: a, effect: NoSchedule}
"""


def found(text: str) -> list[Finding]:
    example = environment_from(parse_source(text, "dev.yaml"), "dev")
    return findings(example.environment, example.source)


def test_findings_stand_in_the_order_of_the_file_with_path_and_line() -> None:
    assert [(item.id, item.path, str(item.place)) for item in found(FILE)] == [
        ("GRP003", "instance_groups.cpu.min_count", "dev.yaml:10"),
        ("GRP024", "instance_groups.cpu.taints[1]", "dev.yaml:13"),
    ]


def test_what_is_not_written_stands_at_what_encloses_it() -> None:
    (item,) = found(
        FILE.replace("    min_count: 3\n", "").replace("      - {key: a, effect: NoSchedule}\n", "", 1)
        + "storage: {lustre: {}}"
    )
    assert (item.id, item.path, str(item.place)) == ("STO014", "storage.lustre", "dev.yaml:12")


def test_an_environment_made_in_python_has_findings_without_lines() -> None:
    example = environment_from(parse_source(FILE, "dev.yaml"), "dev").environment
    assert [(item.id, item.place) for item in findings(example)] == [("GRP003", None), ("GRP024", None)]


def test_a_construct_refuses_what_nobody_can_accept() -> None:
    with pytest.raises(InvalidSettings) as caught:
        check(Lustre(zone="usw2-az2", capacity_gib=12000, throughput=500, efa=True))
    assert [item.id for item in caught.value.findings] == ["STO003"]
    assert str(caught.value).startswith(
        "STO003 capacity_gib: capacity_gib is 12000; with EFA at 500 MB/s per TiB allowed"
    )


def test_a_construct_gets_the_rest_back() -> None:
    returned = check(
        InstanceGroup(instance_type="ml.m5.4xlarge", count=2, deep_health_checks=("stress",), zone="usw2-az2")
    )
    assert [item.id for item in returned] == ["GRP009"]


def test_check_looks_inside() -> None:
    with pytest.raises(InvalidSettings, match="GRP030"):
        check(
            InstanceGroup.model_validate(
                {"count": 2, "instance_type": "ml.m5.large", "scheduled_update": {"schedule": "cron(x)"}}
            )
        )


def test_all_that_is_refused_is_said_together() -> None:
    with pytest.raises(InvalidSettings) as caught:
        check(Network(zones=("usw2-az2",), cidr="10.0.0.0/24", flow_logs_days=2))
    assert [item.id for item in caught.value.findings] == ["NET020", "NET029"]


FAR = "instance_groups:\n  l40s: {instance_type: ml.g6e.12xlarge, count: 1, zone: usw2-az3}\n"


def accepted(acknowledgements: str) -> list[tuple[str, str | None]]:
    example = loaded(FAR + f"acknowledge: {acknowledgements}\n")
    return [(item.id, item.acknowledged) for item in findings(example.environment, example.source)]


@pytest.mark.parametrize("path", ["", "instance_groups", "instance_groups.l40s", "instance_groups.l40s.zone"])
def test_an_acknowledgement_covers_a_place_and_what_lies_below(path: str) -> None:
    assert accepted(f'[{{rule: NET010, path: "{path}", reason: it hardly reads}}]') == [("NET010", "it hardly reads")]


@pytest.mark.parametrize("path", ["instance_groups.l40", "instance_groups.l40s.zon", "storage"])
def test_an_acknowledgement_of_another_place_is_a_finding(path: str) -> None:
    actual = accepted(f"[{{rule: NET010, path: {path}, reason: it hardly reads}}]")
    assert sorted(actual) == [("ENV012", None), ("NET010", None)]


@pytest.mark.parametrize(
    ("rule", "id"), [("GRP003", "ENV011"), ("NET099", "ENV011"), ("PRE999", "ENV011"), ("PRE001", None)]
)
def test_what_cannot_be_accepted(rule: str, id: str | None) -> None:
    """Ids of an area that rules do not have are left to the check that has them."""
    actual = accepted(f"[{{rule: {rule}, reason: because we say so}}]")
    assert sorted(item for item, _ in actual) == sorted(filter(None, ["NET010", id]))


def test_errors_can_be_accepted_too() -> None:
    example = loaded(
        "storage: {lustre: {zone: usw2-az3}}\n"
        "acknowledge: [{rule: NET009, reason: the EFA group follows next week}, {rule: NET010, reason: until then}]\n"
    )
    resolved_findings = findings(example.environment, example.source)
    assert all(item.acknowledged for item in resolved_findings)
    assert {item.id for item in resolved_findings} == {"NET009", "NET010"}


def message(piece: str, id: str) -> str:
    example = loaded(piece)
    return next(item.message for item in findings(example.environment, example.source) if item.id == id)


def test_arithmetic_of_addresses() -> None:
    text = message(
        "instance_groups:\n  h100: {instance_type: ml.p5.48xlarge, count: 60, min_count: 30, zone: usw2-az2}", "NET013"
    )
    assert "system 2 × 30 = 60, h200 4 × 65 = 260, h100 60 × 81 = 4,860" in text
    assert "together 5,180 addresses at full count (2,750 at minimum counts, 5,356 during replacement)" in text
    assert "10.16.80.0/20 has 4,096 - 5 reserved = 4,091" in text


def test_arithmetic_of_a_group_in_two_zones_and_a_rolling_update() -> None:
    piece = """instance_groups:
  c5:
    instance_type: ml.c5.9xlarge
    count: 301
    zones: [usw2-az2, usw2-az3]
    patching: {strategy: when_idle, batch: 10%}"""
    text = message(piece, "NET013")
    assert "c5 151 × 30 = 4,530" in text
    assert "5,425 during replacement" in text  # 4,850 and 30 + 65 for one node of each other group, 16 × 30 of c5


def test_facts_of_the_environment_change_the_arithmetic() -> None:
    piece = "instance_groups:\n  h100: {instance_type: ml.p5.48xlarge, count: 60, zone: usw2-az2}\n"
    facts = "instance_types: {ml.p5.48xlarge: {addresses_eks: 40}}\n"
    example = loaded(piece + facts)
    assert findings(example.environment, example.source) == []


def test_arithmetic_of_the_system_group() -> None:
    assert message("instance_groups:\n  system: {instance_type: ml.t3.medium}", "GRP042") == (
        "a node of system has 1 pods, 1780 m CPU and 3686 MiB left beside its daemons; 2 of them have 2 pods, and the "
        "cluster's own pods ask for 6 pods, 200 m CPU and 140 MiB"
    )


TIERED = """\
cluster: {{tiered_checkpoints: {{memory_percent: {percent}}}}}
instance_groups:
  system: {{instance_type: ml.m5.2xlarge}}
"""


def test_tiered_checkpoints_take_memory_of_the_system_group() -> None:
    assert "-1018 MiB memory" in message(TIERED.format(percent=100), "GRP042")
    example = loaded(TIERED.format(percent=50))
    assert findings(example.environment, example.source) == []


@pytest.mark.parametrize(
    "mount", ["/opt/sagemaker", "/opt/sagemaker/fsx", "/opt", "/var", "/usr/lib", "/run/fsx", "/a/../etc"]
)
def test_mount_points_that_take_something_from_the_node(mount: str) -> None:
    with pytest.raises(InvalidSettings, match="STO022"):
        check(Storage(lustre=Lustre(zone="usw2-az2", capacity_gib=1200, mount=mount)))


@pytest.mark.parametrize("mount", ["/fsx", "/opt/data", "/var/data", "/usr/local/data", "/optional"])
def test_mount_points_beside_what_the_node_needs(mount: str) -> None:
    assert {item.id for item in check(Storage(lustre=Lustre(zone="usw2-az2", capacity_gib=1200, mount=mount)))} == {
        "STO014"
    }


@pytest.mark.parametrize(
    ("checks", "wait", "expected"),
    [
        ("", "", ""),
        ("[stress]", "", "up to 9000 s to replace a node and check it with the deep health checks of h200"),
        ("[stress]", "wait_for_pods: {recovery_timeout_seconds: 9001}", ""),
    ],
)
def test_a_gang_waits_for_deep_health_checks_of_a_new_node(checks: str, wait: str, expected: str) -> None:
    group = f"instance_groups: {{h200: {{deep_health_checks: {checks or '[]'}}}}}\n"
    piece = f"{group}governance:\n  engine: kueue\n  {wait}\n  teams: {{research: {{quota: {{h200: 2}}}}}}\n"
    example = loaded(piece)
    messages = [item.message for item in findings(example.environment, example.source) if item.id == "GOV058"]
    assert bool(messages) == bool(expected)
    assert all(expected in each for each in messages)


def test_a_group_of_karpenter_without_a_type_has_no_smallest_node() -> None:
    karpenter = "cluster: {autoscaling: {karpenter: {groups: [burst], limits: {vcpu: 8}}}}"
    example = loaded(f"{karpenter}\ninstance_groups: {{burst: {{count: 0}}}}")
    (finding,) = (item for item in findings(example.environment, example.source) if item.level == "error")
    assert finding.path == "instance_groups.burst.instance_type"
