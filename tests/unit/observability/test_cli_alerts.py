"""`podwright alerts`: the alerts of an environment, and the files that they become."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from needs import require
from podwright.operations.cli import main
from podwright.planning.monitoring.alerts import alerts

BASE = """
account: "111122223333"
region: us-west-2
network: {zones: [usw2-az1, usw2-az2]}
instance_groups:
  system: {instance_type: ml.m5.4xlarge, count: 2}
  h200: {instance_type: ml.p5en.48xlarge, count: 4, zone: usw2-az2}
"""
OBSERVED = """
observability:
  metrics: advanced
  levels: {network: basic, accelerated: basic}
  alerts: {emails: [oncall@example.com], thresholds: {GpuHot: 80}, silenced: [GpuIdle]}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "watched.yaml"
    made.write_text(BASE + OBSERVED.replace("network: basic", "network: 'off'"))
    return made


def printed(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["alerts", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_the_list(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, file)
    rows = {line.split()[0]: line.split() for line in out.splitlines() if line[:1].isupper() and "  " in line}
    assert rows["GpuHot"] == ["GpuHot", "warning", "80", "celsius", "5", "min"]
    assert rows["InstanceCountSurge"][2:4] == ["6", "instances"]
    assert "GpuIdle" not in rows
    # Nobody measures EFA here, and there is no budget.
    assert "EfaErrors" not in rows
    assert "SpendAboveBudget" not in rows
    assert "Told: oncall@example.com." in out
    assert "Left out" in out
    assert "EfaErrors" in out


def test_json(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    actual = {item["name"]: item for item in json.loads(printed(capsys, file, "--json"))["alerts"]}
    assert set(actual) < set(alerts())
    assert actual["GpuHot"] == {
        "name": "GpuHot", "severity": "warning", "threshold": 80, "unit": "celsius", "minutes": 5
    }  # fmt: skip


def test_rules_are_prometheus_own(file: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(printed(capsys, file, "--rules"))
    assert 'cluster_name="watched"' in rules.read_text()
    require(shutil.which("promtool"), "promtool: Debian's package prometheus")
    done = subprocess.run(["promtool", "check", "rules", str(rules)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_manager(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = YAML(typ="safe").load(printed(capsys, file, "--alert-manager"))
    config = YAML(typ="safe").load(made["alertmanager_config"])
    topics = [item["topic_arn"] for item in config["receivers"][0]["sns_configs"]]
    assert topics == ["arn:aws:sns:us-west-2:111122223333:TOPIC-FOR-MAIL"]
    named = [word for rule in config["inhibit_rules"] for text in rule["source_matchers"] + rule["target_matchers"]
             for word in text.split('"')[1].split("|")]  # fmt: skip
    assert set(named) <= set(alerts())


def test_nothing_observed_is_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bare = tmp_path / "bare.yaml"
    bare.write_text(BASE)
    assert main(["alerts", str(bare)]) == 2
    assert "has no `observability:`" in capsys.readouterr().err
