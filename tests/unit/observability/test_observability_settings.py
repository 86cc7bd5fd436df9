"""What an environment file may say of observability, and what HyperPod's collectors are told of it."""

import pytest

from podwright.config.errors import InvalidFile
from podwright.config.loading.load import environment_from
from podwright.config.loading.source import parse_source
from podwright.config.settings.observability import Grafana, Observability, Quarantine
from podwright.planning.monitoring.metric_levels import (
    addon_configuration,
    addon_levels,
    extension_configuration,
    metrics_provider,
)

BASE = """
account: "111122223333"
region: us-west-2
network: {cidr: 10.16.0.0/16, zones: [usw2-az2, usw2-az3]}
instance_groups: {system: {instance_type: ml.m5.4xlarge, count: 2}}
"""


def observed(text: str) -> Observability:
    """The settings of a file with this line."""
    actual = environment_from(parse_source(f"{BASE}{text}\n", "test.yaml"), "test").environment.observability
    assert actual is not None
    return actual


def test_an_empty_mapping_is_every_default() -> None:
    assert observed("observability: {}") == Observability()


@pytest.mark.parametrize(
    ("text", "emails"),
    [
        pytest.param("oncall@example.com", ("oncall@example.com",), id="one address"),
        pytest.param("[a@example.com, b@example.com]", ("a@example.com", "b@example.com"), id="several"),
        pytest.param("{emails: [a@example.com]}", ("a@example.com",), id="with its name"),
    ],
)
def test_addresses_in_short_and_in_full(text: str, emails: tuple[str, ...]) -> None:
    assert observed(f"observability: {{alerts: {text}}}").alerts.emails == emails


def test_grafana_is_a_switch_or_settings() -> None:
    assert observed("observability: {grafana: true}").managed_grafana == Grafana()
    assert observed("observability: {grafana: false}").managed_grafana is None
    assert observed('observability: {grafana: {version: "9.4"}}').managed_grafana == Grafana(version="9.4")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("{metrics: all}", "observability.metrics is 'all'", id="a level"),
        pytest.param("{grafana: maybe}", "observability.grafana is 'maybe'", id="neither switch nor settings"),
        pytest.param("{alerts: [x]}", "observability.alerts[0] is 'x'", id="no address"),
        pytest.param("{levels: {gpu: off}}", "gpu", id="no source"),
        pytest.param("{workspace: prod}", "observability.workspace is 'prod'", id="no id of a workspace"),
        pytest.param("{retention: 5}", "observability.retention is not a known setting", id="a typo"),
        pytest.param("{targets: {goodput_percent: 120}}", "goodput_percent is '120'", id="more than all"),
    ],
)
def test_what_it_refuses_is_named_with_its_place(text: str, says: str) -> None:
    with pytest.raises(InvalidFile) as refused:
        observed(f"observability: {text}")
    assert says in str(refused.value)
    assert "test.yaml:6" in str(refused.value)


def test_a_source_follows_the_level_of_all_unless_it_has_its_own() -> None:
    settings = observed("observability: {metrics: advanced, levels: {node: basic, network: off}, scrape_seconds: 60}")
    provider = metrics_provider(settings)
    assert len(provider) == len(addon_levels()) == 8
    assert provider["nodeMetrics"] == {"level": "BASIC", "scrapeInterval": 60}
    assert provider["networkMetrics"]["level"] == "DISABLED"
    assert provider["acceleratedComputeMetrics"]["level"] == "ADVANCED"
    assert addon_configuration(settings, "arn", "https://x/workspaces/ws-1/")["ampWorkspace"] == {
        "arn": "arn",
        "prometheusEndpoint": "https://x/workspaces/ws-1",
    }


def test_settings_of_the_extension_go_over_ours() -> None:
    more = "metricsProvider: {networkMetrics: {level: ADVANCED}}\nlogging: {enabled: true, seconds: 30}"
    settings = Observability(metrics="advanced", slurm_settings=more)
    assert extension_configuration(settings) == {
        "metricsProvider": {"nodeMetrics": {"level": "ADVANCED"}, "networkMetrics": {"level": "ADVANCED"}},
        "logging": {"enabled": True, "seconds": 30},
    }
    other = Observability(slurm_settings="metricsProvider: {nodeMetrics: {level: DISABLED}}")
    assert extension_configuration(other) == {"metricsProvider": {"nodeMetrics": {"level": "DISABLED"}}}


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("{}", Quarantine(faults=3, within_hours=24)),
        ("{quarantine: {faults: 5}}", Quarantine(faults=5, within_hours=24)),
        ("{quarantine: off}", None),
    ],
)
def test_when_a_node_is_taken_out_of_work(text: str, rule: Quarantine | None) -> None:
    assert observed(f"observability: {text}").quarantines == rule


@pytest.mark.parametrize("value", ["{faults: 1}", "{within_hours: 169}", "on", "{faults: 3, days: 1}"])
def test_what_is_no_rule_for_that(value: str) -> None:
    with pytest.raises(InvalidFile) as refused:
        observed(f"observability: {{quarantine: {value}}}")
    assert refused.value.findings[0].path.startswith("observability.quarantine")
