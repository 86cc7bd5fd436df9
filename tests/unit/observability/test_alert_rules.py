"""Each alert fires, stays silent and resolves in a real Prometheus: promtool runs our rules over made-up histories."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from alert_cases import CASES
from alert_histories import CLUSTER, Case
from needs import require
from podwright.config.settings.governance.teams import TeamBudget
from podwright.config.settings.observability import Alerts, Observability
from podwright.planning.monitoring.alerts import Watched, alert_groups, alert_rule, alerts, wanted
from podwright.planning.monitoring.recordings import recording_groups, recordings

SETTINGS = Observability(budget_usd_per_month=400000)
BUDGETS = {"research": TeamBudget(accelerator_hours=40, period="week")}
WATCHED = Watched(CLUSTER, "eks", instances=18, budgets=BUDGETS)


def test_every_alert_has_a_case() -> None:
    assert [case.alert for case in CASES] == list(alerts())


def test_alerts_fire_stay_silent_and_resolve(tmp_path: Path) -> None:
    require(shutil.which("promtool"), "promtool: Debian's package prometheus")
    files = [_test_file(tmp_path, case) for case in CASES]
    done = subprocess.run(["promtool", "test", "rules", *files], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def _test_file(folder: Path, case: Case) -> str:
    """A test of promtool with one alert and the recordings that it reads. JSON is YAML, too."""
    rule = alert_rule(alerts()[case.alert], SETTINGS, WATCHED)
    # One group, since promtool evaluates several in any order.
    read = [item | {"expr": _later(item["expr"], case.begins)} for item in (*_read_by(rule["expr"]), rule)]
    rules = {"groups": [{"name": "all", "interval": "60s", "rules": read}]}
    (folder / f"{case.alert}.rules").write_text(json.dumps(rules))
    fired = {
        "exp_labels": {"severity": rule["labels"]["severity"], "cluster_name": CLUSTER, **case.labels},
        "exp_annotations": {"summary": case.summary, "runbook": f"podwright explain {case.alert}"},
    }
    firing = [_at(case, case.quiet), _at(case, case.fires, fired), _at(case, case.resolved)]
    silent = [_at(case, minute) for minute in case.still]
    test = {
        "rule_files": [f"{case.alert}.rules"],
        "evaluation_interval": "1m",
        "tests": [
            {"interval": "1m", "input_series": _input(case.series), "alert_rule_test": firing},
            {"interval": "1m", "input_series": _input(case.near), "alert_rule_test": silent},
        ],
    }
    (folder / f"{case.alert}.test").write_text(json.dumps(test))
    return f"{case.alert}.test"


def _later(expression: str, minutes: int) -> str:
    """The expression with a clock that is ahead: promtool plays every minute since its clock began."""
    return re.sub(r"\btime\(\)", f"(time() + {60 * minutes})", expression) if minutes else expression


def _at(case: Case, minute: int, *expected: dict[str, Any]) -> dict[str, Any]:
    return {"eval_time": f"{minute}m", "alertname": case.alert, "exp_alerts": list(expected)}


def _input(series: dict[str, str]) -> list[dict[str, str]]:
    return [{"series": name, "values": values} for name, values in series.items()]


def _read_by(expression: str) -> list[dict[str, Any]]:
    """The recordings that an expression reads, directly or through others."""
    by_name = {rule["record"]: rule for group in _recorded() for rule in group["rules"]}
    expected, actual = {expression}, set[str]()
    while expected:
        read = {name for text in expected for name in by_name if re.search(rf"(?<![\w:]){name}(?![\w:])", text)}
        expected = {by_name[name]["expr"] for name in read - actual}
        actual |= read
    return [rule for name, rule in by_name.items() if name in actual]


def _recorded() -> list[dict[str, Any]]:
    return recording_groups(CLUSTER, SETTINGS.scrape_seconds, BUDGETS)


def test_one_set_of_names() -> None:
    names = [item.name for item in recordings()]
    assert len(names) == len(set(names))


def test_groups_fit_the_quotas_of_the_service() -> None:
    groups = [*_recorded(), *alert_groups(SETTINGS, WATCHED)]
    # Amazon Managed Service for Prometheus, "Service quotas", 2026-11: 20 rules a group.
    assert all(len(group["rules"]) <= 20 for group in groups)
    assert len(json.dumps(groups)) < 1_000_000


@pytest.mark.parametrize(
    ("settings", "watched", "missing"),
    [
        pytest.param(Observability(), WATCHED, "SpendAboveBudget", id="no budget"),
        pytest.param(SETTINGS, Watched(CLUSTER, "slurm", 18), "QuotaStarving", id="no Kubernetes"),
        pytest.param(Observability(alerts=Alerts(silenced=("GpuHot",))), WATCHED, "GpuHot", id="not wanted"),
    ],
)
def test_an_alert_is_left_out(settings: Observability, watched: Watched, missing: str) -> None:
    names = [alert.name for alert in wanted(settings, watched)]
    assert missing in alerts()
    assert missing not in names
    assert len(names) > 20


def test_a_threshold_of_the_environment_comes_first() -> None:
    hot = alert_rule(alerts()["GpuHot"], Observability(alerts=Alerts(thresholds={"GpuHot": 80})), WATCHED)
    assert hot["expr"].endswith(">= 80")
    slow = alert_rule(
        alerts()["NodeRebootSlow"], Observability(alerts=Alerts(thresholds={"NodeRebootSlow": 1.5})), WATCHED
    )
    assert slow["for"] == "90s"
    assert "1.5 minutes" in slow["annotations"]["summary"]
